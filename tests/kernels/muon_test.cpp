/// @file Muon and its matrix kernels: every target against the reference, storages, float64 and
/// PyTorch's code.
#include "kernels/muon.h"

#include "products.h"
#include "random.h"
#include "storage.h"
#include "torch_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace zero::kernels::muon_test {
namespace {

std::vector<float> special_values(test::Random &random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
  return values;
}

std::vector<uint32_t> bits_of(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

/// Number of rows above the size of a packed block, and not a multiple of the tile.
constexpr int64_t kMoreThanABlock = 401;

TEST(Multiply, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(90);
  int64_t products = 0;
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t most = i % 10 == 0 ? 300 : 40;
    const int64_t rows = i == 0 ? kMoreThanABlock : random.below(i % 10 == 0 ? 30 : 40);
    const int64_t inner = random.below(most);
    const int64_t columns = random.below(most);
    const bool special = i % 3 == 0;
    const std::vector<float> a = special ? special_values(random, rows * inner) : random.values(rows * inner, 12);
    const std::vector<float> b = special ? special_values(random, inner * columns) : random.values(inner * columns, 12);
    const std::vector<float> before(static_cast<size_t>(rows * columns) + 1, 7.0F);
    std::vector<float> expected = before;
    supported().front()->multiply(expected.data(), a.data(), b.data(), rows, inner, columns, test::product_workspace());
    for (const Table *table : supported()) {
      std::vector<float> actual = before;
      table->multiply(actual.data(), a.data(), b.data(), rows, inner, columns, test::product_workspace());
      ASSERT_EQ(bits_of(actual), bits_of(expected)) << table->target << " " << rows << " x " << inner << " x " << columns;
      ++products;
    }
  }
  std::printf("%lld products compared\n", static_cast<long long>(products));
}

/// A product with the transpose, and the square of that product.
TEST(MultiplySymmetric, EveryTargetHasTheBitsOfTheWholeProduct) {
  test::Random random(93);
  for (int64_t i = 0; i < test::cases(1000); ++i) {
    const int64_t most = i % 10 == 0 ? 200 : 70;
    const int64_t side = i == 0 ? kMoreThanABlock : random.below(most);
    const int64_t inner = random.below(most);
    const std::vector<float> a = i % 3 == 0 ? special_values(random, side * inner) : random.values(side * inner, 12);
    const std::vector<float> b = test::transposed(a, side, inner);
    const std::vector<float> before(static_cast<size_t>(side * side) + 1, 7.0F);
    std::vector<float> expected = before;
    std::vector<float> expected_square = before;
    supported().front()->multiply(expected.data(), a.data(), b.data(), side, inner, side, test::product_workspace());
    supported().front()->multiply(expected_square.data(), expected.data(), expected.data(), side, side, side, test::product_workspace());
    for (const Table *table : supported()) {
      std::vector<float> actual = before;
      table->multiply_symmetric(actual.data(), a.data(), b.data(), side, inner, test::product_workspace());
      ASSERT_EQ(bits_of(actual), bits_of(expected)) << table->target << " " << side << " x " << inner;
      actual = before;
      table->multiply_symmetric(actual.data(), expected.data(), expected.data(), side, side, test::product_workspace());
      ASSERT_EQ(bits_of(actual), bits_of(expected_square)) << table->target << " square of " << side << " x " << inner;
    }
  }
}

/// A chain of k fma is off by at most k u times the sum of the magnitudes of its products.
TEST(Multiply, AgreesWithFloat64) {
  test::Random random(91);
  constexpr int64_t kRows = 13, kInner = 200, kColumns = 37;
  const std::vector<float> a = random.values(kRows * kInner, 4);
  const std::vector<float> b = random.values(kInner * kColumns, 4);
  std::vector<float> out(kRows * kColumns);
  supported().front()->multiply(out.data(), a.data(), b.data(), kRows, kInner, kColumns, test::product_workspace());
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      double exact = 0;
      double magnitude = 0;
      for (size_t k = 0; k < kInner; ++k) {
        const double product = double{a[i * kInner + k]} * b[k * kColumns + j];
        exact += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(out[i * kColumns + j], exact, kInner * 0x1p-24 * magnitude);
    }
  }
}

TEST(CombineAndInterpolate, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(92);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = test::length_of_case(random, i, 70, 2000);
    const std::vector<float> a = i % 2 == 0 ? special_values(random, count + 1) : random.values(count + 1, 8);
    const std::vector<float> b = i % 2 == 0 ? special_values(random, count + 1) : random.values(count + 1, 8);
    const float weight = std::fabs(random.value(2));
    std::vector<float> combined = a;
    std::vector<float> interpolated = a;
    supported().front()->combine(combined.data(), 0.7F, b.data(), weight, count);
    supported().front()->interpolate(interpolated.data(), a.data(), b.data(), weight, count);
    for (size_t j = 0; i % 2 == 1 && j < static_cast<size_t>(count); ++j) {
      const double exact = a[j] + double{weight} * (double{b[j]} - a[j]);
      ASSERT_NEAR(interpolated[j], exact, 6 * 0x1p-24 * std::max(std::fabs(a[j]), std::fabs(b[j])));  // difference, weight - 1, fma
    }
    for (const Table *table : supported()) {
      std::vector<float> values = a;
      table->combine(values.data(), 0.7F, b.data(), weight, count);
      ASSERT_EQ(bits_of(values), bits_of(combined)) << table->target << " count " << count;
      values = a;
      table->interpolate(values.data(), values.data(), b.data(), weight, count);
      ASSERT_EQ(bits_of(values), bits_of(interpolated)) << table->target << " count " << count;
    }
  }
}

struct Matrix {
  test::Stored param, master, grad, momentum;
  bool has_master;
  int64_t rows, columns;

  Matrix(DType param_dtype, bool with_master, DType master_dtype, DType grad_dtype, DType state_dtype, int64_t height, int64_t width)
      : param(param_dtype, height * width),
        master(master_dtype, height * width),
        grad(grad_dtype, height * width),
        momentum(state_dtype, height * width),
        has_master(with_master),
        rows(height),
        columns(width) {
    momentum.assign(std::vector<float>(static_cast<size_t>(height * width)), nullptr);
  }

  void set_param(const std::vector<float> &values) {
    for (int64_t i = 0; i < rows * columns; ++i) {
      const float value = values[static_cast<size_t>(i)];
      if (has_master && master.dtype() == DType::u16) {
        param.set(i, test::round_away(value));
        master.set_bits(i, static_cast<uint16_t>(std::bit_cast<uint32_t>(value)));
      } else {
        param.set_nearest(i, value);
        master.set(i, value);
      }
    }
  }
  void set_grad(const std::vector<float> &values) {
    for (int64_t i = 0; i < rows * columns; ++i) grad.set_nearest(i, values[static_cast<size_t>(i)]);
  }

  Replica slots() {
    Replica result{.param = {param.data(), param.dtype()}};
    if (has_master) result.master = {master.data(), master.dtype()};
    result.state[0] = {momentum.data(), momentum.dtype(), momentum.scales()};
    return result;
  }

  /// `other`, if there is one, must get the same values.
  void step(const Table &table, const UpdateScalars &scalars, Matrix *other = nullptr) {
    std::vector<float> workspace(static_cast<size_t>(muon_workspace(rows, columns)));
    const Replica mine = slots();
    const Replica replica = other != nullptr ? other->slots() : Replica();
    UpdateSegment piece;
    piece.param = mine.param;
    piece.master = mine.master;
    piece.grad = {grad.data(), grad.dtype()};
    piece.state[0] = mine.state[0];
    piece.count = rows * columns;
    if (other != nullptr) piece.replicas = {&replica, 1};
    muon(table, piece, rows, columns, scalars, workspace.data());
  }

  friend bool operator==(const Matrix &a, const Matrix &b) {
    return a.param == b.param && a.master == b.master && a.grad == b.grad && a.momentum == b.momentum;
  }
};

UpdateScalars base_scalars() {
  UpdateScalars scalars;
  scalars.hyper = {.lr = 0.02, .momentum = 0.95, .nesterov = 1, .epsilon = 1e-7, .weight_decay = 0.1, .step = 1};
  return scalars;
}

TEST(Muon, EveryTargetAndStorageHasTheBitsOfTheReference) {
  test::Random random(93);
  int64_t updates = 0;
  const auto compare = [&](const Matrix &before, const UpdateScalars &scalars) {
    Matrix expected = before;
    expected.step(*supported().front(), scalars);
    for (const Table *table : supported()) {
      Matrix actual = before;
      Matrix replica = before;
      actual.step(*table, scalars, &replica);
      ASSERT_EQ(actual, expected) << table->target << " " << before.rows << " x " << before.columns;
      ASSERT_EQ(replica, expected) << table->target << " " << before.rows << " x " << before.columns;
      ++updates;
    }
  };
  const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
  const DType states[] = {DType::f32, DType::bf16, DType::f8e4m3};
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t rows = i < 5 ? i : 1 + random.below(i % 20 == 0 ? 90 : 20);
    const int64_t columns = 1 + random.below(i % 20 == 0 ? 90 : 20);
    const DType param = dtypes[random.below(3)];
    const DType master = param == DType::bf16 && random.below(2) == 0 ? DType::u16 : DType::f32;
    Matrix matrix(param, random.below(2) == 0, master, dtypes[random.below(3)], states[random.below(3)], rows, columns);
    matrix.set_param(random.values(rows * columns, 6));
    matrix.set_grad(i % 6 == 0 ? special_values(random, rows * columns) : random.values(rows * columns, 8));
    UpdateScalars scalars = base_scalars();
    scalars.stochastic = random.below(2) == 0;
    scalars.grad_factor = random.below(2) == 0 ? 1.0F : 0.3F;
    scalars.hyper.nesterov = static_cast<double>(random.below(2));
    compare(matrix, scalars);
  }
  std::printf("%lld updates compared\n", static_cast<long long>(updates));
}

/// One tensor in float64, plain loops.
struct Exact {
  int64_t rows, columns;
  std::vector<double> param, momentum;

  Exact(int64_t height, int64_t width, const std::vector<float> &begin)
      : rows(height), columns(width), param(begin.begin(), begin.end()), momentum(begin.size()) {}

  static std::vector<double> product(const std::vector<double> &a, const std::vector<double> &b, int64_t n, int64_t k, int64_t m) {
    std::vector<double> out(static_cast<size_t>(n * m));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t j = 0; j < m; ++j)
          out[static_cast<size_t>(i * m + j)] += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * m + j)];
      }
    }
    return out;
  }

  static std::vector<double> transposed(const std::vector<double> &a, int64_t n, int64_t m) {
    std::vector<double> out(a.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) out[static_cast<size_t>(j * n + i)] = a[static_cast<size_t>(i * m + j)];
    }
    return out;
  }

  /// Newton-Schulz on X (X^T X) instead of (X X^T) X, which is equal in exact arithmetic and needs
  /// no transposition of tall matrices.
  std::vector<double> orthogonal(std::vector<double> x, const HyperParameters &hyper) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    for (double &value : x) value /= std::max(std::sqrt(squares), hyper.epsilon);
    for (int step = 0; step < static_cast<int>(hyper.newton_schulz_steps); ++step) {
      const std::vector<double> gram = product(transposed(x, rows, columns), x, columns, rows, columns);
      const std::vector<double> cubic = product(x, gram, rows, columns, columns);
      const std::vector<double> quintic = product(cubic, gram, rows, columns, columns);
      for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] - 4.7750 * cubic[i] + 2.0315 * quintic[i];
    }
    return x;
  }

  void step(const std::vector<float> &grad, const HyperParameters &hyper) {
    std::vector<double> direction(grad.size());
    for (size_t i = 0; i < grad.size(); ++i) {
      momentum[i] = hyper.momentum * momentum[i] + (1 - hyper.momentum) * grad[i];
      direction[i] = hyper.nesterov != 0 ? hyper.momentum * momentum[i] + (1 - hyper.momentum) * grad[i] : momentum[i];
    }
    const std::vector<double> o = orthogonal(direction, hyper);
    const double rate = hyper.lr * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    for (size_t i = 0; i < param.size(); ++i) param[i] = param[i] * (1 - hyper.lr * hyper.weight_decay) - rate * o[i];
  }
};

/// Bound in the Frobenius norm of the error of o; u = 2^-24, s and l are the sides. All singular
/// values are at most q = 1.21 (the polynomial maps [0, q] into itself), and |P| <= 2.81. A product
/// of inner size k is off by k u |A||B|:
/// - G: e1 = l u s q^2
/// - G G: e2 = 2 q^2 e1 + s u s q^4
/// - P: e3 = 4.775 e1 + 2.0315 e2 + 2 u sqrt(s) (7.0 + 4.4)
/// - P X: e4 = q e3 + s u (2.81 sqrt(s)) (q sqrt(s))
/// - X: e5 = e4 + 2 u sqrt(s) (4.2 + 3.4)
///
/// From one step to the next, an error of X grows at most by the largest slope of the polynomial on
/// [-q, q], below 4.25. (Its derivative in the space of matrices has divided differences for
/// eigenvalues, all bounded by that slope.) The momentum and the normalisation add 100 u relative
/// before the first step.
double orthogonal_bound(int64_t rows, int64_t columns, double steps) {
  const double u = 0x1p-24;
  const double q = 1.21;
  const auto s = static_cast<double>(std::min(rows, columns));
  const auto l = static_cast<double>(std::max(rows, columns));
  const double e1 = l * u * s * q * q;
  const double e2 = 2 * q * q * e1 + s * u * s * std::pow(q, 4);
  const double e3 = 4.775 * e1 + 2.0315 * e2 + 2 * u * std::sqrt(s) * 11.4;
  const double e4 = q * e3 + s * u * 2.81 * s * q;
  const double e5 = e4 + 2 * u * std::sqrt(s) * 7.6;
  double error = 100 * u;
  for (int step = 0; step < static_cast<int>(steps); ++step) error = 4.25 * error + e5;
  return error;
}

double distance(const test::Stored &slot, const std::vector<double> &exact) {
  double squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) squares += std::pow(slot.get(static_cast<int64_t>(i)) - exact[i], 2);
  return std::sqrt(squares);
}

/// Each of T steps adds the error of o times the rate, and three roundings of parameters below 4 in
/// n elements.
TEST(Muon, StaysCloseToFloat64ForAHundredSteps) {
  test::Random random(94);
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{12, 12}, {5, 40}, {40, 5}, {1, 30}}) {
    for (const double steps : {1.0, 2.0, 5.0}) {
      const std::vector<float> begin = random.values(rows * columns, 3);
      Matrix matrix(DType::f32, false, DType::f32, DType::f32, DType::f32, rows, columns);
      matrix.set_param(begin);
      Exact exact(rows, columns, begin);
      UpdateScalars scalars = base_scalars();
      scalars.hyper.newton_schulz_steps = steps;
      for (scalars.hyper.step = 1; scalars.hyper.step <= 100; ++scalars.hyper.step) {
        const std::vector<float> grad = random.values(rows * columns, 3);
        matrix.set_grad(grad);
        matrix.step(*supported().front(), scalars);
        exact.step(grad, scalars.hyper);
      }
      const double rate = scalars.hyper.lr * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
      const double rounding = 3 * 0x1p-24 * 4 * std::sqrt(static_cast<double>(rows * columns));
      const double bound = 100 * (rate * orthogonal_bound(rows, columns, steps) + rounding);
      const double difference = distance(matrix.param, exact.param);
      EXPECT_LT(difference, bound) << rows << " x " << columns;
      std::printf("%lld x %lld, %g Newton-Schulz steps: difference %.2e, bound %.2e\n", static_cast<long long>(rows),
                  static_cast<long long>(columns), steps, difference, bound);
    }
  }
}

TEST(Muon, AgreesWithPyTorchsCodeInFloat64) {
  int64_t compared = 0;
  double worst = 0;
  for (const torch::Float64Vector &vector : torch::kFloat64Vectors) {
    if (std::strcmp(vector.algorithm, "muon") != 0) continue;
    test::Random random(vector.seed);
    const int64_t count = vector.rows * vector.columns;
    const std::vector<float> begin = random.values(count, 3);
    Matrix matrix(DType::f32, false, DType::f32, DType::f32, DType::f32, vector.rows, vector.columns);
    matrix.set_param(begin);
    Exact exact(vector.rows, vector.columns, begin);
    UpdateScalars scalars;
    scalars.hyper = vector.hyper;
    size_t checkpoint = 0;
    for (scalars.hyper.step = 1; scalars.hyper.step <= 10; ++scalars.hyper.step) {
      const std::vector<float> grad = random.values(count, 12);
      matrix.set_grad(grad);
      matrix.step(active(), scalars);
      exact.step(grad, scalars.hyper);
      if (scalars.hyper.step != torch::kSteps[checkpoint]) continue;
      const double rate =
          vector.hyper.lr * std::sqrt(std::max(1.0, static_cast<double>(vector.rows) / static_cast<double>(vector.columns)));
      const double bound =
          static_cast<double>(scalars.hyper.step) * (rate * orthogonal_bound(vector.rows, vector.columns, 5) + 12 * 0x1p-24);
      for (int i = 0; i < torch::kShown; ++i, ++compared) {
        const double expected = vector.param[checkpoint][i];
        EXPECT_NEAR(exact.param[static_cast<size_t>(i)], expected, 1e-9);  // float64 in another order: 2^29 times as close
        worst = std::max(worst, std::fabs(matrix.param.get(i) - expected) / bound);
        EXPECT_NEAR(matrix.param.get(i), expected, bound) << "seed " << vector.seed << " step " << scalars.hyper.step << " element " << i;
      }
      ++checkpoint;
    }
  }
  std::printf("%lld values compared, largest difference %.5f of its bound\n", static_cast<long long>(compared), worst);
  EXPECT_GE(compared, 72);
}

TEST(Muon, AGradientTooSmallForItsNormsInverseIsStillFinite) {
  for (const Table *table : supported()) {
    Matrix matrix(DType::f32, false, DType::f32, DType::f32, DType::f32, 3, 5);
    matrix.set_param(std::vector<float>(15, 1.0F));
    std::vector<float> gradient(15);
    gradient[7] = 1e-39F;
    matrix.set_grad(gradient);
    UpdateScalars scalars = base_scalars();
    scalars.hyper.epsilon = 0;
    matrix.step(*table, scalars);
    for (int64_t i = 0; i < 15; ++i) EXPECT_TRUE(std::isfinite(matrix.param.get(i))) << table->target << " element " << i;
    EXPECT_LT(matrix.param.get(7), matrix.param.get(6)) << table->target;
  }
}

TEST(Muon, AZeroGradientLeavesOnlyDecay) {
  Matrix matrix(DType::f32, false, DType::f32, DType::f32, DType::f32, 4, 6);
  matrix.set_param(std::vector<float>(24, 1.0F));
  matrix.set_grad(std::vector<float>(24, 0.0F));
  UpdateScalars scalars = base_scalars();
  scalars.hyper.epsilon = 0;
  for (const Table *table : supported()) {
    Matrix after = matrix;
    after.step(*table, scalars);
    for (int64_t i = 0; i < 24; ++i) ASSERT_EQ(after.param.get(i), static_cast<float>(1 - 0.02 * 0.1));
  }
}

}  // namespace
}  // namespace zero::kernels::muon_test
