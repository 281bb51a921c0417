/// @file Small trainings whose steps leave tensors untouched, and what their counts of updates are.
#pragma once

#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace zero::test {

inline constexpr int64_t kNobody = -1;
inline constexpr int64_t kAll = -2;

/// The rank that gives a tensor's gradient in a step, kNobody or kAll; the same on all ranks.
inline int64_t filler(const Model &model, int64_t step, int64_t id) {
  std::mt19937_64 random(model.seed * 1'000'003 + static_cast<uint64_t>(step * 64 + id));
  const uint64_t kind = random() % 5;
  if (kind < 2) return kNobody;
  return kind < 4 ? kAll : static_cast<int64_t>(random() % static_cast<uint64_t>(model.ranks));
}

/// Tensors `ids` of the model, begun.
inline std::shared_ptr<Optimizer> begin_with(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner,
                                      const std::vector<int64_t> &ids) {
  std::shared_ptr<Optimizer> optimizer;
  expect_ok(Optimizer::create(group, make_config(model, manner), &optimizer), "create");
  for (const int64_t id : ids) {
    const std::vector<int64_t> shape = model.shape(id);
    int64_t out = 0;
    expect_ok(optimizer->add_param(nullptr, ("p" + std::to_string(id)).c_str(), static_cast<int32_t>(model.dtype(id)), shape.data(),
                                   std::ssize(shape), &out),
              "add_param");
  }
  expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<float> values;
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(ids[i])]; ++k) values.push_back(first_value_at(model, ids[i], k));
    const std::vector<std::byte> bytes = encode(values, model.dtype(ids[i]));
    const int32_t slot = model.coded(ids[i]) ? ZERO_SLOT_MASTER : ZERO_SLOT_PARAM;
    const void *data = model.coded(ids[i]) ? static_cast<const void *>(values.data()) : bytes.data();
    expect_ok(run_task(*optimizer, optimizer->write(static_cast<int64_t>(i), slot, 0, data, std::ssize(values))), "write");
  }
  expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
  return optimizer;
}

/// Gives this rank's gradient of tensor `id`, which the optimizer has under the number `place`.
inline void give(Optimizer &optimizer, const Model &model, int64_t step, int64_t id, int64_t place) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  std::vector<float> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(gradient_at(model, step, optimizer.group()->rank(), id, k));
  expect_ok(optimizer.grad_ready(place, encode(values, model.grad_dtype(id)).data(), 0, count), "grad_ready");
}

inline bool gives(const Optimizer &optimizer, int64_t who) { return who == kAll || who == optimizer.group()->rank(); }

inline void finish_step(Optimizer &optimizer, bool splits) {
  if (!splits) return expect_ok(run_task(optimizer, optimizer.step(nullptr)), "step");
  expect_ok(run_task(optimizer, optimizer.reduce(nullptr)), "reduce");
  expect_ok(run_task(optimizer, optimizer.apply()), "apply");
  expect_ok(run_task(optimizer, optimizer.gather()), "gather");
}

template <class Entry>
std::vector<Entry> read_entries(Optimizer &optimizer, int64_t id, int32_t slot, int64_t count) {
  std::vector<Entry> entries(static_cast<size_t>(count));
  expect_ok(run_task(optimizer, optimizer.read(id, slot, 0, entries.data(), count)), "read");
  return entries;
}

inline int64_t updates_of(Optimizer &optimizer, int64_t id) { return read_entries<int64_t>(optimizer, id, ZERO_SLOT_UPDATE_COUNT, 1)[0]; }

inline Status write_updates(Optimizer &optimizer, int64_t id, int64_t value, int64_t count = 1) {
  return run_task(optimizer, optimizer.write(id, ZERO_SLOT_UPDATE_COUNT, 0, &value, count));
}

inline std::vector<SlotInfo> slots_of(const Optimizer &optimizer, int64_t id) {
  int64_t count = 0;
  expect_ok(optimizer.slot_count(id, &count), "slot_count");
  std::vector<SlotInfo> slots(static_cast<size_t>(count));
  for (int64_t index = 0; index < count; ++index) expect_ok(optimizer.slot(id, index, &slots[static_cast<size_t>(index)]), "slot");
  return slots;
}

/// The bytes of every slot but the count.
inline std::vector<std::byte> bytes_of(Optimizer &optimizer, int64_t id) {
  std::vector<std::byte> all;
  for (const SlotInfo &slot : slots_of(optimizer, id)) {
    if (slot.number == ZERO_SLOT_UPDATE_COUNT) continue;
    const auto bytes = static_cast<size_t>(slot.count * dtype_nbytes(slot.dtype));
    all.resize(all.size() + bytes);
    expect_ok(run_task(optimizer, optimizer.read(id, slot.number, 0, all.data() + all.size() - bytes, slot.count)), "read");
  }
  return all;
}

}  // namespace zero::test
