/// @file LAMB: every target and storage against one element at a time, cuts of a tensor, float64
/// and its authors' formula.
#include "kernels/lamb.h"

#include "random.h"
#include "storage.h"
#include "torch_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace zero::kernels::lamb_test {
namespace {

const Algorithm &lamb_row() { return *find_algorithm("lamb"); }

/// The slots of one tensor.
struct Tensor {
  test::Stored param, grad, first, second;
  int64_t count;

  Tensor(DType param_dtype, DType first_dtype, DType second_dtype, int64_t elements)
      : param(param_dtype, elements),
        grad(DType::f32, elements),
        first(first_dtype, elements),
        second(second_dtype, elements),
        count(elements) {
    const std::vector<float> zeros(static_cast<size_t>(elements));
    first.assign(zeros, nullptr);
    second.assign(zeros, nullptr);
  }

  /// Elements [begin, end); `begin` on a line.
  UpdateSegment piece(int64_t begin, int64_t end) {
    const auto slot = [&](test::Stored &stored) {
      float *scales = stored.scales() != nullptr ? stored.scales() + begin / kLine : nullptr;
      return Elements{static_cast<char *>(stored.data()) + begin * dtype_nbytes(stored.dtype()), stored.dtype(), scales};
    };
    UpdateSegment result;
    result.param = slot(param);
    result.grad = slot(grad);
    result.state[0] = slot(first);
    result.state[1] = slot(second);
    result.count = end - begin;
    result.first = static_cast<uint64_t>(begin);
    return result;
  }

  void set(test::Stored &slot, const std::vector<float> &values) {
    for (int64_t i = 0; i < count; ++i) slot.set_nearest(i, values[static_cast<size_t>(i)]);
  }

  friend bool operator==(const Tensor &a, const Tensor &b) {
    return a.param == b.param && a.grad == b.grad && a.first == b.first && a.second == b.second;
  }
};

/// One step with the tensor cut at `cuts`, which begin with 0 and end with its size.
void lamb_step(const Table &table, Tensor &tensor, UpdateScalars scalars, const std::vector<int64_t> &cuts) {
  ExactSum param;
  ExactSum direction;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) lamb_moments(table, tensor.piece(cuts[i], cuts[i + 1]), scalars);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    ExactSum parts[2];
    lamb_add_norms(table, tensor.piece(cuts[i], cuts[i + 1]), scalars, parts[0], parts[1]);
    param.merge(parts[0]);
    direction.merge(parts[1]);
  }
  scalars.hyper.trust_ratio = lamb_trust_ratio(param, direction);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) update(table, lamb_row(), tensor.piece(cuts[i], cuts[i + 1]), scalars);
}

struct Storage {
  DType param, first, second;
  bool stochastic;
};

std::vector<Storage> all_storages() {
  std::vector<Storage> storages;
  for (const DType param : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType first : {DType::f32, DType::bf16, DType::f8e4m3}) {
      for (const DType second : {DType::f32, DType::bf16, DType::f8ue5m3}) {
        for (const bool stochastic : {false, true}) storages.push_back({param, first, second, stochastic});
      }
    }
  }
  return storages;
}

UpdateScalars base_scalars() {
  UpdateScalars scalars;
  scalars.hyper = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01, .step = 1};
  return scalars;
}

TEST(Lamb, EveryTargetAndEveryCutGivesTheSameBits) {
  test::Random random(80);
  int64_t steps = 0;
  for (const Storage &storage : all_storages()) {
    for (int64_t i = 0; i < test::cases(60); ++i) {
      const int64_t count = i == 5 ? 0 : 1 + random.below(i % 3 == 0 ? 5000 : 600);
      Tensor expected(storage.param, storage.first, storage.second, count);
      expected.set(expected.param, random.values(count, 6));
      UpdateScalars scalars = base_scalars();
      scalars.stochastic = storage.stochastic;
      scalars.seed = random.next();
      scalars.grad_factor = 0.5F;
      std::vector<Tensor> actual(supported().size() + 1, expected);
      for (scalars.hyper.step = 1; scalars.hyper.step <= 3; ++scalars.hyper.step) {
        const std::vector<float> grad = random.values(count, 12);
        expected.set(expected.grad, grad);
        lamb_step(*supported().front(), expected, scalars, {0, count});
        for (size_t t = 0; t < actual.size(); ++t, ++steps) {
          std::vector<int64_t> cuts = {0};
          while (t > 0 && cuts.back() < count) cuts.push_back(std::min(count, cuts.back() + kLine * (1 + random.below(6))));
          if (t == 0) cuts.push_back(count);
          actual[t].set(actual[t].grad, grad);
          lamb_step(t == 0 ? *supported().back() : *supported()[t - 1], actual[t], scalars, cuts);
          ASSERT_EQ(actual[t], expected) << "count " << count << " step " << scalars.hyper.step;
        }
      }
    }
  }
  std::printf("%lld steps compared\n", static_cast<long long>(steps));
}

/// One tensor in float64, as the paper writes it.
struct Exact {
  std::vector<double> param, first, second;
  double largest_ratio = 0;
  double least_direction = 1e30;  ///< least root mean square of the direction

  explicit Exact(const std::vector<float> &begin) : param(begin.begin(), begin.end()), first(begin.size()), second(begin.size()) {}

  void step(const std::vector<float> &grad, const HyperParameters &hyper) {
    std::vector<double> direction(param.size());
    const auto t = static_cast<double>(hyper.step);
    double param_squares = 0;
    double direction_squares = 0;
    for (size_t i = 0; i < param.size(); ++i) {
      first[i] = hyper.beta1 * first[i] + (1 - hyper.beta1) * grad[i];
      second[i] = hyper.beta2 * second[i] + (1 - hyper.beta2) * grad[i] * grad[i];
      const double root = std::sqrt(second[i] / (1 - std::pow(hyper.beta2, t)));
      direction[i] = first[i] / (1 - std::pow(hyper.beta1, t)) / (root + hyper.epsilon) + hyper.weight_decay * param[i];
      param_squares += param[i] * param[i];
      direction_squares += direction[i] * direction[i];
    }
    const double ratio = param_squares == 0 || direction_squares == 0 ? 1 : std::sqrt(param_squares / direction_squares);
    largest_ratio = std::max(largest_ratio, ratio);
    least_direction = std::min(least_direction, std::sqrt(direction_squares / static_cast<double>(param.size())));
    for (size_t i = 0; i < param.size(); ++i) param[i] -= hyper.lr * ratio * direction[i];
  }
};

/// u = 2^-24, T steps. The error of m grows by at most 3 u |g| per step and decays with beta1 <=
/// 0.9: 30 u max |g| in all. With every |g| in [0.5, 1), sqrt(v) > 0.5. So r is off by 60 u from m
/// and by 1.5 T u |r| / 2 from v, with |r| < 2 (1 + decay): below 60 u + 1.5 T u. Quotients and
/// constants add 10 u. The norm of r is off by the same amount relative to its root mean square,
/// which the test holds above 0.2: 5 (70 + 1.5 T) u relative. A step thus adds lr ratio (1 + 2 * 5)
/// (70 + 1.5 T) u and, |p| < 2, 4 u for p. The earlier error grows by less than lr ratio
/// weight_decay per step: a factor below 2 for lr 0.01, T 100.
double drift_bound(const HyperParameters &hyper, double steps, double ratio) {
  return 2 * steps * 0x1p-24 * (hyper.lr * ratio * 11 * (70 + 1.5 * steps) + 4);
}

TEST(Lamb, StaysCloseToFloat64ForAHundredSteps) {
  test::Random random(81);
  constexpr int64_t kCount = 700;
  for (const double weight_decay : {0.0, 0.05}) {
    const std::vector<float> begin = random.values(kCount, 0);
    Tensor tensor(DType::f32, DType::f32, DType::f32, kCount);
    tensor.set(tensor.param, begin);
    Exact exact(begin);
    UpdateScalars scalars = base_scalars();
    scalars.hyper.weight_decay = weight_decay;
    double difference = 0;
    for (scalars.hyper.step = 1; scalars.hyper.step <= 100; ++scalars.hyper.step) {
      std::vector<float> grad = random.values(kCount, 0);
      for (float &value : grad) value = std::copysign(0.5F + std::fabs(value) / 2, value);
      tensor.set(tensor.grad, grad);
      lamb_step(*supported().front(), tensor, scalars, {0, kCount});
      exact.step(grad, scalars.hyper);
      for (size_t i = 0; i < kCount; ++i) {
        difference = std::max(difference, std::fabs(tensor.param.get(static_cast<int64_t>(i)) - exact.param[i]));
        ASSERT_LT(std::fabs(exact.param[i]), 2);
      }
    }
    ASSERT_GT(exact.least_direction, 0.2);
    const double bound = drift_bound(scalars.hyper, 100, exact.largest_ratio);
    EXPECT_LT(difference, bound);
    std::printf("weight_decay %g: difference %.2e, bound %.2e\n", weight_decay, difference, bound);
  }
}

TEST(Lamb, TheRatioIsOneWhenANormIsZero) {
  ExactSum zero;
  ExactSum four;
  four.add(4);
  EXPECT_EQ(lamb_trust_ratio(zero, four), 1);
  EXPECT_EQ(lamb_trust_ratio(four, zero), 1);
  EXPECT_EQ(lamb_trust_ratio(four, four), 1);
  four.add(12);
  ExactSum one;
  one.add(1);
  EXPECT_EQ(lamb_trust_ratio(four, one), 4);
}

/// The state after many steps with gradients of 0 and no decay.
TEST(Lamb, ADirectionThatHasAllButVanishedMovesTheTensorByNoMoreThanItsNorm) {
  for (const Table *table : supported()) {
    Tensor tensor(DType::f32, DType::f32, DType::f32, 300);
    tensor.set(tensor.param, std::vector<float>(300, 1e4F));
    std::vector<float> gradient(300);
    gradient[0] = gradient[299] = 1e-44F;
    tensor.set(tensor.grad, gradient);
    UpdateScalars scalars = base_scalars();
    scalars.hyper.lr = 1;
    scalars.hyper.weight_decay = 0;
    lamb_step(*table, tensor, scalars, {0, 300});
    EXPECT_LT(tensor.param.get(0), 1e4F) << table->target;
    EXPECT_GT(tensor.param.get(0), 0) << table->target;
    EXPECT_EQ(tensor.param.get(0), tensor.param.get(299)) << table->target;
    EXPECT_EQ(tensor.param.get(1), 1e4F) << table->target;
  }
}

/// Gradients down to 2^-12 of their largest, T <= 10 steps. Let G be the largest gradient of an
/// element. Then m is off by at most 30 u G. v / (1 - beta2^t) >= G^2 beta2^T / T >= G^2 / 30 for
/// beta2 >= 0.9. So r is off by 165 u + 2 T u |r|, |r| < 6 (1 + decay). With bias correction of m
/// in its first steps the error is at most 10 times that: 3000 u covers both. The norm of r is
/// above 0.5 per element in these cases: lr ratio (3000 + 6 * 6000) u per step, and 2 u |p|.
TEST(Lamb, AgreesWithItsAuthorsFormula) {
  int64_t compared = 0;
  double worst = 0;
  for (const torch::Float64Vector &vector : torch::kFloat64Vectors) {
    if (std::strcmp(vector.algorithm, "lamb") != 0) continue;
    test::Random random(vector.seed);
    const int64_t count = vector.rows * vector.columns;
    Tensor tensor(DType::f32, DType::f32, DType::f32, count);
    tensor.set(tensor.param, random.values(count, 3));
    UpdateScalars scalars;
    scalars.hyper = vector.hyper;
    size_t checkpoint = 0;
    for (scalars.hyper.step = 1; scalars.hyper.step <= 10; ++scalars.hyper.step) {
      tensor.set(tensor.grad, random.values(count, 12));
      lamb_step(active(), tensor, scalars, {0, count});
      if (scalars.hyper.step != torch::kSteps[checkpoint]) continue;
      const double bound = static_cast<double>(scalars.hyper.step) * 0x1p-24 * (vector.hyper.lr * 2 * 39000 + 2);
      for (int i = 0; i < torch::kShown; ++i, ++compared) {
        const double difference = std::fabs(tensor.param.get(i) - vector.param[checkpoint][i]);
        worst = std::max(worst, difference / bound);
        EXPECT_LE(difference, bound) << "seed " << vector.seed << " step " << scalars.hyper.step << " element " << i;
      }
      ++checkpoint;
    }
  }
  std::printf("%lld values compared, largest difference %.3f of its bound\n", static_cast<long long>(compared), worst);
  EXPECT_GE(compared, 72);
}

}  // namespace
}  // namespace zero::kernels::lamb_test
