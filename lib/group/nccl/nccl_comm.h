/// @file NcclComm: one communicator of NCCL and the stream it works in. Knows pieces and ranks; never rounds. Nothing here waits for other
/// ranks, and the end, which NCCL may never come to, is awaited by a thread of its own. NCCL is called with the device as the thread's
/// current one, but for looks at its state: it gives a thread its device back, and to one that had none device 0.
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

/// Memory of the library among what moves read and write.
struct NcclAreas {
  std::shared_ptr<Mapping> arriving;
  std::shared_ptr<Mapping> leaving;
};

/// Any thread, one call at a time but for end().
class NcclComm {
 public:
  NcclComm(const zero_nccl_table &nccl, std::shared_ptr<SideStream> lane);
  NcclComm(const NcclComm &) = delete;
  /// Gives up after a moment where other ranks keep theirs; the end goes on without this object.
  ~NcclComm();

  /// Begins to make it; idle() tells when it is there. `id` has ZERO_NCCL_ID_NBYTES bytes.
  Status begin(const void *id, int64_t rank, int64_t size);
  /// Gives the stream one round of moves, after the work that the lane follows. `areas` are kept for as long as moves may use them.
  Status move(std::span<const zero_nccl_move> moves, const NcclAreas &areas);
  /// Whether what was begun has ended, on the device too. Errors of the network come here.
  Status idle(bool *out);

  /// Ends it for good: in order, or in the middle of what is under way; then also after the work that the lane follows. Does not wait. Only
  /// the first call counts.
  void end(bool in_order);
  /// After end(): whether nothing of it uses memory of this rank any more. Where NCCL or that work does not come to an end within a moment
  /// that is given up: until it does the device gets nothing back and the communicator counts as quarantined, and this is true.
  bool over();
  /// Whether that was given up and has not come.
  bool given_up();

 private:
  /// Of what was begun: NCCL is taking it in; it is in the stream, whose end is awaited.
  enum class State { idle, given, taken };
  class Ending;

  Status check(int32_t error, const char *what) const;
  /// From idle and back: the lane is abandoned for as long as something is under way.
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

/// Communicators whose end was given up and has not come. Any thread.
int64_t nccl_quarantined();
/// Whether NCCL may still use memory that a communicator was given before it was ended in the middle of something. Any thread.
bool nccl_holds_memory();

}  // namespace zero
