/// @file Gradients and parameters of GPT-2 124M on a CUDA device, states on the host: what a step of one rank takes beside bare copies of
/// the same bytes through pinned memory, interleaved.
/// usage: device_benchmark [options of Google Benchmark] [--elements-scale=1] [--repeats=9]
#include "gpt2_shapes.h"
#include "must.h"
#include "options.h"
#include "samples.h"
#include "tests/memory/caller_device.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using zero::bench::must;
using zero::bench::Samples;
using Clock = std::chrono::steady_clock;

constexpr int64_t kElementNbytes = 4;

/// The caller's side: a gradient and a parameter of every tensor, on the device.
class Caller {
 public:
  explicit Caller(const std::vector<int64_t> &counts)
      : counts_(counts), stream_(caller_stream_create(0)), pinned_(static_cast<char *>(caller_pinned_alloc(kPinnedNbytes))) {
    for (const int64_t count : counts) {
      grads_.push_back(caller_alloc(0, count * kElementNbytes));
      params_.push_back(caller_alloc(0, count * kElementNbytes));
    }
  }
  Caller(const Caller &) = delete;
  ~Caller() {
    for (void *data : grads_) caller_free(data);
    for (void *data : params_) caller_free(data);
    caller_pinned_free(pinned_);
    caller_stream_destroy(stream_);
  }

  void *stream() const { return stream_; }
  void *grad(size_t i) const { return grads_[i]; }
  void *param(size_t i) const { return params_[i]; }

  /// The same bytes between the device and one piece of pinned memory, without anything else.
  void copy_bare(bool to_device) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      char *device = static_cast<char *>(to_device ? params_[i] : grads_[i]);
      for (int64_t begin = 0, nbytes = counts_[i] * kElementNbytes; begin < nbytes; begin += kPinnedNbytes) {
        const int64_t part = std::min(kPinnedNbytes, nbytes - begin);
        caller_copy(stream_, to_device ? device + begin : pinned_, to_device ? pinned_ : device + begin, part, 0);
      }
    }
    caller_wait(stream_);
  }

 private:
  static constexpr int64_t kPinnedNbytes = 16 << 20;
  const std::vector<int64_t> &counts_;
  void *stream_;
  char *pinned_;
  std::vector<void *> grads_, params_;
};

zero_optimizer *make_optimizer(zero_group *group, const std::vector<int64_t> &counts) {
  zero_config *config = nullptr;
  zero_optimizer *optimizer = nullptr;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_DEVICE, 0));
  must(zero_config_set_str(config, ZERO_KEY_CUDA_MODULE, caller_module()));
  must(zero_optimizer_create(group, config, &optimizer));
  zero_config_release(config);
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t id = 0;
    must(zero_optimizer_add_param(optimizer, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &counts[i], 1, &id));
  }
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  return optimizer;
}

void give_gradients(zero_optimizer *optimizer, const Caller &caller, const std::vector<int64_t> &counts) {
  for (size_t i = counts.size(); i-- > 0;) {
    must(zero_optimizer_grad_ready(optimizer, static_cast<int64_t>(i), caller.grad(i), 0, counts[i], caller.stream()));
  }
}

void take_parameters(zero_optimizer *optimizer, const Caller &caller, const std::vector<int64_t> &counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    void *data = nullptr;
    must(zero_optimizer_param_acquire(optimizer, static_cast<int64_t>(i), caller.param(i), counts[i], caller.stream(), &data));
    must(zero_optimizer_param_release(optimizer, static_cast<int64_t>(i)));
  }
  caller_wait(caller.stream());
}

template <class Function>
void measure(Samples &samples, Function &&function) {
  const auto begin = Clock::now();
  function();
  samples.add(std::chrono::duration<double>(Clock::now() - begin).count());
}

void print_row(const char *name, const Samples &samples, const Samples *bare) {
  std::printf("%-40s %10.2f %10.2f %10.2f", name, 1e3 * samples.median(), 1e3 * samples.least(), 1e3 * samples.most());
  if (bare != nullptr) std::printf(" %8.2f", samples.median() / bare->median());
  std::printf("\n");
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  zero::bench::Options options(argc, argv, "[--elements-scale=1] [--repeats=9]");
  const std::vector<zero::bench::Tensor> tensors = zero::bench::gpt2_shapes(options.fraction("elements-scale", 1));
  std::vector<int64_t> counts;
  for (const zero::bench::Tensor &tensor : tensors) counts.push_back(tensor.count());
  const int64_t repeats = options.number("repeats", 9);
  options.finish();
  if (*caller_missing() != '\0') zero::bench::fail("no device", caller_missing());

  zero_group *group = nullptr;
  must(zero_group_create_local("device_benchmark", 0, 1, nullptr, &group));
  zero_optimizer *optimizer = make_optimizer(group, counts);
  Samples bare_out, bare_in, give, step, take;
  {
    const Caller caller(counts);
    for (int64_t repeat = -1; repeat < repeats; ++repeat) {
      if (repeat == 0) bare_out = bare_in = give = step = take = {};
      measure(bare_out, [&] { caller.copy_bare(false); });
      measure(give, [&] { give_gradients(optimizer, caller, counts); });
      measure(step, [&] { must(zero_optimizer_step(optimizer, nullptr, nullptr)); });
      measure(bare_in, [&] { caller.copy_bare(true); });
      measure(take, [&] { take_parameters(optimizer, caller, counts); });
    }
  }
  std::printf("%zu tensors, %lld elements, AdamW fp32, gradients and parameters on device 0, states on the host\n", counts.size(),
              static_cast<long long>(zero::bench::total_count(tensors)));
  std::printf("%-40s %10s %10s %10s %8s\n", "", "median ms", "min ms", "max ms", "x bare");
  print_row("bare copies from the device", bare_out, nullptr);
  print_row("grad_ready of all tensors, with its scan", give, &bare_out);
  print_row("step", step, nullptr);
  print_row("bare copies to the device", bare_in, nullptr);
  print_row("param_acquire of all tensors", take, &bare_in);
  zero_optimizer_release(optimizer);
  zero_group_release(group);
  return 0;
}
