/// @file MpiRoot: one duplicated communicator and the parts that all groups on it share: the lock,
/// control messages, group numbers, and memory that MPI may still use after its group was released.
/// Knows members only by number and interface, and nothing of rounds.
#pragma once

#include "core/status.h"
#include "group/fingerprint.h"
#include "group/module/zero_mpi_module.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace zero {

/// Ordered streams of messages between two members of a group; each has a tag of its own.
enum MpiStream : int { kEnvelopes = 0, kPieces = 1, kSendNotices = 2, kRecvNotices = 3, kMessages = 4, kMpiStreams = 5 };

/// A control message, beside data. Sent without the unused end of the text.
struct MpiControl {
  enum Kind : int32_t { poison = 1, left = 2, query = 3, answer = 4, bye = 5 };

  int32_t kind = 0;
  /// For poison: the status; for answer: PeerStatus::State; for bye: 1 if the sender has seen a
  /// failure.
  int32_t code = 0;
  int64_t group = 0;
  std::array<int64_t, kMpiStreams> sent{};  ///< for left: messages sent to the receiver, by stream
  Fingerprint where;                        ///< for answer: the sender's call
  char text[760] = {0};                     ///< for poison: the text of the error
};

/// One MPI operation in progress. Must not move until it has ended.
struct MpiRequest {
  uint64_t word = 0;
  bool active = false;
  bool receiving = false;
  int64_t peer = -1;  ///< the sender, once a receive has ended
  int64_t nbytes = 0;
};

/// Memory and the requests that use it. Neither moves while a request is active.
class MpiBlock {
 public:
  /// Blocks of released groups form a list, so that keeping one needs no memory.
  std::unique_ptr<MpiBlock> next;

  explicit MpiBlock(int64_t requests) : requests_(static_cast<size_t>(requests)) {}

  /// Reserves at least this much memory; only while idle.
  void reserve(int64_t nbytes);
  std::byte *data() { return data_.get(); }
  int64_t nbytes() const { return nbytes_; }
  MpiRequest &request(int64_t index) { return requests_[static_cast<size_t>(index)]; }
  std::vector<MpiRequest> &requests() { return requests_; }
  bool idle() const;

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t nbytes_ = 0;
  std::vector<MpiRequest> requests_;
};

/// A group on the root, as control messages see it. Called with the root's lock held.
class MpiMember {
 public:
  virtual void on_control(int64_t source, const MpiControl &message) = 0;
  virtual void answer(MpiControl *out) const = 0;

 protected:
  ~MpiMember() = default;
};

/// The state of MPI in this process.
struct MpiProcess {
  const zero_mpi_table *table = nullptr;
  bool initialized_by_us = false;
  int64_t thread_level = 0;
  int64_t tag_limit = 0;
  int64_t world_size = 0;
  /// The only thread that may call MPI unless it granted MPI_THREAD_MULTIPLE.
  std::thread::id owner;
};

class MpiRoot {
 public:
  MpiRoot(const MpiProcess &process, int64_t linger_ms);
  MpiRoot(const MpiRoot &) = delete;
  ~MpiRoot() = default;

  /// Every member but the constructor, may_call and check_thread is called with this lock held.
  std::mutex &mutex() { return mutex_; }

  /// @name Set-up
  /// @{
  Status begin_duplicate(int64_t comm);
  Status test_duplicate(bool *out_ready);
  /// Gets rank and size, and begins to receive control messages.
  Status open();
  /// Identity of the host of every rank, once known.
  std::vector<uint64_t> host_ids;
  /// @}

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  /// False on threads that must not call MPI because the library was not granted
  /// MPI_THREAD_MULTIPLE.
  bool may_call() const;
  /// Returns ZERO_E_STATE on such a thread, otherwise ZERO_OK.
  Status check_thread() const;

  /// @name Messages. peer is a rank of the root.
  /// @{
  Status send(const void *data, int64_t nbytes, int64_t peer, int64_t tag, MpiRequest *request);
  Status recv(void *data, int64_t nbytes, int64_t peer, int64_t tag, MpiRequest *request);
  /// Clears request->active if the operation has ended.
  Status test(MpiRequest *request);
  /// Tests all requests of a block, also those behind one that fails. Returns the first error.
  Status test(MpiBlock *block, bool *out_idle);
  static int64_t tag_of(int64_t group, MpiStream stream) { return 1 + group * kMpiStreams + stream; }
  /// Sends at once if this thread may call MPI, otherwise the next progress() sends.
  void tell(int64_t peer, const MpiControl &message);
  /// Handles control messages that have arrived. Does nothing on a thread that must not call MPI.
  /// ZERO_E_STATE once MPI was finalised.
  Status progress();
  /// @}

  /// Returns a number that no other group of this root has on any rank; -1 if tags have run out.
  int64_t new_group_number();
  void enroll(int64_t number, MpiMember *member);
  void leave(int64_t number);
  /// Takes over memory that MPI may still use. May be nullptr.
  void keep(std::unique_ptr<MpiBlock> block) noexcept;
  void forget(int64_t number) noexcept { members_.erase(number); }
  void note_failure() { failed_ = true; }
  /// @}

  int64_t quarantined_nbytes() const;
  const MpiProcess &process() const { return process_; }

 private:
  friend struct MpiRetirement;

  Status error(int32_t code, const char *what) const;
  Status check_alive() const;
  Status listen();
  Status receive();
  void flush();
  void dispatch(int64_t source, const MpiControl &message);
  void reply(int64_t source, const MpiControl &query);
  void reap();

  struct Outgoing {
    int64_t peer;
    MpiControl message;
    MpiRequest request;
    bool started = false;
  };

  std::mutex mutex_;
  const MpiProcess process_;
  const int64_t linger_ms_;  ///< how long the last release waits for the other ranks
  uint64_t comm_ = 0;
  MpiRequest duplicate_;
  bool opened_ = false;
  int64_t rank_ = 0;
  int64_t size_ = 0;
  int64_t next_group_ = 0;
  bool failed_ = false;
  int64_t byes_ = 0;
  bool peer_failed_ = false;  ///< a peer's bye reported a failure

  std::map<int64_t, MpiMember *> members_;
  /// Numbers of groups that no longer exist.
  std::set<int64_t> former_;
  /// Messages for groups that this rank has not finished making.
  std::map<int64_t, std::vector<std::pair<int64_t, MpiControl>>> early_;
  std::deque<std::unique_ptr<Outgoing>> outbox_;
  bool listening_ = false;  ///< until the root begins to close
  MpiRequest inbox_request_;
  MpiControl inbox_;
  std::unique_ptr<MpiBlock> lingering_;  ///< first of a list
};

/// Starts MPI if it was not started. ZERO_E_STATE if it was finalised or this thread must not call
/// it.
Status start_mpi(const zero_mpi_table *table, MpiProcess *out);

/// Makes a root. When its last holder releases it, it sends bye to the other ranks. The last root
/// finalises MPI if libzero initialised it and no failure was seen.
Status make_mpi_root(const MpiProcess &process, int64_t linger_ms, std::shared_ptr<MpiRoot> *out);

/// True if the release of the last group over MPI is to finalise it, and has not happened yet.
bool mpi_awaits_release();

/// True if MPI did not grant MPI_THREAD_MULTIPLE. Every call on MPI groups must then come from the
/// thread that made the first one, and no progress thread may be used. False before MPI was
/// started.
bool mpi_needs_single_thread();

/// Bytes that are kept because MPI may still use them, although their group was released.
int64_t mpi_quarantined_nbytes();

}  // namespace zero
