/// @file What narrow formats cost in memory: formula, accounting, allocator hook, and what the system counts for the ranks' processes.
#include "group/collectives.h"
#include "tests/engine/counted_hook.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

namespace zero::test::footprint_test {
namespace {

/// AdamW with bf16 gradients; bytes per element of the parameter, and of master and moments together.
struct Form {
  const char *name;
  int64_t master;
  bool narrow;  ///< moments of 8 bits
  bool coded;
  double param_nbytes;
  double state_nbytes;
};
constexpr Form kForms[] = {{"mixed, 16 bytes", ZERO_MASTER_F32, false, false, 2, 4 + 8},
                           {"remainder, 14 bytes", ZERO_MASTER_REMAINDER, false, false, 2, 2 + 8},
                           {"remainder and 8-bit states, 8 bytes", ZERO_MASTER_REMAINDER, true, false, 2, 2 + 2 + 8.0 / 256},
                           {"8-bit parameters, 15 bytes", ZERO_MASTER_F32, false, true, 1 + 4.0 / 256, 4 + 8}};

/// A few tensors as models have them: matrices, vectors, and some too small for a line.
Model model_of(const Form &form, int64_t ranks, int64_t elements) {
  Model model;
  model.ranks = ranks;
  for (int64_t layer = 0; layer < 4; ++layer) {
    model.counts.insert(model.counts.end(), {elements / 8, 768, elements / 10, 3072, elements / 40, 100, 1});
  }
  model.recipe.dtype = DType::bf16;
  model.recipe.master = form.master;
  model.recipe.coded = form.coded;
  if (form.narrow) {
    model.recipe.first_moment = DType::f8e4m3;
    model.recipe.second_moment = DType::f8ue5m3;
  }
  return model;
}

int64_t elements_of(const Model &model) { return std::accumulate(model.counts.begin(), model.counts.end(), int64_t{0}); }

/// The formula of the stages for a share of the elements; small tensors, which keep fp32 states, and tails of lines are within 1%.
double formula(const Form &form, int64_t stage, double elements, double own) {
  const auto part = [&](int64_t from) { return stage >= from ? own : elements; };
  return form.param_nbytes * part(3) + 2 * part(2) + form.state_nbytes * part(1);
}

Manner manner_of(int64_t stage, int64_t elements) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = elements / 10;
  return manner;
}

std::shared_ptr<Optimizer> make(const std::shared_ptr<Group> &group, const Model &model, const Config &config) {
  std::shared_ptr<Optimizer> optimizer;
  Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_TRUE(status.ok()) << status.text();
  for (int64_t id = 0; id < model.tensors(); ++id) {
    int64_t out = 0;
    const int64_t *count = &model.counts[static_cast<size_t>(id)];
    status = optimizer->add_param(nullptr, ("p" + std::to_string(id)).c_str(), ZERO_DTYPE_BF16, count, 1, &out);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  status = group->queue()->run(optimizer->seal());
  EXPECT_TRUE(status.ok()) << status.text();
  return optimizer;
}

/// Steps in which the caller has no memory of its own: gradients are filled where they were acquired.
void run_steps(Optimizer &optimizer, const Model &model) {
  EXPECT_TRUE(optimizer.queue()->run(optimizer.begin(ZERO_SOURCE_SHARDS)).ok());
  for (int64_t step = 0; step < 2; ++step) {
    for (int64_t id = model.tensors() - 1; id >= 0; --id) {
      void *param = nullptr;
      void *grad = nullptr;
      int64_t accumulate = 0;
      EXPECT_TRUE(optimizer.queue()->run(optimizer.param_acquire(id, nullptr, 0, &param)).ok());
      EXPECT_TRUE(optimizer.grad_acquire(id, &grad, &accumulate).ok());
      std::memset(grad, 0x3c, static_cast<size_t>(model.counts[static_cast<size_t>(id)] * 2));  // 0x3c3c is about 0.011
      EXPECT_TRUE(optimizer.param_release(id).ok());
      EXPECT_TRUE(optimizer.grad_ready(id, nullptr, 0, model.counts[static_cast<size_t>(id)]).ok());
    }
    zero_step_result result{};
    const Status status = optimizer.queue()->run(optimizer.step(&result));
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(result.skipped, 0);
  }
}

MemoryUse use_of(const Optimizer &optimizer, int32_t category) {
  MemoryUse use{};
  EXPECT_TRUE(optimizer.memory(category, &use).ok());
  return use;
}

/// What the four of them say about one rank. What is kept for ever may be above the formula by its constant, which is padding.
void expect_cost(Optimizer &optimizer, const Form &form, const Model &model, const Manner &manner, int64_t hook_nbytes) {
  const MemoryUse total = use_of(optimizer, ZERO_MEMORY_TOTAL);
  const auto own = static_cast<double>(owned_count(optimizer));
  const double wanted = formula(form, model.ranks == 1 ? 0 : manner.stage, static_cast<double>(elements_of(model)), own);
  EXPECT_NEAR(static_cast<double>(total.formula_nbytes), wanted, 0.01 * wanted + 4096);
  EXPECT_EQ(hook_nbytes, total.now_nbytes - use_of(optimizer, ZERO_MEMORY_STAGING).now_nbytes);
  EXPECT_LE(total.now_nbytes, total.formula_nbytes + total.constant_nbytes);
  EXPECT_LE(total.peak_nbytes, total.formula_nbytes + total.constant_nbytes + use_of(optimizer, ZERO_MEMORY_PARAM_POOL).peak_nbytes);
  for (const int32_t category : {ZERO_MEMORY_PARAM, ZERO_MEMORY_GRAD, ZERO_MEMORY_STATE}) {
    const MemoryUse use = use_of(optimizer, category);
    EXPECT_GE(use.now_nbytes, use.formula_nbytes) << category;
    // Gaps between tensors, ends of lines and pages.
    EXPECT_LE(use.now_nbytes, use.formula_nbytes + use.formula_nbytes / 100 + 28 * 4096) << category;
  }
}

/// This process's share of memory: private pages, and those it shares divided by how many share them.
int64_t proportional_nbytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    int64_t kibibytes = 0;
    if (word == "Pss:" && file >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

void meet(Group &group) { EXPECT_TRUE(group.queue()->run(barrier(group)).ok()); }

/// What a rank tells: bytes.
struct Told {
  int64_t grown = 0;  ///< of its proportional set
  int64_t now = 0;
  int64_t formula = 0;
  int64_t constant = 0;
  int64_t staging = 0;
};

int measure(int64_t rank, int out_fd, const std::string &name, const Form &form, int64_t ranks, int64_t stage, int64_t elements) {
  const std::shared_ptr<Group> group = connect_rank(name, rank, ranks, 1);
  if (group == nullptr) return 1;
  // Code, stacks and heap that any optimizer takes are there before.
  {
    const Model small = model_of(form, ranks, 40'000);
    run_steps(*make(group, small, make_config(small, manner_of(stage, 40'000))), small);
  }
  meet(*group);
  const int64_t before = proportional_nbytes();
  meet(*group);
  const Model model = model_of(form, ranks, elements);
  const Manner manner = manner_of(stage, elements);
  CountedHook hook;
  Config config = make_config(model, manner);
  config.hook = hook.table();
  auto optimizer = make(group, model, config);
  run_steps(*optimizer, model);
  meet(*group);
  const int64_t grown = proportional_nbytes() - before;
  meet(*group);
  expect_cost(*optimizer, form, model, manner, hook.nbytes());
  const MemoryUse total = use_of(*optimizer, ZERO_MEMORY_TOTAL);
  std::ostringstream text;
  text << grown << " " << total.now_nbytes << " " << total.formula_nbytes << " " << total.constant_nbytes << " "
       << use_of(*optimizer, ZERO_MEMORY_STAGING).now_nbytes;
  write_text(out_fd, text.str());
  optimizer.reset();
  EXPECT_EQ(hook.nbytes(), 0);
  return testing::Test::HasFailure() || before < 0 ? 1 : 0;
}

Told sum_of(const std::vector<std::string> &texts) {
  Told sum;
  for (const std::string &text : texts) {
    std::istringstream words(text);
    Told told;
    words >> told.grown >> told.now >> told.formula >> told.constant >> told.staging;
    sum.grown += told.grown;
    sum.now += told.now;
    sum.formula += told.formula;
    sum.constant += told.constant;
    sum.staging += told.staging;
  }
  return sum;
}

class Footprint : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(FormRanks, Footprint,
                         testing::Combine(testing::Range<int64_t>(0, std::ssize(kForms)), testing::Values(1, 2, 4, 8)));

/// Pages of shared arenas are counted in parts by all that have touched them, so sums over ranks are compared. Staging that no transfer has
/// needed yet has no pages. Beyond its arenas a rank has plan and groups: less than a mebibyte.
TEST_P(Footprint, IsWhatFormulaAccountingHookAndSystemSay) {
  const Form &form = kForms[std::get<0>(GetParam())];
  const int64_t ranks = std::get<1>(GetParam());
  const int64_t elements = full_tests() ? 50'000'000 : 4'000'000;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const std::string name = meeting_name();
    const ProcessResults results = run_process_ranks(
        ranks, [&](int64_t rank, int out_fd) { return measure(rank, out_fd, name, form, ranks, stage, elements); }, 600'000);
    ASSERT_TRUE(results.all_exited_with(0)) << results.describe();
    const Told sum = sum_of(results.texts);
    std::printf("%s, %lld elements, %lld processes, stage %lld: proportional set %lld, accounting %lld, formula %lld, constant %lld\n",
                form.name, static_cast<long long>(elements), static_cast<long long>(ranks), static_cast<long long>(stage),
                static_cast<long long>(sum.grown), static_cast<long long>(sum.now), static_cast<long long>(sum.formula),
                static_cast<long long>(sum.constant));
    const int64_t slack = sum.formula / 100 + ranks * (int64_t{1} << 20);
    EXPECT_GE(sum.grown, sum.now - sum.staging - slack);
    EXPECT_LE(sum.grown, sum.now + slack);
    EXPECT_LE(sum.grown, sum.formula + sum.constant + slack);
  }
}

}  // namespace
}  // namespace zero::test::footprint_test
