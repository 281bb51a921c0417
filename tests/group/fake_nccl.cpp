/// @file NCCL's entry points over threads and emulated devices, and strict: what real NCCL may forgive, hang on or never notice ends the
/// process. As in NCCL, a move is in its stream only when its communicator is no longer busy, and two ranks that have not met before are
/// busy until both have come.
#include "tests/group/fake_nccl.h"

#include "tests/group/fake_nccl_comm.h"
#include "tests/memory/emulated_device.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace fake_nccl {
namespace {

/// What this thread has open between ncclGroupStart and ncclGroupEnd.
thread_local std::shared_ptr<Group> open_group;
thread_local const char *latest_error = "";

bool fails(const char *entry) {
  World &all = world();
  ++all.calls[entry];
  if (!all.failing.empty() && all.failing != entry) return false;
  if (all.calls_left < 0 || all.calls_left-- > 0) return false;
  all.failed = true;
  latest_error = "a failure on demand";
  return true;
}

ncclResult_t result_of(bool failed) { return failed ? ncclSystemError : ncclSuccess; }

std::shared_ptr<ncclComm> comm_of(ncclComm_t handle, const char *entry) {
  const auto found = world().comms.find(handle);
  if (found == world().comms.end()) die("%s on a communicator that was freed or never made", entry);
  return found->second;
}

/// NCCL makes a device current by itself, and then the one that it found; where it found none, device 0. Nothing better can be done where
/// the thread could not get its device.
void check_device(const ncclComm &comm, const char *entry) {
  const auto number = [](int64_t device) { return static_cast<int>(device); };
  if (emulated::current_device() != comm.device && !emulated::was_refused())
    die("%s on rank %d's communicator of device %d by a thread on device %d", entry, comm.rank, number(comm.device),
        number(emulated::current_device()));
}

/// One that may be given something.
std::shared_ptr<ncclComm> idle_comm_of(ncclComm_t handle, const char *entry) {
  std::shared_ptr<ncclComm> comm = comm_of(handle, entry);
  check_device(*comm, entry);
  if (comm->waits() || comm->polls > 0) die("%s on rank %d's communicator, where something is under way", entry, comm->rank);
  return comm;
}

void check_config(const ncclConfig_t *config) {
  const ncclConfig_t right = NCCL_CONFIG_INITIALIZER;
  if (config == nullptr || config->size != right.size || config->magic != right.magic) die("a config that was not initialised");
  if (config->blocking != 0) die("a communicator that blocks");
}

/// What every call inside a group gives the communicator, or why it may not.
ncclResult_t enter(const char *entry, ncclDataType_t type, ncclComm_t handle, cudaStream_t stream) {
  if (open_group == nullptr) die("%s outside of a group", entry);
  Group &group = *open_group;
  const std::shared_ptr<ncclComm> comm = idle_comm_of(handle, entry);
  if (group.comm != nullptr && (group.comm != comm || group.stream != stream)) die("a group of several communicators or streams");
  if (stream == nullptr) die("%s without a stream", entry);
  group.comm = comm;
  group.stream = stream;
  if (type != ncclInt8) die("%s of a type that is not ncclInt8", entry);
  const ncclResult_t error = fails(entry) ? ncclSystemError : comm->error;
  if (error != ncclSuccess) group.error = error;
  return error;
}

/// `itself`: that may be this rank.
void check_peer(const ncclComm &comm, int peer, bool itself, const char *entry) {
  if (peer < 0 || peer >= comm.meeting->size || (!itself && peer == comm.rank))
    die("%s of rank %d of %d with peer %d", entry, comm.rank, comm.meeting->size, peer);
}

void add(const char *entry, const Move &move) {
  Group &group = *open_group;
  const ncclComm &comm = *group.comm;
  check_peer(comm, move.peer, false, entry);
  if (emulated::device_of_memory(move.data) != comm.device || emulated::device_of_stream(group.stream) != comm.device)
    die("%s of rank %d with memory or a stream that is not of device %d", entry, comm.rank, static_cast<int>(comm.device));
  emulated::bytes_of_device(move.data, move.nbytes);  // ends the process where they are not all there
  group.moves.push_back(move);
}

ncclResult_t add_one(const char *entry, const Move &move, ncclDataType_t type, ncclComm_t handle, cudaStream_t stream) {
  const std::lock_guard lock(world().mutex);
  const ncclResult_t entered = enter(entry, type, handle, stream);
  if (entered == ncclSuccess) add(entry, move);
  return entered;
}

/// To all other ranks.
void add_sends(const char *entry, const void *data, int64_t nbytes) {
  const ncclComm &comm = *open_group->comm;
  for (int peer = 0; peer < comm.meeting->size; ++peer) {
    if (peer != comm.rank) add(entry, {true, const_cast<void *>(data), nbytes, peer});
  }
}

}  // namespace

World &world() {
  static World *instance = new World;
  return *instance;
}
}  // namespace fake_nccl

using namespace fake_nccl;

ncclResult_t ncclGetVersion(int *version) {
  const std::lock_guard lock(world().mutex);
  *version = static_cast<int>(world().controls.version);
  return result_of(fails(__func__));
}

const char *ncclGetLastError(ncclComm_t) { return latest_error; }

const char *ncclGetErrorString(ncclResult_t result) {
  static constexpr const char *kTexts[] = {"no error",       "unhandled cuda error",      "unhandled system error",
                                           "internal error", "invalid argument",          "invalid usage",
                                           "remote error",   "NCCL operation in progress"};
  return static_cast<size_t>(result) < std::size(kTexts) ? kTexts[result] : "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  if (fails(__func__)) return ncclSystemError;
  std::memset(id->internal, 'i', sizeof id->internal);
  const int64_t number = all.next_id++;
  std::memcpy(id->internal, &number, sizeof number);
  all.meetings[number] = std::make_shared<Meeting>();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank, ncclConfig_t *config) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  check_config(config);
  if (emulated::current_device() < 0) die("%s by a thread without a device", __func__);
  *out = nullptr;
  if (fails(__func__)) return ncclSystemError;
  if (size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
  int64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  const auto found = all.meetings.find(number);
  if (found == all.meetings.end()) die("rank %d comes with an id that was not given, or whose ranks have all come", rank);
  const auto comm = std::make_shared<ncclComm>(found->second, rank, emulated::current_device(), out);
  all.comms[comm.get()] = comm;
  *out = comm.get();
  if (all.controls.break_init.rank == rank) {
    comm->error = all.controls.break_init.error;
    return ncclInProgress;
  }
  comm->sticks = all.controls.stick_init == rank;
  comm->meeting->join(rank, size, comm->device);
  if (static_cast<int>(comm->meeting->ranks.size()) == size) all.meetings.erase(found);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *out) {
  std::shared_ptr<Group> launched;
  {
    const std::lock_guard lock(world().mutex);
    const std::shared_ptr<ncclComm> comm = comm_of(handle, __func__);
    if (fails(__func__)) return ncclSystemError;
    *out = comm->poll();
    if (*out == ncclSuccess) launched = std::exchange(comm->launching, nullptr);
  }
  if (launched != nullptr) emulated::give(launched->stream, [launched] { launched->run(); });
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  const std::lock_guard lock(world().mutex);
  if (open_group != nullptr) die("a group inside a group");
  if (fails(__func__)) return ncclSystemError;
  open_group = std::make_shared<Group>();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add_one(__func__, {true, const_cast<void *>(data), static_cast<int64_t>(count), peer}, type, comm, stream);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add_one(__func__, {false, data, static_cast<int64_t>(count), peer}, type, comm, stream);
}

/// Of both that follow only what is done in place is known here.
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t handle,
                           cudaStream_t stream) {
  const std::lock_guard lock(world().mutex);
  const ncclResult_t entered = enter(__func__, type, handle, stream);
  if (entered != ncclSuccess) return entered;
  const ncclComm &comm = *open_group->comm;
  check_peer(comm, root, true, __func__);
  if (from != to) die("%s of rank %d, not in place", __func__, comm.rank);
  if (root == comm.rank) {
    add_sends(__func__, from, static_cast<int64_t>(count));
  } else {
    add(__func__, {false, to, static_cast<int64_t>(count), root});
  }
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t handle, cudaStream_t stream) {
  const std::lock_guard lock(world().mutex);
  const ncclResult_t entered = enter(__func__, type, handle, stream);
  if (entered != ncclSuccess) return entered;
  const ncclComm &comm = *open_group->comm;
  const auto nbytes = static_cast<int64_t>(count);
  char *const whole = static_cast<char *>(to);
  if (from != whole + comm.rank * nbytes) die("%s of rank %d, not in place", __func__, comm.rank);
  add_sends(__func__, from, nbytes);
  for (int peer = 0; peer < comm.meeting->size; ++peer) {
    if (peer != comm.rank) add(__func__, {false, whole + peer * nbytes, nbytes, peer});
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  if (open_group == nullptr) die("the end of a group that was not begun");
  const std::shared_ptr<Group> group = std::exchange(open_group, nullptr);
  if (fails(__func__)) group->error = ncclSystemError;
  if (group->comm == nullptr) return group->error;
  ncclComm &comm = *group->comm;
  check_device(comm, __func__);
  if (group->error != ncclSuccess) return comm.error = group->error;
  group->sticks = all.controls.stick.due(comm.rank);
  group->breaks = all.controls.breaks.due_from(comm.rank);
  comm.begin(group);
  return ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  World &all = world();
  std::unique_lock lock(all.mutex);
  const std::shared_ptr<ncclComm> comm = comm_of(handle, __func__);
  check_device(*comm, __func__);
  const bool failed = fails(__func__);
  if (all.controls.hang_abort == comm->rank || all.controls.hang_abort == fake_nccl_every_rank) all.hang(lock);
  comm->abort();
  all.comms.erase(handle);
  return result_of(failed);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const std::lock_guard lock(world().mutex);
  const std::shared_ptr<ncclComm> comm = idle_comm_of(handle, __func__);
  if (fails(__func__)) return ncclSystemError;
  if (comm->error != ncclSuccess) return comm->error;
  if (comm->finalized) die("rank %d's communicator is finalized twice", comm->rank);
  comm->finalized = true;
  comm->polls = kPolls;
  comm->sticks = world().controls.stick_finalize == comm->rank;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  World &all = world();
  std::unique_lock lock(all.mutex);
  const std::shared_ptr<ncclComm> comm = idle_comm_of(handle, __func__);
  const bool failed = fails(__func__);
  if (comm->error != ncclSuccess) return comm->error;
  if (!comm->finalized) die("rank %d's communicator is destroyed, but was not finalized", comm->rank);
  if (all.controls.hang_destroy == comm->rank) all.hang(lock);
  all.comms.erase(handle);
  return result_of(failed);
}
