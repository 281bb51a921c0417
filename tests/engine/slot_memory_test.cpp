/// @file SlotMemory and TensorSlots: where each rank has each element of each slot.
#include "engine/storage/slot_memory.h"
#include "engine/storage/tensor_slots.h"
#include "layouts.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace zero::test::slot_memory_test {
namespace {

constexpr uint64_t kModels = 120;

/// One rank's slots in private memory.
struct Kept {
  AllocatorHook hook{};
  Accounting accounting;
  Layout layout;
  SlotMemory memory;
  TensorSlots tensors;

  Kept(const Registered &registered, const Model &model, int64_t stage, int64_t rank)
      : layout(registered.layout_of(rank)), tensors(registered.params, layout, memory, model.ranks == 1 || stage == 0) {
    const Sharding sharding{stage, model.ranks == 1};
    const MemorySource source{&hook, &accounting};
    EXPECT_TRUE(memory.allocate(layout.plan(), layout.formats(), sharding, source).ok());
    const int64_t most = SlotMemory::nbytes(layout.plan(), layout.formats(), sharding);
    EXPECT_GE(most, formula_nbytes());
  }
  int64_t formula_nbytes() const {
    return memory.formula_nbytes(ZERO_MEMORY_PARAM) + memory.formula_nbytes(ZERO_MEMORY_GRAD) + memory.formula_nbytes(ZERO_MEMORY_STATE);
  }
};

/// Bytes of an entry of memory that a slot of a tensor has here.
struct Span {
  const std::byte *begin;
  const std::byte *end;
};

/// Elements of a slot of a tensor that this rank holds.
Range held(const Kept &kept, const Slot &slot, int64_t id, int64_t count) {
  return kept.tensors.place(slot, id).whole ? Range{0, count} : kept.tensors.own(id);
}

/// Adds where a slot lies, and expects it apart from all others. Frozen tensors have no gradient.
void add_span(const Kept &kept, int32_t number, int64_t id, int64_t count, std::map<const std::byte *, Span> &spans) {
  const Slot *slot = nullptr;
  if (!kept.tensors.find(number, id, &slot)) return;
  const Range range = held(kept, *slot, id, count);
  if (range.empty()) return;
  const SlotPlace &place = kept.tensors.place(*slot, id);
  const std::byte *begin = kept.tensors.at(*slot, id, range.begin);
  const std::byte *end = begin + place.entries(range.count()) * dtype_nbytes(place.dtype);
  const auto after = spans.lower_bound(begin);
  const bool apart =
      (after == spans.end() || end <= after->second.begin) && (after == spans.begin() || std::prev(after)->second.end <= begin);
  EXPECT_TRUE(apart) << "slot " << number << " of tensor " << id;
  spans[begin] = {begin, end};
}

TEST(SlotMemory, NoTwoEntriesShareMemoryAndTheFormulaCountsEach) {
  for (uint64_t seed = 0; seed < kModels; ++seed) {
    const Model model = laid_out_model(seed);
    for (int64_t stage = 0; stage < 4; ++stage) {
      const Registered registered(model, stage_of(stage));
      for (int64_t rank = 0; rank < model.ranks; ++rank) {
        const Kept kept(registered, model, stage, rank);
        std::map<const std::byte *, Span> spans;
        for (int64_t id = 0; id < model.tensors(); ++id) {
          const int64_t count = model.counts[static_cast<size_t>(id)];
          if (registered.params[id].tied() || count == 0) continue;
          for (const SlotFormat &slot : kept.layout.slots_of(id)) add_span(kept, slot.number, id, count, spans);
          add_span(kept, ZERO_SLOT_GRAD, id, count, spans);
        }
        int64_t nbytes = 0;
        for (const auto &[begin, span] : spans) nbytes += span.end - begin;
        EXPECT_EQ(nbytes, kept.formula_nbytes()) << model.text() << " stage " << stage << " rank " << rank;
      }
    }
  }
}

/// Whole are parameters below stage 3, gradients below stage 2, states in stage 0, and everything
/// in a world of one. Update counts are whole in every stage.
TEST(SlotMemory, EachStageShardsOneKindMore) {
  for (uint64_t seed = 0; seed < kModels; ++seed) {
    Model model = laid_out_model(seed);
    model.recipe.gather_below = 0;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const Registered registered(model, stage_of(stage));
      const bool alone = model.ranks == 1;
      const Kept kept(registered, model, stage, model.ranks - 1);
      for (int64_t id = 0; id < model.tensors(); ++id) {
        if (model.counts[static_cast<size_t>(id)] == 0) continue;
        EXPECT_EQ(kept.tensors.sharded(id), !alone && stage == 3) << model.text();
        for (const SlotFormat &format : kept.layout.slots_of(id)) {
          const Slot *slot = nullptr;
          ASSERT_TRUE(kept.tensors.find(format.number, id, &slot));
          const bool of_param = format.number == ZERO_SLOT_PARAM || format.number == ZERO_SLOT_PARAM_SCALE;
          const bool whole = alone || format.number == ZERO_SLOT_UPDATE_COUNT || stage < (of_param ? 3 : 1);
          EXPECT_EQ(kept.tensors.place(*slot, id).whole, whole) << model.text() << " slot " << format.number;
        }
        const Slot *grad = nullptr;
        EXPECT_EQ(kept.tensors.find(ZERO_SLOT_GRAD, id, &grad), !model.frozen(id));
        EXPECT_EQ(model.frozen(id) || kept.tensors.place(*grad, id).whole, model.frozen(id) || alone || stage < 2) << model.text();
      }
    }
  }
}

/// Each element of each tensor is owned by one rank, and updated by that one or, in stage 0, by all.
TEST(TensorSlots, CutsOfAllRanksAreTheTensor) {
  for (uint64_t seed = 0; seed < kModels; ++seed) {
    const Model model = laid_out_model(seed);
    for (const int64_t stage : {0, 1}) {
      const Registered registered(model, stage_of(stage));
      std::vector<int64_t> end(model.counts.size());
      for (int64_t rank = 0; rank < model.ranks; ++rank) {
        const Kept kept(registered, model, stage, rank);
        for (int64_t id = 0; id < model.tensors(); ++id) {
          const auto index = static_cast<size_t>(id);
          const Range own = kept.tensors.own(id);
          const Range all{0, registered.params[id].tied() ? 0 : model.counts[index]};
          EXPECT_EQ(kept.tensors.updated(id), stage == 0 || registered.params[id].tied() || all.empty() ? all : own) << model.text();
          if (own.empty()) continue;
          EXPECT_EQ(own.begin, end[index]) << model.text();
          end[index] = own.end;
        }
      }
      EXPECT_EQ(end, model.counts) << model.text();
    }
  }
}

/// The first rank that owns a part of the tensor has the one entry.
TEST(TensorSlots, CutsOfASlotPerTensorAreOneEntry) {
  SlotPlace place;
  place.per = kPerTensor;
  EXPECT_EQ(TensorSlots::entry_cuts(place, {{0, 0}, {0, 512}, {512, 512}, {512, 1000}}), (Cuts{{0, 0}, {0, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(place.entries(int64_t{1} << 61), 1);
}

TEST(TensorSlots, CutsOfScalesAreLines) {
  SlotPlace place;
  place.per = kLine;
  const Cuts cuts = TensorSlots::entry_cuts(place, {{0, 512}, {512, 512}, {512, 1000}});
  EXPECT_EQ(cuts, (Cuts{{0, 2}, {2, 2}, {2, 4}}));
}

}  // namespace
}  // namespace zero::test::slot_memory_test
