/// @file What the files of the fake NCCL share: its communicators, and the moves of one group.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fake_nccl {

/// For how many looks at its state a communicator is busy, at the least.
constexpr int kPolls = 3;

/// Says what a program must not do with NCCL, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] void die(const char *format, ...);

struct Move {
  bool sends;
  void *data;
  int64_t nbytes;
  int peer;
};

/// Sends and receives that go on together: one piece of work of a stream.
struct Group {
  std::shared_ptr<ncclComm> comm;
  cudaStream_t stream = nullptr;
  std::vector<Move> moves;
  ncclResult_t error = ncclSuccess;   ///< of a call inside the group
  bool sticks = false;                ///< never ends
  ncclResult_t breaks = ncclSuccess;  ///< never ends and leaves this error
  int64_t untaken = 0;                ///< sends that no receive has met

  void run();

 private:
  void exchange(std::unique_lock<std::mutex> &lock);
  bool receive(const Move &move, std::unique_lock<std::mutex> &lock);
};

/// Bytes that a rank sends and nobody has taken.
struct Sent {
  const void *data;
  int64_t nbytes;
  Group *group;
};

/// What the ranks of one id share.
struct Meeting {
  /// Who sends and who receives.
  using Pair = std::pair<int, int>;
  /// Which ends of a pair have come to it once.
  struct Ends {
    bool source = false;
    bool destination = false;
  };

  int size = 0;  ///< 0: nobody has come
  std::set<int> ranks;
  std::set<int64_t> devices;
  ncclResult_t error = ncclSuccess;  ///< of all ranks
  std::map<Pair, Ends> met;
  std::map<Pair, std::deque<Sent>> sent;

  void join(int rank, int of_size, int64_t device);
};

}  // namespace fake_nccl

/// A rank's.
struct ncclComm {
  ncclComm(std::shared_ptr<fake_nccl::Meeting> with, int as_rank, int64_t on_device, ncclComm **out)
      : meeting(std::move(with)), rank(as_rank), device(on_device), handle(out) {}

  const std::shared_ptr<fake_nccl::Meeting> meeting;
  const int rank;
  const int64_t device;
  ncclComm **handle;              ///< what is written once more when the making ends, whether it ends well or is aborted; then nullptr
  int polls = fake_nccl::kPolls;  ///< looks at its state that still find it busy
  bool sticks = false;            ///< what is under way never ends
  bool finalized = false;
  bool aborted = false;
  ncclResult_t error = ncclSuccess;
  std::shared_ptr<fake_nccl::Group> launching;  ///< given, and not in its stream yet
  int64_t pending = 0;                          ///< groups that were given and have not ended

  void write_handle();
  void begin(const std::shared_ptr<fake_nccl::Group> &group);
  /// Whether something is under way that more looks alone do not end.
  bool waits() const;
  ncclResult_t poll();
  void abort();
};

namespace fake_nccl {

/// What happens to one rank's move of some number.
struct Fault {
  int64_t rank = -1;
  int64_t left = -1;
  ncclResult_t error = ncclSuccess;

  /// Counts a move.
  bool due(int of_rank) { return of_rank == rank && left >= 0 && left-- == 0; }
  ncclResult_t due_from(int of_rank) {
    if (of_rank != rank || (left > 0 && left-- > 0)) return ncclSuccess;
    return error;
  }
};

struct Controls {
  int64_t version = NCCL_VERSION_CODE;
  int64_t shared_device = 1;
  int64_t late_us = 0;
  int64_t linger_us = 0;
  Fault stick;
  Fault breaks;
  Fault break_init;
  int64_t stick_init = -1;
  int64_t stick_finalize = -1;
  int64_t hang_abort = -1;
  int64_t hang_destroy = -1;
};

/// All state. Its mutex guards what this file declares, and memory while it is copied.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  Controls controls;
  std::string failing;      ///< the entry point of the call that fails; "": any
  int64_t calls_left = -1;  ///< before it
  bool failed = false;
  int64_t releases = 0;
  int64_t next_id = 0;
  std::map<int64_t, std::shared_ptr<Meeting>> meetings;  ///< by id, until all ranks have come
  std::map<ncclComm_t, std::shared_ptr<ncclComm>> comms;
  std::map<std::string, int64_t> calls;  ///< by entry point
  int64_t moved = 0;
  int64_t groups = 0;

  void hang(std::unique_lock<std::mutex> &lock);
};

/// Never destroyed: streams may still work when the process ends.
World &world();

}  // namespace fake_nccl
