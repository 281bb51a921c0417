/// @file What a step costs above its optimizer kernel: a world of one, AdamW in fp32, kernel and step interleaved on the same memory and
/// the same threads. usage: step_benchmark [options of Google Benchmark] [parameters]
#include "core/thread_pool.h"
#include "kernels/kernels.h"
#include "must.h"
#include "ratio_table.h"

#include <zero/zero.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using zero::bench::must;

constexpr int64_t kTensorElements = 1 << 20;
constexpr int kRepeats = 11;

/// An optimizer with `count` elements in tensors of kTensorElements, ready to step.
class Model {
 public:
  explicit Model(int64_t count) {
    must(zero_group_create_local(nullptr, 0, 1, nullptr, &group_));
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    // Without the progress thread all work happens in the calls that are timed.
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0));
    must(zero_optimizer_create(group_, config, &optimizer_));
    zero_config_release(config);
    for (int64_t begin = 0; begin < count; begin += kTensorElements) {
      const int64_t shape = std::min(kTensorElements, count - begin);
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(begin)).c_str(), ZERO_DTYPE_F32, &shape, 1, &id));
      counts_.push_back(shape);
    }
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_LOCAL));
    acquire_gradients();
    ready_gradients();
    step();  // touches all memory for the first time
    acquire_gradients();
    ready_gradients();
    must(zero_optimizer_reduce(optimizer_, nullptr, nullptr));
    find_views();
    must(zero_optimizer_gather(optimizer_, nullptr));
  }
  ~Model() {
    zero_optimizer_release(optimizer_);
    zero_group_release(group_);
  }
  Model(const Model &) = delete;

  void acquire_gradients() {
    for (size_t id = 0; id < counts_.size(); ++id) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, static_cast<int64_t>(id), nullptr, &data, &accumulate));
      if (!filled_) fill(static_cast<float *>(data), counts_[id]);
    }
    filled_ = true;
  }
  void ready_gradients() {
    for (size_t id = 0; id < counts_.size(); ++id) {
      must(zero_optimizer_grad_ready(optimizer_, static_cast<int64_t>(id), nullptr, 0, counts_[id], nullptr));
    }
  }
  void step() { must(zero_optimizer_step(optimizer_, nullptr, nullptr)); }

  /// The bare kernel over all views, each cut among the usable cores.
  void run_kernel() {
    const zero::kernels::UpdateKernel kernel = zero::kernels::active().adam;
    const zero::kernels::HyperParameters hyper{1e-3, 0, 0, 0, 0.9, 0.999, 1e-8, 0.01, ++kernel_steps_};
    const zero::kernels::Constants constants = zero::kernels::find_algorithm("adamw")->constants(hyper);
    const int64_t threads = zero::usable_cores();
    const auto views = static_cast<int64_t>(views_.size());
    zero::parallel_pieces(threads, [&](int64_t piece) {
      const zero::Range mine = zero::even_share(views, piece, threads);
      for (int64_t index = mine.begin; index < mine.end; ++index) kernel(views_[static_cast<size_t>(index)], constants);
    });
  }

 private:
  static void fill(float *data, int64_t count) {
    for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 1021 - 510) * 1e-4F;
  }
  void find_views() {
    int64_t count = 0;
    must(zero_optimizer_view_count(optimizer_, &count));
    for (int64_t index = 0; index < count; ++index) {
      zero::kernels::Slots slots{};
      slots.param = view(index, ZERO_SLOT_PARAM, &slots.count);
      slots.grad = view(index, ZERO_SLOT_GRAD, &slots.count);
      slots.state[0] = view(index, ZERO_SLOT_FIRST_MOMENT, &slots.count);
      slots.state[1] = view(index, ZERO_SLOT_SECOND_MOMENT, &slots.count);
      views_.push_back(slots);
    }
  }
  float *view(int64_t index, int32_t slot, int64_t *out_count) {
    int64_t id = 0;
    int64_t offset = 0;
    void *data = nullptr;
    must(zero_optimizer_view(optimizer_, index, slot, &id, &offset, out_count, &data));
    return static_cast<float *>(data);
  }

  zero_group *group_ = nullptr;
  zero_optimizer *optimizer_ = nullptr;
  std::vector<int64_t> counts_;
  std::vector<zero::kernels::Slots> views_;
  int64_t kernel_steps_ = 2;
  bool filled_ = false;
};

}  // namespace

int main(int argc, char **argv) {
  const std::vector<char *> arguments = zero::bench::begin_interleaved(argc, argv);
  const int64_t parameters = arguments.size() > 1 ? std::atoll(arguments[1]) : int64_t{1} << 26;
  if (parameters < 1) {
    std::fprintf(stderr, "step_benchmark: '%s' is no number of parameters\n", arguments[1]);
    return 2;
  }
  Model model(parameters);
  std::printf("world of one, %lld parameters, AdamW fp32, stage 1, overlap off, %lld cores, kernels %s\n",
              static_cast<long long>(parameters), static_cast<long long>(zero::usable_cores()), zero::kernels::active().target);
  zero::bench::RatioTable table(kRepeats);
  const auto give = [&model] {
    model.acquire_gradients();
    model.ready_gradients();
  };
  const auto ready_and_step = [&model] {
    model.ready_gradients();
    model.step();
  };
  table.add({"kernel", "", [&model] { model.run_kernel(); }, {}});
  table.add({"step", "kernel", [&model] { model.step(); }, give});
  table.add({"grad_ready + step", "kernel", ready_and_step, [&model] { model.acquire_gradients(); }});
  table.run();
  std::printf("goals: step <= 1.05, grad_ready + step <= 1.30\n");
  return 0;
}
