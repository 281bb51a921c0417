/// @file The layers of train_gpt, and the model that they form, computed in fp64: their gradients are those that differences of their
/// outputs give. Knows nothing of ranks.
#include <gtest/gtest.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <random>
#include <vector>

extern "C" {
#include "examples/gpt/layers.h"
#include "examples/gpt/model.h"
#include "examples/gpt/products.h"
#include "examples/gpt/shape.h"
}

namespace {

using Numbers = std::vector<double>;
static_assert(sizeof(real) == sizeof(double), "compiled with GPT_DOUBLE");

Numbers gpt_numbers(int64_t count, uint64_t seed, double mean = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, 1);
  Numbers numbers(static_cast<size_t>(count));
  for (double &number : numbers) number = normal(random);
  return numbers;
}

double gpt_dot(const Numbers &a, const Numbers &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Central differences of `value` by each element of x agree with `gradient`.
void expect_gradient(const char *name, Numbers &x, const Numbers &gradient, const std::function<double()> &value) {
  const double kStep = 1e-5;
  ASSERT_EQ(x.size(), gradient.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = value();
    x[i] = kept - kStep;
    const double below = value();
    x[i] = kept;
    const double expected = (above - below) / (2 * kStep);
    ASSERT_NEAR(gradient[i], expected, 1e-7 * (1 + std::abs(expected))) << name << " " << i;
  }
}

TEST(GptProducts, AllFormsAreTheSumOfTheirProducts) {
  const int64_t m = 5, n = 9, k = 19;
  for (const int a_form : {kAsIs, kTransposed}) {
    for (const int b_form : {kAsIs, kTransposed}) {
      for (const double keep : {0.0, 1.0}) {
        const int64_t lda = (a_form == kAsIs ? k : m) + 2, ldb = (b_form == kAsIs ? n : k) + 3, ldc = n + 1;
        const Numbers a = gpt_numbers(lda * (a_form == kAsIs ? m : k), 1), b = gpt_numbers(ldb * (b_form == kAsIs ? k : n), 2);
        const Numbers before = gpt_numbers(ldc * m, 3);
        Numbers c = before;
        product(a_form, b_form, m, n, k, 0.5, a.data(), lda, b.data(), ldb, keep, c.data(), ldc);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p) {
              sum += a[static_cast<size_t>(a_form == kAsIs ? i * lda + p : p * lda + i)] *
                     b[static_cast<size_t>(b_form == kAsIs ? p * ldb + j : j * ldb + p)];
            }
            const auto at = static_cast<size_t>(i * ldc + j);
            EXPECT_NEAR(c[at], 0.5 * sum + keep * before[at], 1e-12);
          }
          EXPECT_EQ(c[static_cast<size_t>(i * ldc + n)], before[static_cast<size_t>(i * ldc + n)]) << "beyond the row";
        }
      }
    }
  }
}

TEST(GptLayers, NormHasTheGradientsOfDifferences) {
  const int64_t rows = 3, width = 11;
  Numbers in = gpt_numbers(rows * width, 1), weight = gpt_numbers(width, 2, 1), bias = gpt_numbers(width, 3);
  const Numbers out_grad = gpt_numbers(rows * width, 4);
  Numbers out(in.size()), mean(rows), scale(rows), in_grad(in.size(), 0), weight_grad(width, 7), bias_grad(width, 7);
  const auto value = [&] {
    norm_forward(in.data(), weight.data(), bias.data(), rows, width, out.data(), mean.data(), scale.data());
    return gpt_dot(out, out_grad);
  };
  value();
  norm_backward(in.data(), mean.data(), scale.data(), weight.data(), out_grad.data(), rows, width, in_grad.data(), weight_grad.data(), 0,
                bias_grad.data(), 0);
  expect_gradient("in", in, in_grad, value);
  expect_gradient("weight", weight, weight_grad, value);
  expect_gradient("bias", bias, bias_grad, value);
}

TEST(GptLayers, LinearHasTheGradientsOfDifferences) {
  const int64_t rows = 4, inputs = 9, outputs = 5;
  Numbers in = gpt_numbers(rows * inputs, 1), weight = gpt_numbers(inputs * outputs, 2), bias = gpt_numbers(outputs, 3);
  Numbers residual = gpt_numbers(rows * outputs, 5);
  const Numbers out_grad = gpt_numbers(rows * outputs, 4);
  Numbers out(out_grad.size()), in_grad(in.size()), weight_grad(weight.size(), 7), bias_grad(bias.size(), 7);
  const auto value = [&] {
    linear_forward(in.data(), weight.data(), bias.data(), residual.data(), rows, inputs, outputs, out.data());
    return gpt_dot(out, out_grad);
  };
  linear_backward(in.data(), weight.data(), out_grad.data(), rows, inputs, outputs, in_grad.data(), weight_grad.data(), 0,
                  bias_grad.data(), 0);
  expect_gradient("in", in, in_grad, value);
  expect_gradient("weight", weight, weight_grad, value);
  expect_gradient("bias", bias, bias_grad, value);
  expect_gradient("residual", residual, out_grad, value);
}

TEST(GptLayers, GeluHasTheGradientOfDifferencesAndIsTheFormWithTanh) {
  Numbers in = gpt_numbers(33, 1);
  in.push_back(0);
  in.push_back(-30);
  in.push_back(30);
  const Numbers out_grad = gpt_numbers(static_cast<int64_t>(in.size()), 2);
  Numbers out(in.size()), in_grad = out_grad;
  const auto value = [&] {
    gelu_forward(in.data(), static_cast<int64_t>(in.size()), out.data());
    return gpt_dot(out, out_grad);
  };
  value();
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i];
    EXPECT_NEAR(out[i], 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))), 1e-12);
  }
  gelu_backward(in.data(), in_grad.data(), static_cast<int64_t>(in.size()), in_grad.data());
  expect_gradient("in", in, in_grad, value);
}

/// By tokens of a sequence: some are multiplied at once, or in several parts.
class GptAttention : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Length, GptAttention, testing::Values(1, 5, kQueries, kQueries + 3));

TEST_P(GptAttention, HasTheGradientsOfDifferencesAndLooksBackOnly) {
  const int64_t length = GetParam();
  const attention shape = {2, length, 0, length, 2, 6};
  const int64_t rows = shape.sequences * shape.length;
  Numbers qkv = gpt_numbers(rows * 3 * shape.width, 1);
  const Numbers out_grad = gpt_numbers(rows * shape.width, 2);
  Numbers out(out_grad.size()), chances(static_cast<size_t>(rows * shape.heads * shape.length)), scratch(static_cast<size_t>(kQueries * length)),
      qkv_grad(qkv.size(), 7);
  const auto value = [&] {
    attention_forward(&shape, qkv.data(), chances.data(), out.data());
    return gpt_dot(out, out_grad);
  };
  value();
  attention_backward(&shape, qkv.data(), chances.data(), out_grad.data(), scratch.data(), qkv_grad.data());
  expect_gradient("qkv", qkv, qkv_grad, value);

  value();
  const Numbers before = out;
  for (int64_t i = 0; i < 3 * shape.width; ++i) qkv[static_cast<size_t>((length - 1) * 3 * shape.width + i)] += 1;  // the last token of sequence 0
  value();
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t i = 0; i < shape.width; ++i) {
      const auto at = static_cast<size_t>(t * shape.width + i);
      EXPECT_EQ(out[at] == before[at], t != length - 1) << "token " << t << " saw a later one, or one of another sequence, or the last saw nothing";
    }
  }
}

TEST(GptLayers, LossHasTheGradientOfDifferences) {
  const int64_t rows = 3, vocabulary = 13;
  const int32_t targets[] = {0, 12, 5};
  Numbers logits = gpt_numbers(rows * vocabulary, 1);
  Numbers gradient = logits;
  const double loss = loss_backward(gradient.data(), targets, rows, vocabulary, 0.25);
  EXPECT_NEAR(loss, loss_forward(logits.data(), targets, rows, vocabulary), 1e-12);
  expect_gradient("logits", logits, gradient, [&] { return 0.25 * loss_forward(logits.data(), targets, rows, vocabulary); });
}

/// A model so small that a difference by every parameter takes no time.
struct SmallModel {
  explicit SmallModel(int tied) {
    shape.blocks = 2;
    shape.heads = 2;
    shape.width = 6;
    shape.vocabulary = 7;
    shape.places = 5;
    shape_fill(&shape, tied);
    EXPECT_EQ(model_create(&model, &shape, 2, 4, 1), 0);
    for (int i = 0; i < shape.tensor_count; ++i) {
      values.push_back(gpt_numbers(shape.tensors[i].count, static_cast<uint64_t>(10 + i)));
      gradients.emplace_back(values.back().size(), 0);
      for (double &x : values.back()) x = shape.tensors[i].constant + 0.5 * x;
    }
    model.loss_factor = 0.125;
  }
  ~SmallModel() { model_release(&model); }

  void params_of(int layer, const double *out[2]) {
    for (int i = 0; i < 2; ++i) {
      const int id = shape.layers[layer].tensors[i];
      out[i] = id < 0 ? nullptr : values[static_cast<size_t>(id)].data();
    }
  }
  void forward(int layers) {
    for (int layer = 0; layer < layers; ++layer) {
      const double *params[2];
      params_of(layer, params);
      model_forward(&model, layer, params);
    }
  }
  /// Gradients of a tensor are overwritten by the first layer that has one, and added to by others.
  void backward(bool add_all) {
    std::vector<int> seen(values.size(), add_all ? 1 : 0);
    for (int layer = shape.layer_count - 1; layer >= 0; --layer) {
      const double *params[2];
      double *grads[2] = {nullptr, nullptr};
      int add[2] = {0, 0};
      params_of(layer, params);
      params[1] = nullptr;
      if (shape.layers[layer].kind == kEmbedding) params[0] = nullptr;
      for (int i = 0; i < 2; ++i) {
        const int id = shape.layers[layer].tensors[i];
        if (id < 0 || (shape.layers[layer].kind == kHead && shape.tied)) continue;
        grads[i] = gradients[static_cast<size_t>(id)].data();
        add[i] = seen[static_cast<size_t>(id)]++;
      }
      model_backward(&model, layer, params, grads, add);
    }
  }
  double loss() {
    model_begin(&model, ids, targets);
    forward(shape.layer_count);
    return model.loss * 0.125;
  }

  struct shape shape {};
  struct model model {};
  std::vector<Numbers> values, gradients;
  const int32_t ids[8] = {0, 3, 3, 6, 1, 2, 0, 5};
  const int32_t targets[8] = {3, 3, 6, 1, 2, 0, 5, 4};
};

class GptModel : public testing::TestWithParam<int> {};

TEST_P(GptModel, HasTheGradientsOfDifferences) {
  SmallModel small(GetParam());
  model_begin(&small.model, small.ids, small.targets);
  small.forward(small.shape.layer_count - 1);
  small.backward(false);
  const std::vector<Numbers> once = small.gradients;
  EXPECT_NEAR(small.model.loss * 0.125, small.loss(), 1e-12);
  for (size_t i = 0; i < small.values.size(); ++i) {
    expect_gradient(small.shape.tensors[i].name, small.values[i], once[i], [&] { return small.loss(); });
  }

  model_begin(&small.model, small.ids, small.targets);
  small.forward(small.shape.layer_count - 1);
  small.backward(true);
  for (size_t i = 0; i < once.size(); ++i) {
    for (size_t j = 0; j < once[i].size(); ++j) ASSERT_NEAR(small.gradients[i][j], 2 * once[i][j], 1e-12) << small.shape.tensors[i].name;
  }
}
INSTANTIATE_TEST_SUITE_P(Heads, GptModel, testing::Values(0, 1));

TEST(GptModelParts, OneSequenceInPartsIsTheWhole) {
  SmallModel small(1);
  struct model parts;
  ASSERT_EQ(model_create(&parts, &small.shape, 1, 4, 0), 0);
  model_begin(&small.model, small.ids, nullptr);
  small.forward(small.shape.layer_count);
  const Numbers whole(small.model.logits, small.model.logits + 4 * 7);
  std::swap(parts, small.model);
  for (const auto &[first, count] : {std::pair{0, 2}, std::pair{2, 1}, std::pair{3, 1}}) {
    model_continue(&small.model, small.ids, first, count);
    small.forward(small.shape.layer_count);
  }
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(small.model.logits[i], whole[i], 1e-12) << i;
  model_release(&parts);
}

TEST(GptShape, TensorsAreThoseOfGpt2) {
  struct shape shape;
  ASSERT_EQ(shape_of("gpt2", 1, &shape), 0);
  EXPECT_EQ(shape.parameters, 124439808);
  EXPECT_EQ(shape.tensor_count, 148);
  EXPECT_STREQ(shape.tensors[4].name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(shape.tensors[4].extents[0], 768);
  EXPECT_EQ(shape.tensors[4].extents[1], 2304);
  EXPECT_EQ(shape_of("gpt2", 0, &shape), 0);
  EXPECT_STREQ(shape.tensors[148].name, "lm_head.weight");
  EXPECT_EQ(shape_of("huge", 1, &shape), -1);
}

}  // namespace
