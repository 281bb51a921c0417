/// @file dlib_adam_test: examples/dlib: dlib::adam on libzero's shards against dlib::adam alone, bit for bit; and libzero's AdamW beside
/// both.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "examples/dlib/classifier.h"
#include "examples/dlib/sharded_adamw.h"
#include "tests/examples/embedding_world.h"

namespace embedding {
namespace {

constexpr int64_t kSamples = 8;
constexpr int kSteps = 8;
const dlib::adam kAdam(0, 0.9f, 0.999f);

/// The batch of a step, the same on every rank; no files needed.
Samples batch_of(int step) {
  Samples samples;
  for (int64_t i = 0; i < kSamples; i++) {
    Image image(kSide, kSide);
    for (int64_t p = 0; p < kPixels; p++) image(p / kSide, p % kSide) = static_cast<unsigned char>((p * (i + 3) + 7919 * step) % 251);
    samples.images.push_back(image);
    samples.labels.push_back(static_cast<unsigned long>((i + step) % 10));
  }
  return samples;
}

double lr_of(int step) { return 0.004 * (1.0 - static_cast<double>(step) / kSteps); }

/// Parameters, or gradients, of all layers.
Values parameters_of(Classifier &net) {
  Values all;
  dlib::visit_layer_parameters(net, [&](dlib::tensor &tensor) { all.insert(all.end(), tensor.begin(), tensor.end()); });
  return all;
}

Values gradients_of(Classifier &net) {
  Values all;
  dlib::visit_layer_parameter_gradients(net, [&](dlib::tensor &tensor) { all.insert(all.end(), tensor.begin(), tensor.end()); });
  return all;
}

/// A net without dlib's random numbers: values of some size for every parameter.
void initialise_alike(Classifier &net, int64_t seed) {
  net(batch_of(0).images[0]);
  double at = static_cast<double>(seed);
  dlib::visit_layer_parameters(net, [&](dlib::tensor &tensor) {
    for (float &value : tensor) value = static_cast<float>(0.07 * std::sin(at += 1.7));
  });
}

/// A training with dlib::adam, and what another optimizer needs to repeat it.
struct Reference {
  std::vector<Values> gradients;  ///< by step
  Values last;
  std::vector<double> losses;
};

Reference train_with_dlib() {
  Reference reference;
  Classifier net;
  initialise_alike(net, 1);
  std::vector<dlib::adam> solvers(Classifier::num_computational_layers, kAdam);
  for (int step = 0; step < kSteps; step++) {
    reference.losses.push_back(find_gradients(net, batch_of(step)));
    reference.gradients.push_back(gradients_of(net));
    net.update_parameters(dlib::make_sstack(solvers), lr_of(step));
  }
  reference.last = parameters_of(net);
  return reference;
}

const Reference &reference() {
  static const Reference reference = train_with_dlib();
  return reference;
}

/// Worlds of one and of two ranks, in which every rank has the same batch, at all stages.
class DlibAdam : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {
 protected:
  int64_t size() const { return std::get<0>(GetParam()); }
  int64_t stage() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Worlds, DlibAdam, testing::Combine(testing::Values(1, 2), testing::Values(0, 1, 2, 3)));

TEST_P(DlibAdam, DlibsUpdateOnShardsHasTheBitsOfDlib) {
  in_world(size(), [this](zero_group *group, int64_t rank) {
    Classifier net;
    initialise_alike(net, 1 + rank);  // rank 0's values count
    ShardedAdamW optimizer(net, kAdam, group, stage_config(stage()), true);
    for (int step = 0; step < kSteps; step++) {
      const Samples samples = batch_of(step);
      EXPECT_EQ(find_gradients(net, samples), reference().losses[static_cast<size_t>(step)]) << "step " << step;
      optimizer.update_parameters(lr_of(step), samples.count());
    }
    EXPECT_EQ(differing(parameters_of(net), reference().last), 0) << "rank " << rank;
  });
}

/// libzero's AdamW on the reference's gradients.
Values train_with_libzero(zero_group *group, int64_t stage) {
  Classifier net;
  initialise_alike(net, 1);
  find_gradients(net, batch_of(0));  // dlib allocates gradients when it first finds them
  ShardedAdamW optimizer(net, kAdam, group, stage_config(stage));
  for (int step = 0; step < kSteps; step++) {
    const float *from = reference().gradients[static_cast<size_t>(step)].data();
    dlib::visit_layer_parameter_gradients(net, [&](dlib::tensor &tensor) {
      std::copy_n(from, tensor.size(), tensor.host());
      from += tensor.size();
    });
    optimizer.update_parameters(lr_of(step), kSamples);
  }
  return parameters_of(net);
}

TEST_P(DlibAdam, LibzerosUpdateHasTheSameBitsInEveryWorldAndStage) {
  static Values first;
  in_world(1, [](zero_group *group, int64_t) {
    if (first.empty()) first = train_with_libzero(group, 0);
  });
  in_world(size(), [this](zero_group *group, int64_t rank) {
    EXPECT_EQ(differing(train_with_libzero(group, stage()), first), 0) << "rank " << rank;
  });
}

TEST(DlibAdamFormula, LibzerosUpdateStaysCloseToDlibs) {
  in_world(1, [](zero_group *group, int64_t) {
    const Values ours = train_with_libzero(group, 1);
    double farthest = 0;
    for (size_t i = 0; i < ours.size(); i++) farthest = std::max(farthest, std::abs(static_cast<double>(ours[i]) - reference().last[i]));
    std::printf("after %d steps %lld of %zu parameters have other bits than dlib's: by at most %.2g lr\n", kSteps,
                static_cast<long long>(differing(ours, reference().last)), ours.size(), farthest / lr_of(0));
    EXPECT_GT(farthest, 0) << "libzero has dlib's bits: the README says otherwise";
    // A step moves a parameter by about lr. dlib computes 1 - beta2^t in fp32, which is off by up to 2^-25 of 0.001 t.
    EXPECT_LE(farthest, kSteps * lr_of(0) * std::ldexp(1, -15));
  });
}

TEST(DlibAdapter, ARankWithoutSamplesChangesNothing) {
  in_world(2, [](zero_group *group, int64_t rank) {
    Classifier net;
    initialise_alike(net, 1);
    ShardedAdamW optimizer(net, kAdam, group, stage_config(3), true);
    for (int step = 0; step < kSteps; step++) {
      const Samples samples = rank == 0 ? batch_of(step) : Samples();
      find_gradients(net, samples);
      optimizer.update_parameters(lr_of(step), samples.count());
    }
    EXPECT_EQ(differing(parameters_of(net), reference().last), 0) << "rank " << rank;
  });
}

TEST(DlibAdapter, SaysThatANetMustHaveSeenAnInput) {
  in_world(1, [](zero_group *group, int64_t) {
    Classifier net;
    EXPECT_THROW(ShardedAdamW(net, kAdam, group, stage_config(1)), std::invalid_argument);
  });
}

}  // namespace
}  // namespace embedding
