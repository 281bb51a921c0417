/// @file A second domain on the host, which counts. An optimizer allocates, copies, sums and updates
/// through its memory domain alone, and the choice of the domain does not change a bit.
#include "engine/compute/host_kernels.h"
#include "tests/engine/layouts.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::memory_domain_test {
namespace {

/// Of one rank, whose calls come from one thread.
struct Counts {
  int64_t arena_count = 0;    ///< made
  int64_t held_nbytes = 0;    ///< by arenas, now
  int64_t kernel_count = 0;   ///< calls
  int64_t copied_nbytes = 0;  ///< by kernels
  int64_t moved_nbytes = 0;   ///< by groups
  int64_t summed_count = 0;   ///< f32 results of groups
  int64_t update_count = 0;
  int64_t segment_count = 0;  ///< in all updates

  bool operator==(const Counts &) const = default;
  friend std::ostream &operator<<(std::ostream &out, const Counts &counts) {
    return out << counts.arena_count << " arenas, " << counts.held_nbytes << " bytes held, " << counts.kernel_count << " calls, "
               << counts.copied_nbytes << " bytes copied, " << counts.moved_nbytes << " moved, " << counts.summed_count << " sums, "
               << counts.update_count << " updates of " << counts.segment_count << " segments";
  }
};

class CountingKernels final : public Kernels {
 public:
  CountingKernels(int64_t threads, Counts &counts) : host_(threads), counts_(counts) {}

  bool all_within(const void *values, DType dtype, int64_t count, float limit) const override {
    return on().all_within(values, dtype, count, limit);
  }
  void copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes) const override {
    counts_.copied_nbytes += count * dtype_nbytes(dtype);
    on().copy(out, values, dtype, count, total_nbytes);
  }
  bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const override {
    counts_.copied_nbytes += count * dtype_nbytes(dtype);
    return on().copy_within(out, values, dtype, count, limit, total_nbytes);
  }
  void clear(void *out, int64_t nbytes) const override { on().clear(out, nbytes); }
  void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes) const override {
    on().convert(out, out_dtype, values, dtype, count, total_nbytes);
  }
  void scale(float *out, const float *values, int64_t count, float factor) const override { on().scale(out, values, count, factor); }
  void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const override {
    on().add(sum, sum_dtype, values, dtype, count, factor);
  }
  void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const override {
    on().add_squares(values, dtype, count, sum);
  }
  void follow(float *masters, const void *values, DType dtype, int64_t count) const override { on().follow(masters, values, dtype, count); }
  void encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip) const override {
    on().encode(codes, values, dtype, count, may_skip);
  }
  void decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const override {
    on().decode(out, dtype, codes, count);
  }
  void agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const override {
    on().agree(masters, codes, count, lead);
  }
  Status hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const override { return on().hash(ranges, out); }
  int64_t workspace_count(int64_t matrices) const override { return host_.workspace_count(matrices); }
  void add_norms(std::span<const UpdateJob> jobs) override {
    ++counts_.kernel_count;
    host_.add_norms(jobs);
  }
  void update(std::span<const UpdateJob> jobs) override {
    ++counts_.kernel_count;
    ++counts_.update_count;
    counts_.segment_count += std::ssize(jobs);
    host_.update(jobs);
  }
  void set_counts(int64_t *counts, int64_t count, int64_t value) const override { on().set_counts(counts, count, value); }
  void count_updates(int64_t *counts, std::span<const int64_t> filled) const override { on().count_updates(counts, filled); }

 private:
  const HostKernels &on() const {
    ++counts_.kernel_count;
    return host_;
  }

  HostKernels host_;
  Counts &counts_;
};

class CountingReducer final : public Reducer {
 public:
  CountingReducer(int64_t threads, Counts &counts) : host_(threads), counts_(counts) {}

  /// Flags of steps travel as integers.
  bool reduce(const Reduction &reduction) const override {
    if (reduction.dtype == DType::f32) counts_.summed_count += reduction.count;
    return host_.reduce(reduction);
  }
  void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const override {
    counts_.moved_nbytes += nbytes;
    host_.copy(out, values, nbytes, total_nbytes);
  }

 private:
  const HostReducer host_;
  Counts &counts_;
};

class CountingDomain final : public MemoryDomain {
 public:
  CountingDomain(int64_t host_threads, std::unique_ptr<Device> given_device, Counts &counts)
      : MemoryDomain(host_threads, std::move(given_device)),
        counts_(counts),
        kernels_(host_threads, counts),
        hook_{allocate, free, share, &counts} {}

  MemorySource source(const MemorySource &host) const override {
    MemorySource source = host;
    source.hook = &hook_;
    return source;
  }
  Kernels &kernels() const override { return kernels_; }
  std::shared_ptr<const Reducer> reducer(const Reducer &) const override { return std::make_shared<CountingReducer>(threads, counts_); }

 private:
  static void *allocate(uint64_t nbytes, uint64_t alignment, void *counts) {
    share(static_cast<int64_t>(nbytes), counts);
    return std::aligned_alloc(alignment, nbytes);
  }
  static void free(void *data, uint64_t nbytes, void *counts) {
    share(-static_cast<int64_t>(nbytes), counts);
    std::free(data);
  }
  static void share(int64_t delta, void *counts) {
    static_cast<Counts *>(counts)->arena_count += delta > 0 ? 1 : 0;
    static_cast<Counts *>(counts)->held_nbytes += delta;
  }

  Counts &counts_;
  mutable CountingKernels kernels_;
  const AllocatorHook hook_;
};

/// `counts` must outlive the optimizer.
MakeDomain counting(Counts &counts) {
  return [&counts](int64_t threads, std::unique_ptr<Device> device) -> std::unique_ptr<MemoryDomain> {
    return std::make_unique<CountingDomain>(threads, std::move(device), counts);
  };
}

Model model_of(int64_t ranks, const char *algorithm = "adamw") {
  Model model;
  model.ranks = ranks;
  model.counts = {3072, 256, 0, 1024, 70'000};
  model.algorithm = algorithm;
  model.steps = 4;
  return model;
}

Manner manner_of(int64_t stage, bool caller_memory) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 16'384;
  manner.caller_memory = caller_memory;
  return manner;
}

/// Every bucket of which a rank updates something is one segment.
int64_t own_segments(const Layout &layout) {
  const auto &buckets = layout.plan().buckets();
  return std::count_if(buckets.begin(), buckets.end(), [](const PlannedBucket &bucket) { return !bucket.own.empty(); });
}

int64_t own_elements(const Layout &layout) {
  int64_t count = 0;
  for (const PlannedBucket &bucket : layout.plan().buckets()) count += bucket.own.count();
  return count;
}

struct Case {
  int64_t ranks;
  int64_t stage;
};

class CountingMemory : public testing::TestWithParam<Case> {};

TEST_P(CountingMemory, KeepsTheBitsAndCountsWhatTheLayoutSays) {
  const auto [ranks, stage] = GetParam();
  const Model model = model_of(ranks);
  const Manner manner = manner_of(stage, true);
  const Registered registered(model, manner);
  const int64_t elements = std::accumulate(model.counts.begin(), model.counts.end(), int64_t{0});
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const Outcome plain = train(group, model, manner);
    Counts counts[2];
    for (Counts &each : counts) {
      Manner counted = manner;
      counted.domain = counting(each);
      EXPECT_EQ(differing(plain, train(group, model, counted)), 0);
    }
    EXPECT_EQ(counts[0], counts[1]) << "runs differ";
    const Layout layout = registered.layout_of(group->rank());
    EXPECT_EQ(counts[0].update_count, model.steps);
    EXPECT_EQ(counts[0].segment_count, model.steps * own_segments(layout)) << counts[0];
    EXPECT_EQ(counts[0].summed_count, ranks == 1 ? 0 : model.steps * own_elements(layout)) << counts[0];
    const int64_t first_values = stage == 3 && ranks > 1 ? own_elements(layout) : 0;  // in stage 3 they become shards
    EXPECT_EQ(counts[0].copied_nbytes, 4 * (model.steps * elements + first_values)) << counts[0];
    EXPECT_GT(counts[0].kernel_count, counts[0].update_count);
    EXPECT_GT(counts[0].arena_count, 0);
    EXPECT_GT(counts[0].moved_nbytes, 0);
    EXPECT_EQ(counts[0].held_nbytes, 0) << "not given back";
  });
}

TEST_P(CountingMemory, HoldsWhatTheAccountSays) {
  const auto [ranks, stage] = GetParam();
  const Model model = model_of(ranks, "muon");
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    Counts counts;
    Manner manner = manner_of(stage, false);
    manner.domain = counting(counts);
    const auto optimizer = begun_optimizer(group, model, manner);
    const int64_t copied_nbytes = counts.copied_nbytes;
    for (int64_t step = 0; step < model.steps; ++step) {
      train_step(*optimizer, model, manner, step);
      MemoryUse all{};
      MemoryUse staging{};
      expect_ok(optimizer->memory(ZERO_MEMORY_TOTAL, &all), "memory");
      expect_ok(optimizer->memory(ZERO_MEMORY_STAGING, &staging), "memory");
      EXPECT_EQ(counts.held_nbytes, all.now_nbytes - staging.now_nbytes);
    }
    EXPECT_EQ(counts.copied_nbytes, copied_nbytes) << "gradients lie where they are reduced";
  });
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const int64_t ranks : {1, 2, 3}) {
    for (int64_t stage = 0; stage < 4; ++stage) list.push_back({ranks, stage});
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Worlds, CountingMemory, testing::ValuesIn(cases()), [](const auto &each) {
  return "Ranks" + std::to_string(each.param.ranks) + "Stage" + std::to_string(each.param.stage);
});

}  // namespace
}  // namespace zero::test::memory_domain_test
