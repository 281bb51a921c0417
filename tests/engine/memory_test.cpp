/// @file What an optimizer costs: bytes against the formulas and the hook, elements sent against the formulas, growth of the gradient pool,
/// and allocations in the step path.
#include "tests/engine/counted_hook.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>

namespace {

std::atomic<int64_t> allocation_count{0};

void *counted_allocate(std::size_t nbytes) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (void *data = std::malloc(nbytes)) return data;
  throw std::bad_alloc();
}

}  // namespace

void *operator new(std::size_t nbytes) { return counted_allocate(nbytes); }
void *operator new[](std::size_t nbytes) { return counted_allocate(nbytes); }
void *operator new(std::size_t nbytes, const std::nothrow_t &) noexcept {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(nbytes);
}
void *operator new[](std::size_t nbytes, const std::nothrow_t &nothrow) noexcept { return operator new(nbytes, nothrow); }
void operator delete(void *data) noexcept { std::free(data); }
void operator delete[](void *data) noexcept { std::free(data); }
void operator delete(void *data, std::size_t) noexcept { std::free(data); }
void operator delete[](void *data, std::size_t) noexcept { std::free(data); }

namespace zero::test::memory_test {
namespace {

MemoryUse use_of(const Optimizer &optimizer, int32_t category) {
  MemoryUse use{};
  EXPECT_TRUE(optimizer.memory(category, &use).ok());
  return use;
}

Model plain_model(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {4096, 100, 3000, 0, 10'000, 256};
  return model;
}

std::shared_ptr<Optimizer> unsealed(const std::shared_ptr<Group> &group, const Config &config, const Model &model) {
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  for (size_t i = 0; i < model.counts.size(); ++i) {
    int64_t id = 0;
    EXPECT_TRUE(optimizer->add_param(nullptr, ("p" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &model.counts[i], 1, &id).ok());
  }
  return optimizer;
}

class CostOfStages : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(StageRanks, CostOfStages, testing::Combine(testing::Range<int64_t>(0, 4), testing::Values(1, 2, 4)));

TEST_P(CostOfStages, IsTheFormulaAndAConstantAsTheHookSeesIt) {
  const auto [stage, ranks] = GetParam();
  const Model model = plain_model(ranks);
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 16'384;
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    CountedHook hook;
    Config config = make_config(model, manner);
    config.hook = hook.table();
    {
      const std::shared_ptr<Optimizer> optimizer = unsealed(group, config, model);
      ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
      begin_training(*optimizer, model, manner);
      for (int64_t step = 0; step < 3; ++step) {
        train_step(*optimizer, model, manner, step);
        for (int64_t id = 0; id < model.tensors(); ++id) {
          void *data = nullptr;
          ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)).ok());
          ASSERT_TRUE(optimizer->param_release(id).ok());
        }
      }
      const int64_t elements = std::accumulate(model.counts.begin(), model.counts.end(), int64_t{0});
      const int64_t own = owned_count(*optimizer);
      const int64_t formulas[] = {16 * elements, 8 * elements + 8 * own, 4 * elements + 12 * own, 16 * own};
      EXPECT_EQ(use_of(*optimizer, ZERO_MEMORY_TOTAL).formula_nbytes, formulas[stage]);
      int64_t sum = 0;
      for (int32_t category = ZERO_MEMORY_PARAM; category <= ZERO_MEMORY_BUFFER; ++category) {
        const MemoryUse use = use_of(*optimizer, category);
        EXPECT_LE(use.now_nbytes, use.formula_nbytes + use.constant_nbytes) << category;
        EXPECT_GE(use.peak_nbytes, use.now_nbytes);
        sum += use.now_nbytes;
      }
      EXPECT_EQ(use_of(*optimizer, ZERO_MEMORY_TOTAL).now_nbytes, sum);
      EXPECT_EQ(hook.nbytes(), sum - use_of(*optimizer, ZERO_MEMORY_STAGING).now_nbytes);
      EXPECT_EQ(optimizer->step_times().pool_grow_count, 0);
      EXPECT_NE(optimizer->describe().find("memory: N ranks"), std::string::npos);
    }
    EXPECT_EQ(hook.private_nbytes, 0);
    EXPECT_EQ(hook.shared_nbytes, 0);
  });
}

TEST_P(CostOfStages, ElementsSentAreTheFormulas) {
  const auto [stage, ranks] = GetParam();
  const Model model = plain_model(ranks);
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 16'384;
  std::atomic<int64_t> reduced{0};
  std::atomic<int64_t> gathered{0};
  constexpr int64_t kSteps = 3;
  int64_t padded = 0;
  run_world(ranks, [&, stage = stage](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const int64_t before_gather = optimizer->traffic(OperationKind::all_gather).sent_elements;
    for (int64_t step = 0; step < kSteps; ++step) {
      // A forward and a backward pass gather each tensor once in stage 3.
      for (int pass = 0; pass < 2; ++pass) {
        for (size_t i = 0; i < model.counts.size(); ++i) {
          void *data = nullptr;
          ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(static_cast<int64_t>(i), nullptr, 0, &data)).ok());
          ASSERT_TRUE(optimizer->param_release(static_cast<int64_t>(i)).ok());
        }
      }
      train_step(*optimizer, model, manner, step);
    }
    reduced += optimizer->traffic(OperationKind::reduce_scatter).sent_elements;
    gathered += optimizer->traffic(OperationKind::all_gather).sent_elements - before_gather;
    if (group->rank() == 0) {
      const Weights equal(model.ranks);
      std::vector<int64_t> ids(model.counts.size());
      std::iota(ids.rbegin(), ids.rend(), 0);
      std::vector<TensorShape> tensors;
      for (const int64_t count : model.counts) tensors.push_back({count});
      const std::vector<SpaceShape> spaces = {{manner.bucket_nbytes / 4}};
      const Plan plan({tensors, spaces, ids, equal, 0});
      for (const PlannedBucket &bucket : plan.buckets()) padded += bucket.flat.count();
    }
    EXPECT_EQ(optimizer->traffic(OperationKind::all_reduce).call_count, ranks == 1 ? 0 : kSteps);
    (void)stage;
  });
  // Over all ranks: P (N - 1) for a reduction or a gather, and for each slot that ranks of one memory write for one another: in stage 0
  // those of moments too. Buckets move with their gaps, tensors of stage 3 without.
  const int64_t elements = std::accumulate(model.counts.begin(), model.counts.end(), int64_t{0});
  const int64_t per_pass = padded * (ranks - 1);
  EXPECT_EQ(reduced, kSteps * per_pass);
  constexpr int64_t kSlots = 3;
  EXPECT_EQ(gathered, kSteps * (stage == 3 ? 2 * elements * (ranks - 1) : stage == 0 ? kSlots * per_pass : per_pass));
  EXPECT_LT(padded - elements, elements / 50);
  std::printf("stage %lld ranks %lld: elements sent per step %lld (formula %lld)\n", static_cast<long long>(stage),
              static_cast<long long>(ranks), static_cast<long long>((reduced + gathered) / kSteps),
              static_cast<long long>((stage == 3   ? 3
                                      : stage == 0 ? 1 + kSlots
                                                   : 2) *
                                     elements * (ranks - 1)));
}

TEST_P(CostOfStages, StepsAfterTheSecondAllocateNothing) {
  const auto [stage, ranks] = GetParam();
  const Model model = plain_model(ranks);
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 16'384;
  for (const bool overlap : {false, true}) {
    manner.overlap = overlap;
    manner.param_ranks = ranks / 2;  // in stage 3
    std::atomic<int64_t> allocated{0};
    std::barrier all_ranks(ranks);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      const std::vector<float> grad(10'000, 0.5F);
      for (int64_t step = 0; step < 10; ++step) {
        if (step == 2) {
          all_ranks.arrive_and_wait();
          if (group->rank() == 0) allocated = allocation_count.load();
          all_ranks.arrive_and_wait();
        }
        for (auto id = static_cast<int64_t>(model.counts.size()) - 1; id >= 0; --id) {
          void *data = nullptr;
          ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)).ok());
          ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, model.counts[static_cast<size_t>(id)]).ok());
          ASSERT_TRUE(optimizer->param_release(id).ok());
        }
        if (step != 5) {
          ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
          continue;
        }
        ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->apply()).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
      }
      if (group->rank() == 0) allocated = allocation_count.load() - allocated;
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    });
    EXPECT_EQ(allocated, 0) << "overlap " << overlap;
  }
}

class PoolOfStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, PoolOfStages, testing::Values(2, 3));

Config pool_config(const Model &model, const Manner &manner, int64_t limit) {
  Config config = make_config(model, manner);
  EXPECT_TRUE(config.set_i64(ZERO_KEY_POOL_LIMIT, limit).ok());
  return config;
}

std::shared_ptr<Optimizer> pool_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, int64_t limit,
                                          Status *out_status) {
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, pool_config(model, manner, limit), &optimizer).ok());
  int64_t id = 0;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    EXPECT_TRUE(optimizer->add_param(nullptr, ("p" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &model.counts[i], 1, &id).ok());
  }
  *out_status = group->queue()->run(optimizer->seal());
  if (out_status->ok()) begin_training(*optimizer, model, manner);
  return optimizer;
}

TEST_P(PoolOfStages, GrowsInACountedWayWhenGradientsComeInTheWrongOrder) {
  Model model;
  model.ranks = 2;
  model.counts = {1024, 1024, 1024, 1024, 1024};
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 4096;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Status status;
    const auto optimizer = pool_optimizer(group, model, manner, 0, &status);
    const std::vector<float> grad(1024, 1.0F);
    for (int64_t step = 0; step < 3; ++step) {
      for (int64_t id = 0; id < 5; ++id) ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, 1024).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      EXPECT_EQ(optimizer->step_times().pool_grow_count, 3);
      EXPECT_EQ(optimizer->step_times().stalled_nbytes, (step + 1) * 4 * 4096);
    }
    const MemoryUse pool = use_of(*optimizer, ZERO_MEMORY_GRAD_POOL);
    EXPECT_EQ(pool.now_nbytes, 5 * 4096);
    EXPECT_EQ(pool.constant_nbytes, 2 * 4096);
  });
}

/// Without overlap only calls move reductions. Rank 1 waits in one that has nothing to do with them.
TEST_P(PoolOfStages, DoesNotGrowWhileAnotherRankWaitsInACall) {
  Model model;
  model.ranks = 2;
  model.counts = {1024, 1024, 1024, 1024, 1024};
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 4096;
  std::atomic<bool> waits{false};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Status status;
    const auto optimizer = pool_optimizer(group, model, manner, 0, &status);
    const std::vector<float> grad(1024, 1.0F);
    std::vector<float> moments(1024);
    const auto give = [&](int64_t id) { return optimizer->grad_ready(id, grad.data(), 0, 1024); };
    const auto read = [&] { return run_task(*optimizer, optimizer->read(0, ZERO_SLOT_FIRST_MOMENT, 0, moments.data(), 1024)); };
    if (group->rank() == 1) {
      ASSERT_TRUE(give(4).ok() && give(3).ok());
      waits = true;
      ASSERT_TRUE(read().ok());
      ASSERT_TRUE(give(2).ok());
    } else {
      while (!waits) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ASSERT_TRUE(give(4).ok() && give(3).ok() && give(2).ok());
      ASSERT_TRUE(read().ok());
    }
    ASSERT_TRUE(give(1).ok() && give(0).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    EXPECT_EQ(optimizer->step_times().pool_grow_count, 0);
  });
}

TEST_P(PoolOfStages, BeyondItsLimitIsAnErrorOnAllRanks) {
  Model model;
  model.ranks = 2;
  model.counts = {1024, 1024, 1024, 1024};
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 4096;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Status status;
    const auto optimizer = pool_optimizer(group, model, manner, 3 * 4096, &status);
    const std::vector<float> grad(1024, 1.0F);
    if (group->rank() == 0) {
      for (int64_t id = 0; id < 3; ++id) ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, 1024).ok());
      EXPECT_EQ(optimizer->grad_ready(3, grad.data(), 0, 1024).code(), ZERO_E_POOL_LIMIT);
      EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_POOL_LIMIT);
    } else {
      EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_PEER_FAILED);
    }
  });
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Status status;
    const auto optimizer = pool_optimizer(group, model, manner, 4000, &status);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
    // One bucket is enough for gradients that come in order.
    const auto narrow = pool_optimizer(group, model, manner, 4096, &status);
    ASSERT_TRUE(status.ok()) << status.text();
    for (int64_t step = 0; step < 3; ++step) train_step(*narrow, model, manner, step);
    EXPECT_EQ(use_of(*narrow, ZERO_MEMORY_GRAD_POOL).peak_nbytes, 4096);
  });
}

TEST(Pool, RanksInOppositeOrdersThatWaitForEachOtherGoOn) {
  Model model;
  model.ranks = 2;
  model.counts = {1024, 1024, 1024, 1024};
  Manner manner;
  manner.stage = 3;
  manner.bucket_nbytes = 4096;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const std::vector<float> grad(1024, 1.0F);
    const bool first = group->rank() == 0;
    // Rank 0 needs a third buffer before the gather that rank 1 waits in; rank 1 gives its gradients only after it.
    if (first) {
      for (int64_t id = 3; id >= 0; --id) ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, 1024).ok());
    }
    void *data = nullptr;
    ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(2, nullptr, 0, &data)).ok());
    ASSERT_TRUE(optimizer->param_release(2).ok());
    if (!first) {
      for (int64_t id = 0; id < 4; ++id) ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, 1024).ok());
    }
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
  });
}

TEST(Release, WhileReductionsAreUnderWayReturnsAndTellsTheOthers) {
  Model model;
  model.ranks = 2;
  model.counts = {1024, 1024};
  Manner manner;
  manner.stage = 2;
  manner.bucket_nbytes = 4096;
  for (const bool overlap : {false, true}) {
    manner.overlap = overlap;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      auto optimizer = make_optimizer(group, model, manner);
      begin_training(*optimizer, model, manner);
      const std::vector<float> grad(1024, 1.0F);
      if (group->rank() == 0) {
        ASSERT_TRUE(optimizer->grad_ready(1, grad.data(), 0, 1024).ok());
        optimizer.reset();
      } else {
        EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_PEER_LEFT);
      }
    });
  }
}

/// Memory that a hook gives, but for the call `failing`.
struct ShortHook {
  int64_t calls = 0;
  int64_t failing = -1;

  AllocatorHook table() {
    return {[](uint64_t nbytes, uint64_t alignment, void *user) -> void * {
              auto *hook = static_cast<ShortHook *>(user);
              return hook->calls++ == hook->failing ? nullptr : std::aligned_alloc(alignment, nbytes);
            },
            [](void *data, uint64_t, void *) { std::free(data); }, nullptr, this};
  }
};

TEST(SealAgain, AfterMemoryWasShortCostsAndDoesTheSame) {
  const Model model = plain_model(2);
  Manner manner;
  manner.stage = 2;
  manner.bucket_nbytes = 16'384;
  int64_t failures = 0;
  for (int64_t failing = 0;; ++failing) {
    bool sealed_at_once = false;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      ShortHook hook;
      if (group->rank() == 1) hook.failing = failing;
      Config config = make_config(model, manner);
      config.hook = hook.table();
      const std::shared_ptr<Optimizer> optimizer = unsealed(group, config, model);
      const int64_t order[] = {1, 0};
      ASSERT_TRUE(optimizer->set_gather_order(order, 2).ok());
      const Status first = group->queue()->run(optimizer->seal());
      if (group->rank() == 1) sealed_at_once = first.ok();
      if (!first.ok()) {
        EXPECT_EQ(first.code(), group->rank() == 1 ? ZERO_E_OUT_OF_MEMORY : ZERO_E_PEER_FAILED) << first.text();
        ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok()) << failing;
      }
      begin_training(*optimizer, model, manner);
      for (int64_t step = 0; step < 3; ++step) (void)train_step(*optimizer, model, manner, step);
      const auto untouched = begun_optimizer(group, model, manner);
      for (int64_t step = 0; step < 3; ++step) (void)train_step(*untouched, model, manner, step);
      EXPECT_EQ(use_of(*optimizer, ZERO_MEMORY_GRAD_POOL).peak_nbytes, use_of(*untouched, ZERO_MEMORY_GRAD_POOL).peak_nbytes);
      EXPECT_EQ(differing(read_slot(*optimizer, model, ZERO_SLOT_PARAM), read_slot(*untouched, model, ZERO_SLOT_PARAM)), 0);
    });
    if (HasFailure() || sealed_at_once) break;
    ++failures;
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace zero::test::memory_test
