/// @file Buffers against plain arrays, trainings against plain kernels.
#include "tests/engine/known_results.h"

#include "engine/buffer/buffer.h"
#include "tests/engine/bounded_training.h"
#include "tests/engine/coded_model.h"
#include "tests/engine/dense_program.h"
#include "tests/engine/fragment_models.h"
#include "tests/engine/fragment_rule.h"
#include "tests/engine/gather_rule.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace zero::test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::prod};

bool equal(const void *data, const Bytes &expected) { return expected.empty() || std::memcmp(data, expected.data(), expected.size()) == 0; }

/// The range that a rank writes: ranges of neighbours overlap.
Range written_by(int64_t rank, int64_t size, int64_t count) { return {count * rank / (size + 2), count * (rank + 3) / (size + 2)}; }

/// Writes, then reads the same range back and the range of the next rank.
void run_ranges(Buffer &buffer, const CollectiveCase &written, Report *report) {
  const Group &group = *buffer.group();
  const int64_t element = dtype_nbytes(buffer.dtype());
  const std::string name = "buffer " + to_text(written);
  Bytes whole(static_cast<size_t>(written.count * element));
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    const Range range = written_by(rank, group.size(), written.count);
    const Bytes part = data_of(written, rank, range.begin, range.end);
    if (!part.empty()) std::memcpy(whole.data() + range.begin * element, part.data(), part.size());
  }
  const Range mine = written_by(group.rank(), group.size(), written.count);
  const Bytes given = data_of(written, group.rank(), mine.begin, mine.end);
  const Status wrote = buffer.queue()->run(buffer.write(mine.begin, given.data(), mine.count()));
  report->expect(wrote.ok(), name + ": write: " + wrote.text());
  for (const int64_t rank : {group.rank(), (group.rank() + 1) % group.size()}) {
    const Range range = written_by(rank, group.size(), written.count);
    Bytes read(static_cast<size_t>(range.count() * element));
    const Status status = buffer.queue()->run(buffer.read(range.begin, read.data(), range.count()));
    report->expect(status.ok(), name + ": read: " + status.text());
    report->expect(read.empty() || std::memcmp(read.data(), whole.data() + range.begin * element, read.size()) == 0,
                   name + ": wrong bits read");
  }
}

void run_buffer_case(const std::shared_ptr<Group> &group, const CollectiveCase &c, Report *report) {
  ++report->cases;
  const std::string name = "buffer " + to_text(c);
  std::shared_ptr<Buffer> buffer;
  const Status made = group->queue()->run(Buffer::create(group, Config(), c.dtype, c.count, &buffer));
  report->expect(made.ok(), name + ": create: " + made.text());
  if (buffer == nullptr) return;
  const Bytes contribution = data_of(c, group->rank(), 0, c.count);
  const Status summed = buffer->queue()->run(buffer->reduce_scatter(contribution.data(), c.count, c.op));
  report->expect(summed.ok(), name + ": reduce_scatter: " + summed.text());
  const Buffer::Shard shard = buffer->shard();
  report->expect(equal(shard.data, reduced(c, group->size(), {shard.offset, shard.offset + shard.count}, report)),
                 name + ": wrong bits in shard");
  void *whole = nullptr;
  const Status acquired = buffer->queue()->run(buffer->whole_acquire(&whole));
  report->expect(acquired.ok(), name + ": whole_acquire: " + acquired.text());
  report->expect(equal(whole, reduced(c, group->size(), {0, c.count}, report)), name + ": wrong bits in whole");
  report->expect(buffer->whole_release().ok(), name + ": whole_release");
  run_ranges(*buffer, c, report);
}

bool reach_each_other(const Group &group) { return group.size() == 1 || group.transport().capabilities().name == "local"; }

template <class Value>
void take_from_first(Group &group, std::vector<Value> *values) {
  auto count = static_cast<int64_t>(values->size());
  expect_ok(group.queue()->run(broadcast(group, &count, 1, DType::i64, 0)), "broadcast");
  values->resize(static_cast<size_t>(count));
  const auto nbytes = static_cast<int64_t>(values->size() * sizeof(Value));
  expect_ok(group.queue()->run(broadcast(group, values->data(), nbytes, DType::u8, 0)), "broadcast");
}

/// The end of a training whose ranks are threads of the first rank's process.
Outcome trained_by_threads(Group &group, const Model &model) {
  Outcome outcome;
  if (group.rank() == 0) {
    run_world(model.ranks, [&](const std::shared_ptr<Group> &threads) {
      Outcome end = train(threads, model, Manner{});
      if (threads->rank() == 0) outcome = std::move(end);
    });
  }
  take_from_first(group, &outcome.params);
  take_from_first(group, &outcome.states);
  take_from_first(group, &outcome.slots);
  take_from_first(group, &outcome.norms);
  take_from_first(group, &outcome.scales);
  std::vector<int64_t> counts = {outcome.skipped, outcome.unfilled};
  take_from_first(group, &counts);
  outcome.skipped = counts[0];
  outcome.unfilled = counts[1];
  return outcome;
}

/// Ranks that cannot reach each other's memory cannot keep one copy of parameters; all of them are told, and the group stays usable.
void expect_one_copy_refused(const std::shared_ptr<Group> &group, Report *report) {
  Model model;
  model.ranks = group->size();
  Manner manner;
  manner.stage = 1;
  manner.one_copy = true;
  std::shared_ptr<Optimizer> optimizer;
  const Status created = Optimizer::create(group, make_config(model, manner), &optimizer);
  report->expect(created.ok(), std::string("one copy: create: ") + created.text());
  if (optimizer == nullptr) return;
  const int64_t count = 1000;
  int64_t id = 0;
  report->expect(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id).ok(), "one copy: add_param");
  const Status sealed = group->queue()->run(optimizer->seal());
  const bool named = std::string(sealed.text()).find("ZERO_KEY_ONE_COPY") != std::string::npos;
  report->expect(sealed.code() == ZERO_E_UNSUPPORTED && named, std::string("one copy: seal: ") + sealed.text());
}

}  // namespace

void run_buffer_cases(const std::shared_ptr<Group> &group, Report *report) {
  for (const DType dtype : kDTypes) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, group->size() - 1, int64_t{257}, int64_t{5003}}) {
      for (const ReduceOp op : kOps) run_buffer_case(group, {OperationKind::reduce_scatter, dtype, op, count, 0}, report);
    }
  }
}

void run_weighted_trainings(const std::shared_ptr<Group> &group, Report *report) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Model &model : weighted_models(group->size(), dtype)) {
      Manner manner = random_manner(static_cast<uint64_t>(++report->cases), group->size());
      manner.stage = report->cases % 4;
      manner.one_copy = manner.one_copy && reach_each_other(*group);
      report->expect(wrong_gradients(group, model, manner) == 0, "weighted " + model.text() + "\n" + manner.text());
    }
  }
}

void run_known_trainings(const std::shared_ptr<Group> &group, int64_t models, Report *report) {
  constexpr int64_t kManners = 6;
  constexpr int64_t kMost = int64_t{1} << 13;
  if (!reach_each_other(*group)) expect_one_copy_refused(group, report);
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(500 + i);
    Model model = random_model(seed, group->size(), kMost);
    if (i % 2 == 1) {  // some tensors stay untouched in some steps
      model.recipe.untouched = true;
      model.recipe.unfilled_seed = seed;
      model.steps = 6;
    }
    Outcome expected = reference_training(model);
    for (int64_t k = 0; k < kManners; ++k) {
      Manner manner = random_manner(seed * 1000 + static_cast<uint64_t>(k), group->size());
      manner.stage = k < 4 ? k : manner.stage;
      manner.norm = k % 2 == 0;
      manner.one_copy = manner.one_copy && reach_each_other(*group);
      Outcome outcome = train(group, model, manner);
      if (!manner.norm) outcome.norms = expected.norms;
      if (k == 0) {
        expected.norms = outcome.norms;
        expected.slots = outcome.slots;
        expected.scales = outcome.scales;
      }
      ++report->cases;
      const bool filled = outcome.unfilled == 0 || model.recipe.untouched;
      report->expect(differing(expected, outcome) == 0 && filled, model.text() + "\n" + manner.text());
    }
  }
}

void run_gather_codes(const std::shared_ptr<Group> &group, Report *report) {
  if (group->size() == 1) {
    std::shared_ptr<Optimizer> optimizer;
    const Status refused = Optimizer::create(group, make_config(gather_model(1, ZERO_CODE_I4), in_stage(1)), &optimizer);
    ++report->cases;
    return report->expect(refused.code() == ZERO_E_INVALID_ARGUMENT, std::string("differences of one rank: ") + refused.text());
  }
  for (const int64_t code : {ZERO_CODE_F8, ZERO_CODE_I8, ZERO_CODE_I4}) {
    for (const int64_t stage : {1, 2}) {
      Model model = gather_model(group->size(), code);
      if (stage == 2) model.recipe.dtype = DType::bf16;
      Manner manner = random_manner(static_cast<uint64_t>(++report->cases), group->size());
      manner.stage = stage;
      manner.one_copy = false;
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      GatherRule rule(model);
      bool same = true;
      for (int64_t step = 0; step < model.steps; ++step) {
        (void)train_step(*optimizer, model, manner, step);
        std::vector<std::vector<float>> masters;
        for (int64_t id = 0; id < model.tensors(); ++id) masters.push_back(read_masters(*optimizer, model, id));
        rule.follow(masters, false);
        for (int64_t id = 0; id < model.tensors(); ++id) same = same && acquired_bytes(*optimizer, model, id) == rule.stored(id);
      }
      report->expect(same, "gathers as differences " + model.text() + "\n" + manner.text());
    }
  }
}

void run_coded_gradients(const std::shared_ptr<Group> &group, Report *report) {
  if (group->size() == 1) {
    std::shared_ptr<Optimizer> optimizer;
    const Status refused = Optimizer::create(group, make_config(coded_model({1, 1}, ZERO_CODE_I4), in_stage(1)), &optimizer);
    ++report->cases;
    return report->expect(refused.code() == ZERO_E_INVALID_ARGUMENT, std::string("codes of one replica: ") + refused.text());
  }
  int64_t cell = 0;
  for (const int64_t replica_ranks : {1, 2, 4}) {
    if (group->size() % replica_ranks != 0 || group->size() == replica_ranks) continue;
    for (const int64_t code : kCodes) {
      Model model = coded_model({group->size(), replica_ranks}, code);
      model.steps = 3;
      model.recipe.clip_norm = 0.5;
      model.recipe.overflow_step = 1;
      const Outcome expected = trained_by_threads(*group, model);
      for (int64_t stage = 0; stage < 4; ++stage) {
        for (const int64_t bucket_nbytes : {1024, 8192, 26'214'400}) {
          for (const char *shards : {"", "3,0,1,2"}) {
            if (++cell % 6 != 0 && !full_tests()) continue;
            Manner manner;
            manner.stage = stage;
            manner.bucket_nbytes = bucket_nbytes;
            manner.overlap = cell % 5 < 2;
            manner.shard_weights = std::string(shards).substr(0, shards[0] == 0 ? 0 : static_cast<size_t>(2 * replica_ranks - 1));
            ++report->cases;
            report->expect(differing(expected, train(group, model, manner)) == 0, "coded gradients " + model.text() + "\n" + manner.text());
          }
        }
      }
    }
  }
}

void run_untouched_rows(const std::shared_ptr<Group> &group, Report *report) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      Model model{
          .seed = static_cast<uint64_t>(++report->cases), .ranks = group->size(), .counts = {2100, 31, 1285, 180}, .algorithm = "adam"};
      model.rows = {700, 0, 5, 60};
      model.by_rows = true;
      model.recipe.untouched = true;
      model.recipe.dtype = dtype;
      model.recipe.average = true;
      model.recipe.micro_steps =
          stage % 2 == 1 ? std::vector<int32_t>{ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST} : std::vector<int32_t>();
      Manner manner = random_manner(static_cast<uint64_t>(report->cases), group->size());
      manner.stage = stage;
      manner.source = ZERO_SOURCE_LOCAL;
      manner.one_copy = manner.one_copy && reach_each_other(*group);
      Slots expected;
      End end = train_both(group, model, manner, &expected);
      bool same = !testing::Test::HasFailure() && !expected.empty() && end.slots == expected;
      for (int64_t id = 0; id < model.tensors(); ++id)
        same = same && end.params[static_cast<size_t>(id)] == (expected[{id, ZERO_SLOT_PARAM}]);
      report->expect(same, "untouched rows " + model.text() + "\n" + manner.text());
    }
  }
}

void run_fragments(const std::shared_ptr<Group> &group, Report *report) {
  if (group->size() == 1) {
    std::shared_ptr<Optimizer> optimizer;
    const Status refused = Optimizer::create(group, make_config(fragment_model({1, 1}, kTurns[0]), in_stage(1)), &optimizer);
    ++report->cases;
    return report->expect(refused.code() == ZERO_E_INVALID_ARGUMENT, std::string("fragments of one replica: ") + refused.text());
  }
  for (const int64_t replica_ranks : {1, 2}) {
    if (group->size() % replica_ranks != 0 || group->size() == replica_ranks) continue;
    for (const Turns &turns : kTurns) {
      const Model model = fragment_model({group->size() / replica_ranks, replica_ranks}, turns);
      Manner manner;
      manner.stage = report->cases % 4;
      manner.overlap = report->cases % 3 > 0;
      manner.bucket_nbytes = report->cases % 2 == 0 ? 4096 : 26'214'400;
      ++report->cases;
      follow_fragments(group, model, manner);
      report->expect(!testing::Test::HasFailure(), "fragments " + model.text() + "\n" + manner.text());
    }
  }
}

}  // namespace zero::test
