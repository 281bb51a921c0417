/// @file Handle table: chunks of slots that are never freed, because any thread may look up a
/// handle until the process ends. Each slot has a lock of its own. Free slots form a list.
/// Inserting, finding and removing touch one slot.
#include "api/handles.h"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace zero::api {
namespace {

// A value from its lowest bit: 1, kind (4 bits), slot (24 bits), generation (35 bits, from 1).
constexpr int kKindBits = 4;
constexpr int kSlotBits = 24;
constexpr int kKindShift = 1;
constexpr int kSlotShift = kKindShift + kKindBits;
constexpr int kGenerationShift = kSlotShift + kSlotBits;
constexpr uint64_t kLastGeneration = (uint64_t{1} << (64 - kGenerationShift)) - 1;
constexpr uint64_t kChunkSlots = 256;
constexpr uint64_t kChunks = (uint64_t{1} << kSlotBits) / kChunkSlots;
constexpr uint64_t kNoSlot = ~uint64_t{0};

static_assert(sizeof(void *) == sizeof(uint64_t), "handles are pointers outside and need 64 bits");

struct Slot {
  std::mutex mutex;
  /// Generation of the current object, or of the last one if free; 0: never used.
  uint64_t generation = 0;
  Kind kind = Kind::none;  ///< none = free
  std::shared_ptr<void> object;
  uint64_t next_free = kNoSlot;  ///< guarded by the table

  /// @name For reach_handle, which takes no lock
  /// @{
  std::atomic<uint64_t> live_handle{0};  ///< the value of the handle while it is live
  std::atomic<void *> reached{nullptr};  ///< its object
  std::atomic<int64_t> readers{0};       ///< calls that may be using the object
  /// @}
};

/// Constant-initialised and never destroyed: language runtimes release handles after static
/// destructors have run.
struct Table {
  std::array<std::atomic<Slot *>, kChunks> chunks;
  std::mutex mutex;  ///< guards the members below
  uint64_t slot_count = 0;
  uint64_t first_free = kNoSlot;
  int64_t live = 0;
};
constinit Table table;

uint64_t kind_bits(uint64_t handle) { return (handle >> kKindShift) & ((1U << kKindBits) - 1); }
uint64_t slot_bits(uint64_t handle) { return (handle >> kSlotShift) & ((1U << kSlotBits) - 1); }
uint64_t generation_bits(uint64_t handle) { return handle >> kGenerationShift; }

/// Returns nullptr for a slot that was never made.
Slot *find_slot(uint64_t index) {
  Slot *chunk = table.chunks[index / kChunkSlots].load(std::memory_order_acquire);
  return chunk != nullptr ? &chunk[index % kChunkSlots] : nullptr;
}

uint64_t take_slot() {
  const std::lock_guard lock(table.mutex);
  if (table.first_free == kNoSlot) {
    if (table.slot_count == kChunks * kChunkSlots) throw std::bad_alloc();
    Slot *chunk = new Slot[kChunkSlots];
    const uint64_t first = table.slot_count;
    for (uint64_t i = 0; i + 1 < kChunkSlots; ++i) chunk[i].next_free = first + i + 1;
    table.chunks[first / kChunkSlots].store(chunk, std::memory_order_release);
    table.slot_count += kChunkSlots;
    table.first_free = first;
  }
  const uint64_t index = table.first_free;
  table.first_free = find_slot(index)->next_free;
  ++table.live;
  return index;
}

void give_slot(uint64_t index, bool reusable) {
  const std::lock_guard lock(table.mutex);
  --table.live;
  if (!reusable) return;
  find_slot(index)->next_free = table.first_free;
  table.first_free = index;
}

bool known_kind(uint64_t kind) { return kind >= static_cast<uint64_t>(Kind::config) && kind <= static_cast<uint64_t>(Kind::server); }

Status never_made(Kind kind, uint64_t handle, const char *argument) {
  return Status::error(ZERO_E_BAD_HANDLE, "%s is %#llx, which is no handle of libzero; expected a %s", argument,
                       static_cast<unsigned long long>(handle), kind_name(kind));
}

/// Finds the slot of a handle that was made and has the right kind, released or not.
Status find_made(Kind kind, uint64_t handle, const char *argument, Slot **out) {
  ZERO_CHECK(handle != 0, ZERO_E_BAD_HANDLE, "%s is NULL; expected a %s", argument, kind_name(kind));
  if ((handle & 1) == 0 || !known_kind(kind_bits(handle)) || generation_bits(handle) == 0) return never_made(kind, handle, argument);
  Slot *slot = find_slot(slot_bits(handle));
  if (slot == nullptr) return never_made(kind, handle, argument);
  ZERO_CHECK(kind_bits(handle) == static_cast<uint64_t>(kind), ZERO_E_BAD_HANDLE, "%s is %#llx, a %s; expected a %s", argument,
             static_cast<unsigned long long>(handle), kind_name(static_cast<Kind>(kind_bits(handle))), kind_name(kind));
  *out = slot;
  return {};
}

/// Called with the slot's lock held.
Status check_live(const Slot &slot, Kind kind, uint64_t handle, const char *argument) {
  const uint64_t generation = generation_bits(handle);
  if (generation > slot.generation) return never_made(kind, handle, argument);
  ZERO_CHECK(slot.kind == kind && generation == slot.generation, ZERO_E_BAD_HANDLE, "%s is %s handle %#llx, which was released", argument,
             kind_name(kind), static_cast<unsigned long long>(handle));
  return {};
}

/// Called with the slot's lock held.
void open_for_readers(Slot &slot, uint64_t handle) {
  slot.reached.store(slot.object.get());
  slot.live_handle.store(handle);
}

/// Called with the slot's lock held, before its object is handed over. A reader that saw the handle
/// live ends soon, because it never waits.
void close_for_readers(Slot &slot) {
  slot.live_handle.store(0);
  while (slot.readers.load() > 0) std::this_thread::yield();
  slot.reached.store(nullptr);
}

}  // namespace

const char *kind_name(Kind kind) {
  switch (kind) {
    case Kind::config:
      return "zero_config";
    case Kind::group:
      return "zero_group";
    case Kind::buffer:
      return "zero_buffer";
    case Kind::optimizer:
      return "zero_optimizer";
    case Kind::request:
      return "zero_request";
    case Kind::checkpoint:
      return "zero_checkpoint";
    case Kind::save:
      return "zero_save";
    case Kind::server:
      return "zero_server";
    case Kind::none:
      break;
  }
  return "no handle";
}

uint64_t insert_handle(Kind kind, std::shared_ptr<void> object) {
  const uint64_t index = take_slot();
  Slot &slot = *find_slot(index);
  const std::lock_guard lock(slot.mutex);
  ++slot.generation;
  slot.kind = kind;
  slot.object = std::move(object);
  const uint64_t handle = slot.generation << kGenerationShift | index << kSlotShift | static_cast<uint64_t>(kind) << kKindShift | 1;
  open_for_readers(slot, handle);
  return handle;
}

bool reach_handle(Kind kind, uint64_t handle, void (*act)(void *object, void *argument), void *argument) noexcept {
  if ((handle & 1) == 0 || kind_bits(handle) != static_cast<uint64_t>(kind)) return false;
  Slot *slot = find_slot(slot_bits(handle));
  if (slot == nullptr) return false;
  slot->readers.fetch_add(1);
  const bool live = slot->live_handle.load() == handle;
  if (live) act(slot->reached.load(), argument);
  slot->readers.fetch_sub(1);
  return live;
}

Status find_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out) {
  Slot *slot = nullptr;
  ZERO_TRY(find_made(kind, handle, argument, &slot));
  const std::lock_guard lock(slot->mutex);
  ZERO_TRY(check_live(*slot, kind, handle, argument));
  *out = slot->object;
  return {};
}

Status remove_handle(Kind kind, uint64_t handle, const char *argument, std::shared_ptr<void> *out) {
  Slot *slot = nullptr;
  ZERO_TRY(find_made(kind, handle, argument, &slot));
  bool reusable = false;
  {
    const std::lock_guard lock(slot->mutex);
    ZERO_TRY(check_live(*slot, kind, handle, argument));
    close_for_readers(*slot);
    *out = std::move(slot->object);
    slot->object = nullptr;
    slot->kind = Kind::none;
    reusable = slot->generation < kLastGeneration;
  }
  give_slot(slot_bits(handle), reusable);
  return {};
}

void remove_handles(Kind kind) {
  uint64_t count = 0;
  {
    const std::lock_guard lock(table.mutex);
    count = table.slot_count;
  }
  for (uint64_t index = 0; index < count; ++index) {
    Slot &slot = *find_slot(index);
    std::shared_ptr<void> object;
    {
      const std::lock_guard lock(slot.mutex);
      if (slot.kind != kind) continue;
      close_for_readers(slot);
      object = std::move(slot.object);
      slot.kind = Kind::none;
    }
    // The slot is not added to the free ones: the process ends.
  }
}

int64_t live_handles() {
  const std::lock_guard lock(table.mutex);
  return table.live;
}

}  // namespace zero::api
