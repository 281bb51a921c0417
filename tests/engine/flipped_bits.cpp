/// @file Flipping bits and looking for them.
#include "tests/engine/flipped_bits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace zero::test {
namespace {

/// Memory of one slot that a rank holds.
struct Part {
  int64_t param;
  int32_t slot;
  int64_t offset;  ///< in entries
  int64_t count;
  std::byte *data;
  int64_t entry_nbytes;
  bool own;  ///< this rank updates it
};

std::vector<SlotInfo> slots_of(const Optimizer &optimizer, int64_t id) {
  int64_t count = 0;
  EXPECT_TRUE(optimizer.slot_count(id, &count).ok());
  std::vector<SlotInfo> slots(static_cast<size_t>(count));
  for (int64_t index = 0; index < count; ++index) EXPECT_TRUE(optimizer.slot(id, index, &slots[static_cast<size_t>(index)]).ok());
  return slots;
}

/// Everything that this rank updates, slot by slot.
std::vector<Part> own_parts(Optimizer &optimizer) {
  std::vector<Part> parts;
  int64_t views = 0;
  EXPECT_TRUE(optimizer.view_count(&views).ok());
  for (int64_t index = 0; index < views; ++index) {
    View view{};
    EXPECT_TRUE(optimizer.view(index, ZERO_SLOT_PARAM, &view).ok());
    for (const SlotInfo &slot : slots_of(optimizer, view.param)) {
      EXPECT_TRUE(optimizer.view(index, slot.number, &view).ok());
      const bool scales =
          slot.number == ZERO_SLOT_PARAM_SCALE || slot.number == ZERO_SLOT_FIRST_SCALE || slot.number == ZERO_SLOT_SECOND_SCALE;
      const int64_t per = scales ? kLine : 1;
      const bool one = slot.number == ZERO_SLOT_UPDATE_COUNT;
      const int64_t begin = one ? 0 : view.offset / per;
      const int64_t end = one ? 1 : (view.offset + view.count + per - 1) / per;
      parts.push_back(
          {view.param, slot.number, begin, end - begin, static_cast<std::byte *>(view.data), dtype_nbytes(slot.dtype), true});
    }
  }
  return parts;
}

/// Parameters that every rank holds whole and whose address is known; in stage 0 what this rank updates is all of that, states too.
std::vector<Part> replicated_parts(Optimizer &optimizer, const Model &model, int64_t stage) {
  if (model.ranks == 1) return {};
  if (stage == 0) return own_parts(optimizer);
  std::vector<Part> parts;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    if (count == 0 || model.coded(id) || (stage == 3 && count >= model.recipe.gather_below)) continue;
    void *data = nullptr;
    EXPECT_TRUE(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)).ok());
    EXPECT_TRUE(optimizer.param_release(id).ok());
    parts.push_back({id, ZERO_SLOT_PARAM, 0, count, static_cast<std::byte *>(data), dtype_nbytes(model.dtype(id)), false});
  }
  return parts;
}

/// Memory of the optimizer.
std::vector<std::byte> bytes_at(const Manner &manner, std::byte *data, int64_t nbytes) {
  if (manner.kept_there) return manner.remote->read([data](void * /*stream*/) { return data; }, nbytes, [] {});
  return {data, data + nbytes};
}

void flip_bit(const Manner &manner, const Part &part, int64_t entry, uint64_t bit) {
  const uint64_t bits = bit % static_cast<uint64_t>(8 * part.entry_nbytes);
  std::byte *at = part.data + (entry - part.offset) * part.entry_nbytes + static_cast<int64_t>(bits / 8);
  const std::byte flipped = bytes_at(manner, at, 1)[0] ^ static_cast<std::byte>(1U << (bits % 8));
  if (manner.kept_there) {
    manner.remote->write([at](void * /*stream*/) { return at; }, {flipped}, [](void * /*stream*/) {});
  } else {
    *at = flipped;
  }
}

/// True when the range [begin, begin + count) of the parameter's entries lies within this rank's own cut.
bool is_own(const std::vector<Part> &own, int64_t param, int64_t entry) {
  for (const Part &part : own) {
    if (part.param == param && part.slot == ZERO_SLOT_PARAM && entry >= part.offset && entry < part.offset + part.count) return true;
  }
  return false;
}

/// The finding names the flip: rank, tensor, slot, and a range that holds it.
bool names(const zero_verify_result &result, const Flip &flip, int64_t ranks, bool window) {
  if (result.param != flip.param || result.slot != flip.slot || result.chunk_count != 1) return false;
  if (flip.entry < result.offset || flip.entry >= result.offset + result.count) return false;
  if (window && flip.own) return result.found == ZERO_FINDING_SHARD && result.rank == flip.rank && result.other_rank == -1;
  if (result.found != ZERO_FINDING_REPLICAS || result.count != 1) return false;
  if (ranks > 2) return result.rank == flip.rank && result.other_rank == -1;
  return result.rank == 0 && result.other_rank == 1;
}

/// Flips bits one after another, on a rank that chance names, and has each looked for.
void flip_and_verify(Optimizer &optimizer, const Trial &trial, bool window, int64_t flips, Flips &shared) {
  std::mt19937_64 random(trial.seed + (window ? 1 : 0));
  const int64_t rank = optimizer.group()->rank();
  const std::vector<Part> own = own_parts(optimizer);
  const std::vector<Part> replicated = replicated_parts(optimizer, trial.model, trial.manner.stage);
  for (int64_t i = 0; i < flips; ++i) {
    const auto victim = static_cast<int64_t>(random() % static_cast<uint64_t>(trial.model.ranks));
    const bool in_replicas = !window || (random() % 2 == 0 && !replicated.empty());
    const uint64_t which = random();
    const uint64_t where = random();
    const uint64_t bit = random();
    const std::vector<Part> &parts = in_replicas ? replicated : own;
    const bool mine = rank == victim && !parts.empty();
    const Part *part = mine ? &parts[which % parts.size()] : nullptr;
    const int64_t entry = mine ? part->offset + static_cast<int64_t>(where % static_cast<uint64_t>(part->count)) : 0;
    if (rank == victim) shared.flip = {};
    if (mine) {
      flip_bit(trial.manner, *part, entry, bit);
      shared.flip = {rank, part->param, part->slot, entry, part->own || is_own(own, part->param, entry)};
    }
    const zero_verify_result result = verified(optimizer);
    const Flip flip = shared.flip;
    if (rank == victim && mine) flip_bit(trial.manner, *part, entry, bit);
    // A rank may have nothing of its own.
    const bool right = flip.rank < 0 ? result.found == ZERO_FINDING_NONE : names(result, flip, trial.model.ranks, window);
    EXPECT_TRUE(right) << "rank " << rank << ": flipped on rank " << flip.rank << ", tensor " << flip.param << ", slot " << flip.slot
                       << ", entry " << flip.entry << "; found " << result.found << " on rank " << result.rank << ", " << result.other_rank
                       << ", tensor " << result.param << ", slot " << result.slot << ", " << result.offset << " + " << result.count << "\n"
                       << trial.model.text() << "\n"
                       << trial.manner.text();
    if (!right) ++shared.missed;
    if (mine) {
      ++shared.flips;
      const std::lock_guard lock(shared.mutex);
      shared.slots.insert(part->slot);
    }
    // Nobody flips the next bit while another compares this one.
    EXPECT_EQ(verified(optimizer).found, ZERO_FINDING_NONE);
  }
}

/// Within the window the step itself finds a bit in a shard, on all ranks, and changes nothing.
void flip_and_step(Optimizer &optimizer, const Trial &trial, Flips &shared) {
  const int64_t rank = optimizer.group()->rank();
  const std::vector<Part> own = own_parts(optimizer);
  const auto victim = static_cast<int64_t>(trial.seed % static_cast<uint64_t>(trial.model.ranks));
  if (rank == victim) shared.flip = {};
  if (rank == victim && !own.empty()) {
    const Part &part = own[trial.seed / 7 % own.size()];
    flip_bit(trial.manner, part, part.offset + part.count - 1, trial.seed);
    shared.flip = {rank, part.param, part.slot, part.offset + part.count - 1, true};
  }
  std::vector<std::vector<std::byte>> before;
  for (const Part &part : own) before.push_back(bytes_at(trial.manner, part.data, part.count * part.entry_nbytes));
  give_gradients(optimizer, trial.model, trial.manner, 1);
  const Status status = run_task(optimizer, optimizer.step(nullptr));
  const Flip flip = shared.flip;
  if (flip.rank < 0) {
    EXPECT_TRUE(status.ok()) << status.text();
    return;
  }
  const std::string text = status.text();
  EXPECT_EQ(status.code(), ZERO_E_CORRUPT) << text;
  EXPECT_NE(text.find("rank " + std::to_string(flip.rank)), std::string::npos) << text;
  EXPECT_NE(text.find(" of \"p" + std::to_string(flip.param) + "\","), std::string::npos) << text;
  for (size_t i = 0; i < own.size(); ++i)
    EXPECT_EQ(before[i], bytes_at(trial.manner, own[i].data, std::ssize(before[i]))) << "something was applied";
  EXPECT_EQ(run_task(optimizer, optimizer.step(nullptr)).code(), ZERO_E_CORRUPT);
  EXPECT_TRUE(optimizer.group()->usable().ok());
  if (rank == victim) ++shared.by_step;
}

/// Legitimate changes between two steps, the same on all ranks.
void change_something(Optimizer &optimizer, const Model &model, std::mt19937_64 &random) {
  const auto id = static_cast<int64_t>(random() % model.counts.size());
  const std::vector<SlotInfo> slots = slots_of(optimizer, id);
  const SlotInfo &slot = slots[random() % slots.size()];
  const bool of_param = slot.number == ZERO_SLOT_PARAM || slot.number == ZERO_SLOT_PARAM_SCALE;
  const uint64_t kind = random() % 5;
  if (kind == 0) {
    const std::vector<std::byte> zeros(static_cast<size_t>(slot.count * dtype_nbytes(slot.dtype)));
    const Status written = run_task(optimizer, optimizer.write(id, slot.number, slot.count / 3, zeros.data(), slot.count - slot.count / 3));
    EXPECT_TRUE(written.ok()) << written.text();
    zero_verify_result result{};
    const int32_t expected = of_param && slot.count > 0 ? ZERO_E_STATE : ZERO_OK;
    EXPECT_EQ(run_task(optimizer, optimizer.verify(&result)).code(), expected);
  }
  const bool tied = model.recipe.tied && id + 1 == model.tensors();
  Status status;
  if (kind == 1 && !tied) status = optimizer.init_param(id, ZERO_INITIALISER_NORMAL, 0, 0.1, 5);
  if (kind == 2) status = optimizer.set_f64(0, ZERO_KEY_LR, 0.003);
  if (kind == 3) status = optimizer.set_i64(ZERO_KEY_STEP_COUNT, static_cast<int64_t>(random() % 8));
  EXPECT_TRUE(status.ok()) << status.text();
  // Without begin after a write, the step that follows compares what was written with itself.
  const bool must_begin = kind == 1 || of_param;
  if (must_begin || kind == 4) status = run_task(optimizer, optimizer.begin(ZERO_SOURCE_SHARDS));
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace

std::vector<Recipe> flipped_recipes() {
  std::vector<Recipe> all(7);
  all[1].dtype = DType::bf16;
  all[1].average = true;
  all[2].dtype = DType::bf16;
  all[2].master = ZERO_MASTER_REMAINDER;
  all[2].gather_below = 400;
  all[3].first_moment = DType::f8e4m3;
  all[3].second_moment = DType::f8ue5m3;
  all[3].gather_below = 400;
  all[4].dtype = DType::f16;
  all[4].master = ZERO_MASTER_NONE;
  all[4].first_moment = DType::bf16;
  all[5].coded = true;
  all[6].untouched = true;
  return all;
}

Trial make_trial(const Recipe &recipe, int64_t stage, int64_t ranks, int64_t number) {
  Trial trial{};
  trial.model.ranks = ranks;
  trial.model.counts = {5000, 100, 0, 20'000 + 1000 * ranks, 300, 256};
  trial.model.recipe = recipe;
  trial.manner.stage = stage;
  trial.manner.bucket_nbytes = 16'384;
  trial.manner.verify_every = 2;
  trial.manner.threads = number % 2 + 1;
  trial.seed = static_cast<uint64_t>(number) * 1'000'003;
  return trial;
}

zero_verify_result verified(Optimizer &optimizer) {
  zero_verify_result result{};
  const Status status = run_task(optimizer, optimizer.verify(&result));
  EXPECT_TRUE(status.ok()) << status.text();
  return result;
}

void flip_bits(const std::shared_ptr<Group> &group, const Trial &trial, Flips &shared) {
  const std::shared_ptr<Optimizer> optimizer = make_optimizer(group, trial.model, trial.manner);
  ASSERT_NE(optimizer, nullptr);
  begin_training(*optimizer, trial.model, trial.manner);
  train_step(*optimizer, trial.model, trial.manner, 0);
  EXPECT_GT(verified(*optimizer).shard_nbytes, group->size() == 1 ? 1 : -1);
  const bool has_replicas = !replicated_parts(*optimizer, trial.model, trial.manner.stage).empty();
  const int64_t outside = has_replicas ? trial.flips / 2 : 0;
  flip_and_verify(*optimizer, trial, true, trial.flips - outside, shared);
  train_step(*optimizer, trial.model, trial.manner, 1);
  EXPECT_EQ(verified(*optimizer).shard_nbytes, 0);
  flip_and_verify(*optimizer, trial, false, outside, shared);
  train_step(*optimizer, trial.model, trial.manner, 2);
  flip_and_step(*optimizer, trial, shared);
}

void change_nothing_else(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, uint64_t seed) {
  const std::shared_ptr<Optimizer> optimizer = make_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  begin_training(*optimizer, model, manner);
  std::mt19937_64 random(seed);
  for (int64_t step = 0; step < 8; ++step) {
    train_step(*optimizer, model, manner, step);
    EXPECT_EQ(verified(*optimizer).found, ZERO_FINDING_NONE) << model.text() << manner.text();
    if (random() % 2 == 0) change_something(*optimizer, model, random);
  }
}

}  // namespace zero::test
