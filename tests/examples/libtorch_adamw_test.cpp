/// @file libtorch_adamw_test: examples/libtorch: libzero's AdamW and torch's, given equal gradients, compared bit for bit; and what the
/// adapter refuses.
#include <ATen/Version.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "examples/libtorch/classifier.h"
#include "examples/libtorch/sharded_adamw.h"
#include "tests/examples/embedding_world.h"

namespace embedding {
namespace {

constexpr int64_t kSamples = 16;
constexpr int kSteps = 12;

Values values_of(const torch::Tensor &tensor) {
  const torch::Tensor whole = tensor.detach().contiguous();
  return {whole.data_ptr<float>(), whole.data_ptr<float>() + whole.numel()};
}

/// The batch of a step, the same on every rank; no files needed.
Samples batch_of(int step) {
  const torch::Tensor numbers = torch::arange(kSamples * kPixels, torch::kFloat32).add_(static_cast<double>(step) * 7919);
  return {numbers.mul(0.37).sin_().reshape({kSamples, 1, kSide, kSide}), torch::arange(kSamples).add(step).remainder(10)};
}

torch::Tensor loss_of(const torch::Tensor &logits, const Samples &samples) {
  return torch::nn::functional::cross_entropy(logits, samples.labels);
}

double lr_of(int step) { return 0.004 * (1.0 - static_cast<double>(step) / kSteps); }

/// A training with torch::optim::AdamW, and what another optimizer needs to repeat it.
struct Reference {
  std::vector<Values> first;                   ///< by parameter
  std::vector<std::vector<Values>> gradients;  ///< by step and parameter
  std::vector<Values> last;
  std::vector<float> losses;
};

Reference train_with_torch() {
  Reference reference;
  torch::nn::Sequential model = make_classifier(1);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions());
  for (const torch::Tensor &parameter : model->parameters()) reference.first.push_back(values_of(parameter));
  for (int step = 0; step < kSteps; step++) {
    const Samples samples = batch_of(step);
    optimizer.param_groups()[0].options().set_lr(lr_of(step));
    optimizer.zero_grad();
    const torch::Tensor loss = loss_of(model->forward(samples.images), samples);
    loss.backward();
    optimizer.step();
    reference.losses.push_back(loss.item<float>());
    reference.gradients.emplace_back();
    for (const torch::Tensor &parameter : model->parameters()) reference.gradients.back().push_back(values_of(parameter.grad()));
  }
  for (const torch::Tensor &parameter : model->parameters()) reference.last.push_back(values_of(parameter));
  return reference;
}

const Reference &reference() {
  static const Reference reference = train_with_torch();
  return reference;
}

void expect_same(const std::vector<Values> &found, const std::vector<Values> &expected, const std::string &what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); i++) EXPECT_EQ(differing(found[i], expected[i]), 0) << what << ", parameter " << i;
}

/// Worlds of one and of two ranks, in which every rank has the same batch, at all stages.
class LibtorchAdamW : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {
 protected:
  int64_t size() const { return std::get<0>(GetParam()); }
  int64_t stage() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Worlds, LibtorchAdamW, testing::Combine(testing::Values(1, 2), testing::Values(0, 1, 2, 3)));

TEST_P(LibtorchAdamW, TorchsUpdateOnShardsHasTheBitsOfTorch) {
  in_world(size(), [this](zero_group *group, int64_t rank) {
    torch::nn::Sequential model = make_classifier(1 + rank);  // rank 0's values count
    ShardedAdamW optimizer(model, torch::optim::AdamWOptions(), group, stage_config(stage()), true);
    for (int step = 0; step < kSteps; step++) {
      const Samples samples = batch_of(step);
      optimizer.param_groups()[0].options().set_lr(lr_of(step));
      optimizer.zero_grad();
      const torch::Tensor loss = loss_of(optimizer.forward(samples.images), samples);
      loss.backward();
      optimizer.step();
      EXPECT_EQ(loss.item<float>(), reference().losses[static_cast<size_t>(step)]) << "step " << step;
    }
    std::vector<Values> last;
    optimizer.acquire();
    for (const torch::Tensor &parameter : model->parameters()) last.push_back(values_of(parameter));
    optimizer.release();
    expect_same(last, reference().last, "rank " + std::to_string(rank));
  });
}

/// libzero's AdamW on the reference's gradients.
std::vector<Values> train_with_libzero(zero_group *group, int64_t stage) {
  const ConfigHandle config = stage_config(stage);
  const OptimizerHandle optimizer = make_optimizer(group, config);
  const auto count = static_cast<int64_t>(reference().first.size());
  for (int64_t i = 0; i < count; i++) {
    const auto elements = static_cast<int64_t>(reference().first[i].size());
    int64_t id = 0;
    check(zero_optimizer_add_param(optimizer.get(), nullptr, std::to_string(i).c_str(), ZERO_DTYPE_F32, &elements, 1, &id));
  }
  check(zero_optimizer_seal(optimizer.get()));
  for (int64_t i = 0; i < count; i++) {
    const Values &first = reference().first[i];
    check(zero_optimizer_write(optimizer.get(), i, ZERO_SLOT_PARAM, 0, first.data(), static_cast<int64_t>(first.size()), nullptr));
  }
  check(zero_optimizer_begin(optimizer.get(), ZERO_SOURCE_SHARDS));
  for (int step = 0; step < kSteps; step++) {
    check(zero_optimizer_set_f64(optimizer.get(), 0, ZERO_KEY_LR, lr_of(step)));
    for (int64_t i = count - 1; i >= 0; i--) {
      const Values &gradient = reference().gradients[step][i];
      check(zero_optimizer_grad_ready(optimizer.get(), i, gradient.data(), 0, static_cast<int64_t>(gradient.size()), nullptr));
    }
    check(zero_optimizer_step(optimizer.get(), nullptr, nullptr));
  }
  std::vector<Values> last = reference().first;
  for (int64_t i = 0; i < count; i++) {
    check(zero_optimizer_read(optimizer.get(), i, ZERO_SLOT_PARAM, 0, last[i].data(), static_cast<int64_t>(last[i].size()), nullptr));
  }
  return last;
}

/// Constants of a step, computed in double and rounded once.
struct Constants {
  explicit Constants(int step)
      : decay(static_cast<float>(1 - lr_of(step) * 0.01)),
        negative_step(static_cast<float>(-lr_of(step) / (1 - std::pow(0.9, step + 1)))),
        root(static_cast<float>(std::sqrt(1 - std::pow(0.999, step + 1)))) {}
  float decay;
  float negative_step;
  float root;
};

constexpr auto kMomentWeight = static_cast<float>(1 - 0.9);
constexpr auto kSquareWeight = static_cast<float>(1 - 0.999);

/// The new first moment: as kernels/adam.h documents it, and as the C++ front end of libtorch computes it.
float interpolated(float m, float g) { return std::fma(kMomentWeight, g - m, m); }
float decayed(float m, float g) { return std::fma(kMomentWeight, g, m * 0.9f); }

/// The formula that kernels/adam.h documents, element by element, but for its first moment.
std::vector<Values> train_by_formula(float first_moment(float m, float g)) {
  std::vector<Constants> constants;
  for (int step = 0; step < kSteps; step++) constants.emplace_back(step);
  std::vector<Values> last = reference().first;
  for (size_t i = 0; i < last.size(); i++) {
    for (size_t e = 0; e < last[i].size(); e++) {
      float p = last[i][e], m = 0, v = 0;
      for (int step = 0; step < kSteps; step++) {
        const float g = reference().gradients[step][i][e];
        p *= constants[step].decay;
        m = first_moment(m, g);
        v = std::fma(kSquareWeight * g, g, v * 0.999f);
        p += constants[step].negative_step * m / (std::sqrt(v) / constants[step].root + 1e-8f);
      }
      last[i][e] = p;
    }
  }
  return last;
}

/// AdamW as torch.optim.AdamW of PyTorch 2 computes it, in libtorch's operations.
std::vector<Values> train_by_recipe() {
  std::vector<Values> last;
  for (size_t i = 0; i < reference().first.size(); i++) {
    torch::Tensor p = torch::tensor(reference().first[i]);
    torch::Tensor m = torch::zeros_like(p);
    torch::Tensor v = torch::zeros_like(p);
    for (int step = 0; step < kSteps; step++) {
      const torch::Tensor g = torch::tensor(reference().gradients[step][i]);
      p.mul_(1 - lr_of(step) * 0.01);
      m.lerp_(g, 1 - 0.9);
      v.mul_(0.999).addcmul_(g, g, 1 - 0.999);
      const torch::Tensor divisor = (v.sqrt() / std::sqrt(1 - std::pow(0.999, step + 1))).add_(1e-8);
      p.addcdiv_(m, divisor, -lr_of(step) / (1 - std::pow(0.9, step + 1)));
    }
    last.push_back(values_of(p));
  }
  return last;
}

TEST_P(LibtorchAdamW, LibzerosUpdateHasTheBitsOfItsFormula) {
  static const std::vector<Values> expected = train_by_formula(interpolated);
  in_world(size(), [this](zero_group *group, int64_t rank) {
    expect_same(train_with_libzero(group, stage()), expected, "rank " + std::to_string(rank));
  });
}

/// Torch's kernels for CPUs without AVX2 multiply and add in two roundings.
bool torch_fuses() { return at::show_config().find("CPU capability usage: NO AVX") == std::string::npos; }

TEST(LibtorchAdamWFormula, IsThatOfPyTorch2InLibtorchsOperations) {
  if (!torch_fuses()) GTEST_SKIP() << "torch's kernels for this CPU have no fused multiply-add";
  expect_same(train_by_recipe(), train_by_formula(interpolated), "recipe and formula");
}

TEST(LibtorchAdamWFormula, DiffersFromTheFrontEndsInTheFirstMomentOnly) {
  if (!torch_fuses()) GTEST_SKIP() << "torch's kernels for this CPU have no fused multiply-add";
  expect_same(reference().last, train_by_formula(decayed), "front end and formula");
}

/// Representable numbers between two of the same sign.
int64_t ulps_between(float a, float b) {
  int32_t x = 0, y = 0;
  std::memcpy(&x, &a, sizeof x);
  std::memcpy(&y, &b, sizeof y);
  return std::abs(static_cast<int64_t>(x) - y);
}

struct Distance {
  int64_t elements = 0;
  int64_t other_bits = 0;
  int64_t most_ulps = 0;  ///< of parameters larger than a learning rate: near 0 units become arbitrarily small
  double farthest = 0;
};

Distance distance_between(const std::vector<Values> &a, const std::vector<Values> &b) {
  Distance distance;
  for (size_t i = 0; i < a.size(); i++) {
    distance.elements += static_cast<int64_t>(a[i].size());
    distance.other_bits += differing(a[i], b[i]);
    for (size_t e = 0; e < a[i].size(); e++) {
      distance.farthest = std::max(distance.farthest, std::abs(static_cast<double>(a[i][e]) - b[i][e]));
      if (std::abs(a[i][e]) > lr_of(0) && a[i][e] * b[i][e] > 0) {
        distance.most_ulps = std::max(distance.most_ulps, ulps_between(a[i][e], b[i][e]));
      }
    }
  }
  return distance;
}

TEST(LibtorchAdamWFormula, StaysCloseToTheFrontEnds) {
  const Distance distance = distance_between(train_by_formula(interpolated), reference().last);
  std::printf(
      "after %d steps %lld of %lld parameters have other bits than the front end's: by at most %lld units in the last place where "
      "|p| > lr, and %.2g lr anywhere\n",
      kSteps, static_cast<long long>(distance.other_bits), static_cast<long long>(distance.elements),
      static_cast<long long>(distance.most_ulps), distance.farthest / lr_of(0));
  EXPECT_GT(distance.other_bits, 0) << "the front end has libzero's bits: the README says otherwise";
  // A step moves a parameter by about lr; a few roundings (2^-24) of it, or of the parameter, differ.
  EXPECT_LE(distance.farthest, kSteps * lr_of(0) * std::ldexp(1, -20));
}

TEST(LibtorchAdapter, TakesParametersAwayBetweenUses) {
  in_world(2, [](zero_group *group, int64_t) {
    torch::nn::Sequential model = make_classifier(1);
    {
      ShardedAdamW optimizer(model, torch::optim::AdamWOptions(), group, stage_config(3));
      const Samples samples = batch_of(0);
      const torch::Tensor loss = loss_of(optimizer.forward(samples.images), samples);
      EXPECT_THROW(model->parameters()[0].data_ptr<float>(), c10::Error);
      loss.backward();
      for (const torch::Tensor &parameter : model->parameters()) {
        EXPECT_THROW(parameter.data_ptr<float>(), c10::Error);
        EXPECT_FALSE(parameter.grad().defined());
      }
      optimizer.step();
      const Memory memory = memory_of(optimizer);
      const int64_t whole = 345610 * static_cast<int64_t>(sizeof(float));
      EXPECT_LT(memory.parameters, whole * 6 / 10);
      EXPECT_LT(memory.gradients, whole * 6 / 10);
      EXPECT_LT(memory.states, whole * 12 / 10);
    }
    EXPECT_THROW(model->forward(batch_of(0).images), c10::Error);
  });
}

TEST(LibtorchAdapter, ARankWithoutSamplesChangesNothing) {
  in_world(2, [](zero_group *group, int64_t rank) {
    torch::nn::Sequential model = make_classifier(1);
    ShardedAdamW optimizer(model, torch::optim::AdamWOptions(), group, stage_config(3), true);
    for (int step = 0; step < kSteps; step++) {
      Samples samples = batch_of(step);
      if (rank == 1) samples = {samples.images.slice(0, 0, 0), samples.labels.slice(0, 0, 0)};
      optimizer.param_groups()[0].options().set_lr(lr_of(step));
      loss_of(optimizer.forward(samples.images), samples).backward();
      optimizer.step();
    }
    std::vector<Values> last;
    optimizer.acquire();
    for (const torch::Tensor &parameter : model->parameters()) last.push_back(values_of(parameter));
    optimizer.release();
    expect_same(last, reference().last, "rank " + std::to_string(rank));
  });
}

/// A layer with a parameter that its forward does not use.
struct HalfUsed : torch::nn::Module {
  HalfUsed() { unused = register_parameter("unused", torch::ones({5})); }
  torch::Tensor forward(const torch::Tensor &x) { return linear->forward(x); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 1));
  torch::Tensor unused;
};

TEST(LibtorchAdapter, AParameterThatIsNotUsedHasAGradientOfZero) {
  in_world(2, [](zero_group *group, int64_t) {
    for (const bool torch_update : {false, true}) {
      const torch::nn::Sequential model(std::make_shared<HalfUsed>());
      ShardedAdamW optimizer(model, torch::optim::AdamWOptions(0.1).weight_decay(0), group, stage_config(3), torch_update);
      std::vector<float> losses;
      for (int step = 0; step < 3; step++) {
        const torch::Tensor loss = optimizer.forward(torch::ones({2, 4})).square().mean();
        losses.push_back(loss.item<float>());
        loss.backward();
        optimizer.step();
      }
      EXPECT_LT(losses[2], losses[0]);
      optimizer.acquire();
      EXPECT_EQ(values_of(model->named_parameters()["0.unused"]), Values(5, 1.0F));
      optimizer.release();
    }
  });
}

TEST(LibtorchAdapter, StepsWithAClosure) {
  in_world(1, [](zero_group *group, int64_t) {
    torch::nn::Sequential model = make_classifier(1);
    ShardedAdamW optimizer(model, torch::optim::AdamWOptions(lr_of(0)), group, stage_config(3), true);
    const torch::NoGradGuard no_grad;
    const torch::Tensor loss = optimizer.step([&] {
      const Samples samples = batch_of(0);
      const torch::Tensor inside = loss_of(optimizer.forward(samples.images), samples);
      inside.backward();
      return inside;
    });
    EXPECT_EQ(loss.item<float>(), reference().losses[0]);
    EXPECT_EQ(loss_of(optimizer.forward(batch_of(1).images), batch_of(1)).item<float>(), reference().losses[1]);
  });
}

void expect_in(const std::string &part, const std::string &text) { EXPECT_NE(text.find(part), std::string::npos) << text; }

/// The text of what making an optimizer for a model throws, and its first step.
std::string refusal(const torch::nn::Sequential &model, const torch::optim::AdamWOptions &options = {}) {
  std::string text = "nothing was refused";
  in_world(1, [&](zero_group *group, int64_t) {
    try {
      ShardedAdamW optimizer(model, options, group, stage_config(1));
      optimizer.step();
    } catch (const c10::Error &error) {
      text = error.what_without_backtrace();
    }
  });
  return text;
}

TEST(LibtorchAdapter, RefusesWhatItCannotShard) {
  using torch::nn::Linear;
  using torch::nn::Sequential;
  Linear frozen(2, 2);
  frozen->weight.set_requires_grad(false);
  expect_in("0.weight: only trainable parameters", refusal(Sequential(frozen)));
  Linear wide(2, 2);
  wide->to(torch::kFloat64);
  expect_in("0.weight: only f32 parameters", refusal(Sequential(wide)));
  Linear part(2, 2);
  part->weight.set_data(torch::zeros({4, 2}).slice(0, 0, 2));
  expect_in("0.weight: shares its storage", refusal(Sequential(part)));
  const Linear twice(2, 2);
  expect_in("1.weight: belongs to an earlier layer too", refusal(Sequential(twice, twice)));
  expect_in("has no amsgrad", refusal(Sequential(Linear(2, 2)), torch::optim::AdamWOptions().amsgrad(true)));
}

TEST(LibtorchAdapter, ARankThatThrowsEndsTheOthers) {
  std::string told[2];
  in_world(2, [&](zero_group *group, int64_t rank) {
    try {
      torch::nn::Sequential model = make_classifier(1);
      ShardedAdamW optimizer(model, torch::optim::AdamWOptions(), group, stage_config(3));
      if (rank == 1) throw std::runtime_error("out of patience");
      const Samples samples = batch_of(0);
      loss_of(optimizer.forward(samples.images), samples).backward();
      optimizer.step();
    } catch (const std::exception &failure) {
      told[rank] = failure.what();
    }
  });
  EXPECT_EQ(told[1], "out of patience");
  expect_in("ZERO_E_ABORTED", told[0]);
}

}  // namespace
}  // namespace embedding
