/// @file Communicators of the fake NCCL and the moves between them, in streams of emulated devices; and what tests tell it.
#include "tests/group/fake_nccl_comm.h"

#include "tests/group/fake_nccl.h"
#include "tests/memory/emulated_device.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace fake_nccl {

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("fake NCCL: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

void World::hang(std::unique_lock<std::mutex> &lock) {
  changed.wait(lock, [this, before = releases] { return releases != before; });
}

void Meeting::join(int rank, int of_size, int64_t device) {
  if (size != 0 && size != of_size) die("rank %d says that there are %d ranks, others say %d", rank, of_size, size);
  if (!ranks.insert(rank).second) die("rank %d comes twice with one id", rank);
  size = of_size;
  if (!devices.insert(device).second && !world().controls.shared_device) error = ncclInvalidUsage;
}

void Group::run() {
  const emulated::Spinning spinning;
  World &all = world();
  std::unique_lock lock(all.mutex);
  const auto aborted = [this] { return comm->aborted; };
  all.changed.wait_for(lock, std::chrono::microseconds(all.controls.late_us), aborted);
  if (breaks != ncclSuccess) comm->error = breaks;
  if (sticks || breaks != ncclSuccess) {
    all.changed.wait(lock, aborted);
  } else if (!comm->aborted) {
    exchange(lock);
  }
  --comm->pending;
  if (!comm->aborted) ++all.groups;
  const std::chrono::microseconds lingers(comm->aborted ? all.controls.linger_us : 0);
  lock.unlock();
  std::this_thread::sleep_for(lingers);
}

/// Nothing waits for its own side: all sends are there before the first receive is looked for.
void Group::exchange(std::unique_lock<std::mutex> &lock) {
  for (const Move &move : moves) {
    if (!move.sends) continue;
    ++untaken;
    comm->meeting->sent[{comm->rank, move.peer}].push_back({move.data, move.nbytes, this});
  }
  world().changed.notify_all();
  for (const Move &move : moves) {
    if (!move.sends && !receive(move, lock)) return;
  }
  world().changed.wait(lock, [this] { return comm->aborted || untaken == 0; });
}

/// False: aborted.
bool Group::receive(const Move &move, std::unique_lock<std::mutex> &lock) {
  World &all = world();
  std::deque<Sent> &queue = comm->meeting->sent[{move.peer, comm->rank}];
  all.changed.wait(lock, [&] { return comm->aborted || !queue.empty(); });
  if (comm->aborted) return false;
  const Sent sent = queue.front();
  queue.pop_front();
  if (sent.nbytes != move.nbytes)
    die("rank %d sends %lld bytes, rank %d receives %lld", move.peer, static_cast<long long>(sent.nbytes), comm->rank,
        static_cast<long long>(move.nbytes));
  const auto nbytes = static_cast<size_t>(move.nbytes);
  std::memcpy(emulated::bytes_of_device(move.data, move.nbytes), emulated::bytes_of_device(sent.data, sent.nbytes), nbytes);
  all.moved += move.nbytes;
  --sent.group->untaken;
  all.changed.notify_all();
  return true;
}

}  // namespace fake_nccl

using namespace fake_nccl;

void ncclComm::write_handle() {
  if (handle != nullptr) *handle = this;
  handle = nullptr;
}

void ncclComm::begin(const std::shared_ptr<Group> &group) {
  launching = group;
  ++pending;
  polls = kPolls;
  for (const Move &move : group->moves) {
    Meeting::Ends &ends = meeting->met[move.sends ? Meeting::Pair{rank, move.peer} : Meeting::Pair{move.peer, rank}];
    (move.sends ? ends.source : ends.destination) = true;
  }
}

bool ncclComm::waits() const {
  if (error != ncclSuccess || meeting->error != ncclSuccess) return false;
  if (sticks || static_cast<int>(meeting->ranks.size()) < meeting->size) return true;
  if (finalized) return pending > 0;
  if (launching == nullptr) return false;
  return !std::all_of(launching->moves.begin(), launching->moves.end(), [this](const Move &move) {
    const Meeting::Ends &ends = meeting->met[move.sends ? Meeting::Pair{rank, move.peer} : Meeting::Pair{move.peer, rank}];
    return ends.source && ends.destination;
  });
}

ncclResult_t ncclComm::poll() {
  if (waits()) return ncclInProgress;
  if (polls > 0) {
    --polls;
    return ncclInProgress;
  }
  if (error == ncclSuccess) error = meeting->error;
  write_handle();
  return error;
}

/// Peers do not notice: what this rank would have sent is gone, what it would have taken is left to them.
void ncclComm::abort() {
  aborted = true;
  write_handle();
  launching = nullptr;
  for (auto &[pair, queue] : meeting->sent) {
    if (pair.first == rank) queue.clear();
  }
  world().changed.notify_all();
}

namespace {

template <class Function>
auto locked(Function &&function) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  return function(all);
}

void set(int64_t Controls::*control, int64_t value) {
  locked([&](World &all) { all.controls.*control = value; });
}

void set(Fault Controls::*control, const Fault &fault) {
  locked([&](World &all) { all.controls.*control = fault; });
}

}  // namespace

void fake_nccl_reset() {
  fake_nccl_release();
  locked([](World &all) {
    all.controls = {};
    all.calls_left = -1;
    all.failed = false;
    all.calls.clear();
    all.moved = 0;
    all.groups = 0;
  });
}

void fake_nccl_release() {
  locked([](World &all) {
    ++all.releases;
    all.changed.notify_all();
  });
}

void fake_nccl_fail(const char *entry, int64_t number) {
  locked([&](World &all) {
    all.failing = entry != nullptr ? entry : "";
    all.calls_left = number;
    all.failed = false;
  });
}

void fake_nccl_version(int64_t version) { set(&Controls::version, version); }
void fake_nccl_allow_shared_device(int64_t on) { set(&Controls::shared_device, on); }
void fake_nccl_late(int64_t microseconds) { set(&Controls::late_us, microseconds); }
void fake_nccl_linger(int64_t microseconds) { set(&Controls::linger_us, microseconds); }
void fake_nccl_stick(int64_t rank, int64_t number) { set(&Controls::stick, {rank, number}); }
void fake_nccl_break(int64_t rank, int64_t number, int32_t error) {
  set(&Controls::breaks, {rank, number, static_cast<ncclResult_t>(error)});
}
void fake_nccl_stick_init(int64_t rank) { set(&Controls::stick_init, rank); }
void fake_nccl_break_init(int64_t rank, int32_t error) { set(&Controls::break_init, {rank, 0, static_cast<ncclResult_t>(error)}); }
void fake_nccl_stick_finalize(int64_t rank) { set(&Controls::stick_finalize, rank); }
void fake_nccl_hang_abort(int64_t rank) { set(&Controls::hang_abort, rank); }
void fake_nccl_hang_destroy(int64_t rank) { set(&Controls::hang_destroy, rank); }

int64_t fake_nccl_failed() {
  return locked([](World &all) -> int64_t { return all.failed ? 1 : 0; });
}
int64_t fake_nccl_objects() {
  return locked([](World &all) { return static_cast<int64_t>(all.comms.size()); });
}
int64_t fake_nccl_calls(const char *entry) {
  return locked([entry](World &all) { return all.calls[entry]; });
}
int64_t fake_nccl_moved() {
  return locked([](World &all) { return all.moved; });
}
int64_t fake_nccl_groups() {
  return locked([](World &all) { return all.groups; });
}
