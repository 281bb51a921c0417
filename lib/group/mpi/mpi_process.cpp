/// @file MPI in this process: its start, the roots, and the release of the last root. Knows no
/// groups.
#include "core/clock.h"
#include "core/doorbell.h"
#include "core/log.h"
#include "core/owned_fd.h"
#include "group/mpi/mpi_root.h"

#include <algorithm>

namespace zero {

/// The retirement of a root that has no holders. It stays in memory while MPI may still use what it
/// owns.
struct MpiRetirement {
  /// Sends bye to all ranks. A rank that has received it from all others can expect no more
  /// messages.
  static void begin(MpiRoot &root) {
    const std::lock_guard lock(root.mutex());
    if (root.process_.table->alive() == 0) return;
    MpiControl message;
    message.kind = MpiControl::bye;
    message.code = root.failed_ ? 1 : 0;
    for (int64_t peer = 0; peer < root.size_; ++peer) {
      if (peer != root.rank_) root.tell(peer, message);
    }
  }

  static bool failed(MpiRoot &root) {
    const std::lock_guard lock(root.mutex());
    return root.failed_ || root.peer_failed_ || (!root.opened_ && root.duplicate_.active);
  }

  static bool opened(MpiRoot &root) {
    const std::lock_guard lock(root.mutex());
    return root.opened_;
  }

  /// Frees the communicator once all ranks have sent bye. A root that has failed is kept for ever:
  /// its memory may still be written.
  static bool try_close(MpiRoot &root) {
    const std::lock_guard lock(root.mutex());
    if (!root.opened_) return !root.duplicate_.active;
    if (!root.may_call() || root.process_.table->alive() == 0 || !root.progress().ok()) return false;
    const bool quiet = root.byes_ == root.size_ - 1 && root.outbox_.empty() && root.lingering_ == nullptr;
    if (root.failed_ || root.peer_failed_ || !quiet) return false;
    if (root.listening_ && root.inbox_request_.active && root.process_.table->cancel(&root.inbox_request_.word) != 0) return false;
    root.listening_ = false;
    if (!root.test(&root.inbox_request_).ok() || root.inbox_request_.active) return false;
    return root.process_.table->comm_free(&root.comm_) == 0;
  }

  static int64_t linger_ms(const MpiRoot &root) { return root.linger_ms_; }
};

namespace {

struct State {
  std::mutex mutex;
  MpiProcess process;
  bool started = false;
  bool finalized_by_us = false;
  bool failed = false;
  int64_t live = 0;
  std::vector<MpiRoot *> all;      ///< live and retired
  std::vector<MpiRoot *> retired;  ///< waiting for the bye of other ranks
};

/// Never destroyed: MPI may use the memory of retired roots until the process ends.
State &state() {
  static State *instance = new State;
  return *instance;
}

/// Closes the roots that can be closed. True if none is left to wait for, or if the program has
/// finalised MPI.
bool sweep(State &all) {
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.retired, [&](MpiRoot *root) {
    if (MpiRetirement::failed(*root)) {
      all.failed = true;
      return true;
    }
    if (!MpiRetirement::try_close(*root)) return false;
    std::erase(all.all, root);
    delete root;
    return true;
  });
  return all.retired.empty() || all.process.table->alive() == 0;
}

/// Called when the last group was released. Waits for the bye of other ranks and finalises MPI,
/// unless a failure was seen: MPI_Finalize could hang then.
void finish(State &all, int64_t linger_ms) {
  const Deadline deadline = Deadline::after_ms(linger_ms);
  Backoff backoff;
  bool swept = sweep(all);
  while (!swept && !deadline.passed()) {
    backoff.pause();
    swept = sweep(all);
  }
  const std::lock_guard lock(all.mutex);
  if (all.live > 0 || all.process.table->alive() == 0) return;
  if (!swept || all.failed) {
    log_line("MPI is not finalised: %s", swept ? "a group failed" : "not all ranks have released their groups");
    return;
  }
  all.process.table->stop();
  all.finalized_by_us = true;
}

void retire(MpiRoot *root) noexcept try {
  State &all = state();
  MpiRetirement::begin(*root);
  const int64_t linger_ms = MpiRetirement::linger_ms(*root);
  const bool may_call = root->may_call();
  const bool opened = MpiRetirement::opened(*root);
  bool last = false;
  {
    const std::lock_guard lock(all.mutex);
    all.retired.push_back(root);
    // A creation that failed before it had a communicator does not end MPI for later ones.
    last = --all.live == 0 && all.process.initialized_by_us && opened;
  }
  if (!may_call) return;
  if (last) {
    finish(all, linger_ms);
  } else {
    sweep(all);
  }
} catch (...) {
  log_line("out of memory while a group over MPI was released; its communicator is kept");
}

Status describe_start_error(const zero_mpi_table *table, int32_t code) {
  char text[512];
  table->error_text(code, text, sizeof text);
  return Status::error(ZERO_E_TRANSPORT, "MPI could not be started: %s", text);
}

}  // namespace

Status start_mpi(const zero_mpi_table *table, MpiProcess *out) {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  const std::thread::id caller = std::this_thread::get_id();
  const bool owned = all.started && all.process.thread_level < ZERO_MPI_THREAD_MULTIPLE;
  ZERO_CHECK(!owned || all.process.owner == caller, ZERO_E_STATE,
             "MPI did not grant MPI_THREAD_MULTIPLE, and another thread made the first group over MPI: make all of them on that one");
  zero_mpi_start found{};
  const StandardFdsHeld held;  // MPI opens most of its connections here
  if (const int32_t code = table->start(&found); code != 0) return describe_start_error(table, code);
  ZERO_CHECK(found.finalized == 0, ZERO_E_STATE, "MPI was finalised in this process (%s) and cannot be started again",
             all.finalized_by_us ? "by libzero, when the last group over MPI was released: hold one until the end" : "by the program");
  ZERO_CHECK(found.thread_level >= ZERO_MPI_THREAD_SERIALIZED || found.main_thread != 0, ZERO_E_STATE,
             "MPI granted calls only to the thread that initialised it, and this is another; initialise MPI with MPI_THREAD_MULTIPLE");
  all.process.table = table;
  all.process.initialized_by_us = all.process.initialized_by_us || found.initialized_us != 0;
  all.process.thread_level = found.thread_level;
  all.process.tag_limit = found.tag_limit;
  all.process.world_size = found.world_size;
  all.process.owner = caller;
  all.started = true;
  *out = all.process;
  return {};
}

Status make_mpi_root(const MpiProcess &process, int64_t linger_ms, std::shared_ptr<MpiRoot> *out) {
  State &all = state();
  sweep(all);
  auto root = std::make_unique<MpiRoot>(process, linger_ms);
  {
    const std::lock_guard lock(all.mutex);
    all.all.push_back(root.get());
    all.retired.reserve(all.all.size());
    ++all.live;
  }
  *out = std::shared_ptr<MpiRoot>(root.release(), retire);
  return {};
}

bool mpi_awaits_release() {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  return all.started && all.process.initialized_by_us && all.live > 0 && all.process.table->alive() != 0;
}

bool mpi_needs_single_thread() {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  return all.started && all.process.thread_level < ZERO_MPI_THREAD_MULTIPLE;
}

int64_t mpi_quarantined_nbytes() {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  int64_t nbytes = 0;
  for (MpiRoot *root : all.all) {
    const std::lock_guard root_lock(root->mutex());
    nbytes += root->quarantined_nbytes();
  }
  return nbytes;
}

}  // namespace zero
