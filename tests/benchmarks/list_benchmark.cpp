/// @file What a list of tensors costs above one flat tensor: steps of a world of one, AdamW fp32. 2000 tensors of 64 elements, and the list
/// of GPT-2 small beside one tensor of as many elements, interleaved. usage: list_benchmark [options of Google Benchmark]
/// [--elements-scale=1.0]
#include "gpt2_shapes.h"
#include "must.h"
#include "options.h"
#include "ratio_table.h"

#include <memory>

namespace {

using namespace zero::bench;

constexpr int kRepeats = 15;
constexpr int64_t kTinyTensors = 2000;
constexpr int64_t kTinyElements = 64;

/// An optimizer over a list of tensors, alone in its world, with all gradients in the library's memory.
class Model {
 public:
  explicit Model(const std::vector<Tensor> &tensors) {
    zero_config *config = nullptr;
    must(zero_group_create_local(nullptr, 0, 1, nullptr, &group_));
    must(zero_config_create(&config));
    // Without the progress thread all work happens in the calls that are timed.
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0));
    must(zero_optimizer_create(group_, config, &optimizer_));
    zero_config_release(config);
    for (const Tensor &tensor : tensors) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, tensor.name.c_str(), ZERO_DTYPE_F32, tensor.shape.data(),
                                    static_cast<int64_t>(tensor.shape.size()), &id));
      counts_.push_back(tensor.count());
    }
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_LOCAL));
    acquire();
    fill();
    ready();
    step();
  }
  Model(const Model &) = delete;
  ~Model() {
    zero_optimizer_release(optimizer_);
    zero_group_release(group_);
  }

  void acquire() {
    gradients_.clear();
    for (size_t id = 0; id < counts_.size(); ++id) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, static_cast<int64_t>(id), nullptr, &data, &accumulate));
      gradients_.push_back(static_cast<float *>(data));
    }
  }
  void ready() {
    for (size_t id = 0; id < counts_.size(); ++id) {
      must(zero_optimizer_grad_ready(optimizer_, static_cast<int64_t>(id), nullptr, 0, counts_[id], nullptr));
    }
  }
  void step() { must(zero_optimizer_step(optimizer_, nullptr, nullptr)); }

 private:
  void fill() {
    for (size_t id = 0; id < counts_.size(); ++id) {
      for (int64_t i = 0; i < counts_[id]; ++i) gradients_[id][i] = static_cast<float>(i % 1021 - 510) * 1e-4F;
    }
  }

  zero_group *group_ = nullptr;
  zero_optimizer *optimizer_ = nullptr;
  std::vector<int64_t> counts_;
  std::vector<float *> gradients_;
};

/// Two rows: step alone, and with the calls that give the gradients.
void add_rows(RatioTable &table, const std::string &name, const std::string &reference, Model &model) {
  const auto titled = [](const std::string &what, const char *suffix) { return what.empty() ? what : what + suffix; };
  const auto give = [&model] {
    model.acquire();
    model.ready();
  };
  table.add({titled(name, ": step"), titled(reference, ": step"), [&model] { model.step(); }, give});
  const auto whole = [&model, give] {
    give();
    model.step();
  };
  table.add({titled(name, ": gradients + step"), titled(reference, ": gradients + step"), whole, {}});
}

std::vector<Tensor> tiny_tensors() {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < kTinyTensors; ++i) tensors.push_back({"t" + std::to_string(i), {kTinyElements}});
  return tensors;
}

}  // namespace

int main(int argc, char **argv) {
  std::vector<char *> left = begin_interleaved(argc, argv);
  Options options(static_cast<int>(left.size()), left.data(), "[--elements-scale=1.0]");
  const std::vector<Tensor> gpt2 = gpt2_shapes(options.fraction("elements-scale", 1));
  options.finish();
  const int64_t elements = total_count(gpt2);
  Model tiny(tiny_tensors());
  Model tiny_flat({{"flat", {kTinyTensors * kTinyElements}}});
  Model list(gpt2);
  Model flat({{"flat", {elements}}});
  std::printf("world of one, AdamW fp32, overlap off; GPT-2 list: %zu tensors, %lld elements\n", gpt2.size(),
              static_cast<long long>(elements));
  RatioTable table(kRepeats);
  add_rows(table, "2000 x 64, one tensor", "", tiny_flat);
  add_rows(table, "2000 x 64", "2000 x 64, one tensor", tiny);
  add_rows(table, "GPT-2, one tensor", "", flat);
  add_rows(table, "GPT-2 list", "GPT-2, one tensor", list);
  table.run();
  for (const char *what : {": step", ": gradients + step"}) {
    const Samples &samples = table.samples(std::string("2000 x 64") + what);
    const double each = 1e6 / static_cast<double>(kTinyTensors);
    std::printf("per tensor of 64%s: %.3f us [%.3f-%.3f]\n", what, each * samples.median(), each * samples.least(), each * samples.most());
  }
  std::printf("goals: step <= 0.25 us per tensor; GPT-2 list <= 1.02 of one tensor\n");
  return 0;
}
