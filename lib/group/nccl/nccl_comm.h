/// @file NcclComm: one communicator of NCCL and the stream it works in. Knows pieces and ranks;
/// never rounds. No call waits for other ranks. NCCL may never complete the end of a communicator,
/// so a separate thread waits for it. NCCL is called with the device as the thread's current one,
/// except for queries of state: NCCL restores a thread's device, and sets device 0 if the thread
/// had none.
#pragma once

#include "core/clock.h"
#include "core/side_stream.h"
#include "core/status.h"
#include "group/module/zero_nccl_module.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace zero {

/// Memory of the library that moves read or write.
struct NcclAreas {
  std::shared_ptr<Mapping> arriving;
  std::shared_ptr<Mapping> leaving;
};

/// For any thread, one call at a time, except for end().
class NcclComm {
 public:
  NcclComm(const zero_nccl_table &nccl, std::shared_ptr<SideStream> lane);
  NcclComm(const NcclComm &) = delete;
  /// Waits a moment for an orderly end, which needs the other ranks. After that, the end continues
  /// without this object.
  ~NcclComm();

  /// Begins to make the communicator; idle() reports that it is ready. `id` has ZERO_NCCL_ID_NBYTES
  /// bytes.
  Status begin(const void *id, int64_t rank, int64_t size);
  /// Submits one round of moves to the stream, after the earlier work of the lane's leader. Keeps
  /// `areas` for as long as moves may use them.
  Status move(std::span<const zero_nccl_move> moves, const NcclAreas &areas);
  /// *out is true if the operation in progress has ended, on the device too. Returns errors of the
  /// network.
  Status idle(bool *out);

  /// Ends the communicator, in order or by an abort. An abort also follows the earlier work of the
  /// lane's leader. Does not wait. Only the first call counts.
  void end(bool in_order);
  /// After end(): true once the communicator uses no memory of this rank. If NCCL or the stream
  /// does not end within a moment, this gives up and is true as well. Until the end, no memory goes
  /// back to the device, and the communicator counts as quarantined.
  bool over();
  /// True if over() gave up and the end has not come yet.
  bool given_up();

 private:
  /// The state of an operation: `given` to NCCL, then `taken` into the stream, whose end is
  /// awaited.
  enum class State { idle, given, taken };
  class Ending;

  Status check(int32_t error, const char *what) const;
  /// occupy() leaves the idle state, rest() returns to it. The lane is abandoned while an operation
  /// is in progress.
  void occupy();
  void rest();

  const zero_nccl_table &nccl_;
  const std::shared_ptr<SideStream> lane_;
  std::mutex mutex_;
  void *comm_ = nullptr;
  State state_ = State::idle;
  NcclAreas areas_;
  bool ended_ = false;
  const std::shared_ptr<Ending> ending_;
};

/// Number of communicators whose end was given up and has not come. Any thread.
int64_t nccl_quarantined();
/// True if NCCL may still use memory that a communicator was given before an abort. Any thread.
bool nccl_holds_memory();

}  // namespace zero
