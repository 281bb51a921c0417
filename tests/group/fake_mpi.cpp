/// @file An MPI module whose ranks are threads of one process, and whose calls fail on demand: what no real MPI does when a test asks.
/// Knows the table of libzero's modules, nothing of groups.
#include "tests/group/fake_mpi.h"

#include "group/module/zero_mpi_module.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace zero::fake_mpi {
namespace {

constexpr int32_t kError = 17;

struct Message {
  int64_t from;
  int64_t tag;
  std::vector<char> bytes;
};

/// One communicator: a mailbox per rank.
using Communicator = std::vector<std::deque<Message>>;

/// A rank's handle of a communicator: its number (how many were made before it) and the rank, because a thread of another rank may close
/// it.
constexpr int kRankBits = 16;
uint64_t handle_of(uint64_t number, int64_t rank) { return number << kRankBits | static_cast<uint64_t>(rank); }
uint64_t number_of(uint64_t comm) { return comm >> kRankBits; }
int64_t rank_of(uint64_t comm) { return static_cast<int64_t>(comm & ((uint64_t{1} << kRankBits) - 1)); }

struct Request {
  enum class Kind { send, recv, duplicate } kind;
  uint64_t comm;
  int64_t peer = -1;
  int64_t tag = 0;
  void *data = nullptr;
  int64_t nbytes = 0;
  std::vector<char> sent{};  ///< copy of a send's data
  bool cancelled = false;
  int64_t tests_to_go = 0;  ///< of a cancelled one, that still say no
};

struct World {
  std::mutex mutex;
  int64_t size = 1;
  int64_t thread_level = ZERO_MPI_THREAD_MULTIPLE;
  bool main_thread = true;
  bool finalized = false;
  int64_t tag_limit = 32767;
  bool held = false;
  bool delayed = false;
  bool alive = true;
  int64_t disturbed = 0;
  int64_t dead_calls = 0;
  int64_t open = 0;
  uint64_t first = 0;               ///< communicator of this world
  std::vector<int64_t> duplicated;  ///< calls of duplicate by rank
  std::map<uint64_t, Communicator> comms;
  std::set<Request *> requests;  ///< that no test has completed
};

/// Outlives every world, as a library's state would.
World &world() {
  static World *instance = new World;
  return *instance;
}

thread_local int64_t my_rank = 0;
thread_local Call failing = Call::start;
thread_local int64_t calls_left = -1;
thread_local bool failed = false;

bool fails(Call call) {
  if (call != failing || calls_left < 0) return false;
  failed = calls_left-- == 0 || failed;
  return calls_left < 0;
}

/// The same for a call on a communicator: what former worlds left still works.
bool fails_on(Call call, uint64_t comm) { return number_of(comm) >= world().first && fails(call); }

/// Counts a call that must not be made. With the lock.
void note_call() { world().dead_calls += world().alive ? 0 : 1; }

Request *request_of(uint64_t word) { return reinterpret_cast<Request *>(word); }

int32_t start(zero_mpi_start *out) {
  if (fails(Call::start)) return kError;
  World &all = world();
  const std::lock_guard lock(all.mutex);
  *out = {.finalized = all.finalized ? 1 : 0,
          .initialized_us = 0,
          .thread_level = all.thread_level,
          .main_thread = all.main_thread ? 1 : 0,
          .tag_limit = all.tag_limit,
          .world_size = all.size};
  return 0;
}

int32_t stop() { return 0; }

int32_t alive() {
  const std::lock_guard lock(world().mutex);
  return world().alive ? 1 : 0;
}

void library_text(char *out, int64_t out_nbytes) { std::snprintf(out, static_cast<size_t>(out_nbytes), "threads in place of MPI"); }

void error_text(int32_t error, char *out, int64_t out_nbytes) {
  std::snprintf(out, static_cast<size_t>(out_nbytes), "error %d on demand", error);
}

int32_t comm_duplicate(int64_t, uint64_t *out, uint64_t *request) {
  if (fails(Call::duplicate)) return kError;
  World &all = world();
  const std::lock_guard lock(all.mutex);
  note_call();
  ++all.open;
  const auto number = static_cast<uint64_t>(all.duplicated[static_cast<size_t>(my_rank)]++);
  all.comms[number].resize(static_cast<size_t>(all.size));
  *out = handle_of(number, my_rank);
  *request = reinterpret_cast<uint64_t>(new Request{Request::Kind::duplicate, *out});
  return 0;
}

int32_t comm_open(const uint64_t *comm, int64_t *out_rank, int64_t *out_size) {
  if (fails(Call::open)) return kError;
  *out_rank = rank_of(*comm);
  const std::lock_guard lock(world().mutex);
  note_call();
  *out_size = world().size;
  return 0;
}

int32_t comm_free(uint64_t *comm) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  note_call();
  if (fails_on(Call::free, *comm)) return kError;
  if (number_of(*comm) >= all.first) --all.open;
  return 0;
}

int32_t send(const uint64_t *comm, const void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request) {
  if (fails(Call::send)) return kError;
  World &all = world();
  const std::lock_guard lock(all.mutex);
  note_call();
  const auto *begin = static_cast<const char *>(data);
  const std::vector<char> bytes(begin, begin + nbytes);
  all.comms[number_of(*comm)][static_cast<size_t>(peer)].push_back({rank_of(*comm), tag, bytes});
  auto *made = new Request{Request::Kind::send, *comm, peer, tag, const_cast<void *>(data), nbytes, bytes};
  *request = reinterpret_cast<uint64_t>(*all.requests.insert(made).first);
  return 0;
}

int32_t recv(const uint64_t *comm, void *data, int64_t nbytes, int64_t peer, int64_t tag, uint64_t *request) {
  if (fails(Call::recv)) return kError;
  World &all = world();
  const std::lock_guard lock(all.mutex);
  note_call();
  *request = reinterpret_cast<uint64_t>(*all.requests.insert(new Request{Request::Kind::recv, *comm, peer, tag, data, nbytes}).first);
  return 0;
}

/// Takes the first message that fits.
bool take(Communicator &comm, Request &request, int64_t *out_peer, int64_t *out_nbytes) {
  auto &mailbox = comm[static_cast<size_t>(rank_of(request.comm))];
  const auto fits = [&](const Message &message) {
    return message.tag == request.tag && (request.peer < 0 || message.from == request.peer);
  };
  const auto found = std::find_if(mailbox.begin(), mailbox.end(), fits);
  if (found == mailbox.end()) return false;
  *out_peer = found->from;
  *out_nbytes = std::min(static_cast<int64_t>(found->bytes.size()), request.nbytes);
  std::memcpy(request.data, found->bytes.data(), static_cast<size_t>(*out_nbytes));
  mailbox.erase(found);
  return true;
}

bool ended(World &all, Request &request, int64_t *out_peer, int64_t *out_nbytes) {
  if (request.cancelled) return request.tests_to_go-- <= 0;
  if (request.kind == Request::Kind::send) return !all.held;
  if (request.kind == Request::Kind::recv) return take(all.comms[number_of(request.comm)], request, out_peer, out_nbytes);
  return std::all_of(all.duplicated.begin(), all.duplicated.end(),
                     [&](int64_t count) { return count > static_cast<int64_t>(number_of(request.comm)); });
}

int32_t test(uint64_t *request, int32_t *out_done, int64_t *out_peer, int64_t *out_nbytes) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  note_call();
  const bool meets = request_of(*request)->kind == Request::Kind::duplicate;
  const bool broken = fails_on(meets ? Call::meet : Call::test, request_of(*request)->comm);
  *out_done = broken || ended(all, *request_of(*request), out_peer, out_nbytes) ? 1 : 0;
  if (*out_done != 0) {
    Request *ended_request = request_of(std::exchange(*request, 0));
    all.requests.erase(ended_request);
    delete ended_request;
  }
  return broken ? kError : 0;
}

int32_t cancel(uint64_t *request) {
  const std::lock_guard lock(world().mutex);
  note_call();
  if (fails_on(Call::cancel, request_of(*request)->comm)) return kError;
  request_of(*request)->cancelled = true;
  request_of(*request)->tests_to_go = world().delayed ? 1 : 0;
  return 0;
}

}  // namespace

const char *call_name(Call call) {
  static constexpr const char *kNames[kCalls] = {"start", "duplicate", "meet", "open", "free", "send", "recv", "test", "cancel"};
  return kNames[static_cast<int>(call)];
}

void begin_world(int64_t size) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  all.size = size;
  all.thread_level = ZERO_MPI_THREAD_MULTIPLE;
  all.main_thread = true;
  all.finalized = false;
  all.tag_limit = 32767;
  all.held = false;
  all.delayed = false;
  all.alive = true;
  all.disturbed = 0;
  all.dead_calls = 0;
  all.open = 0;
  // Numbers go on: requests of worlds that failed may still be looked at.
  const int64_t next = all.duplicated.empty() ? 0 : *std::max_element(all.duplicated.begin(), all.duplicated.end());
  all.first = static_cast<uint64_t>(next);
  all.duplicated.assign(static_cast<size_t>(size), next);
}

void join(int64_t rank) { my_rank = rank; }

void set_thread_level(int64_t level, bool main_thread) {
  const std::lock_guard lock(world().mutex);
  world().thread_level = level;
  world().main_thread = main_thread;
}

void set_finalized(bool finalized) {
  const std::lock_guard lock(world().mutex);
  world().finalized = finalized;
}

void set_tag_limit(int64_t limit) {
  const std::lock_guard lock(world().mutex);
  world().tag_limit = limit;
}

void fail(Call call, int64_t index) {
  failing = call;
  calls_left = index;
  failed = false;
}

bool has_failed() { return failed; }

void hold_sends(bool hold) {
  World &all = world();
  const std::lock_guard lock(all.mutex);
  all.held = hold;
  if (hold) return;
  // An MPI may read a send's memory until the send has ended.
  for (const Request *request : all.requests) {
    if (request->kind != Request::Kind::send || number_of(request->comm) < all.first) continue;
    if (std::memcmp(request->data, request->sent.data(), request->sent.size()) != 0) ++all.disturbed;
  }
}

int64_t disturbed_sends() {
  const std::lock_guard lock(world().mutex);
  return world().disturbed;
}

void delay_cancels(bool delay) {
  const std::lock_guard lock(world().mutex);
  world().delayed = delay;
}

void set_alive(bool alive) {
  const std::lock_guard lock(world().mutex);
  world().alive = alive;
}

int64_t calls_while_dead() {
  const std::lock_guard lock(world().mutex);
  return world().dead_calls;
}

int64_t open_communicators() {
  const std::lock_guard lock(world().mutex);
  return world().open;
}

}  // namespace zero::fake_mpi

extern "C" __attribute__((visibility("default"))) const zero_mpi_table *zero_mpi_module() {
  using namespace zero::fake_mpi;
  static const zero_mpi_table table = {.struct_size = sizeof table,
                                       .build = ZERO_MPI_BUILD,
                                       .start = start,
                                       .stop = stop,
                                       .alive = alive,
                                       .library_text = library_text,
                                       .error_text = error_text,
                                       .comm_duplicate = comm_duplicate,
                                       .comm_open = comm_open,
                                       .comm_free = comm_free,
                                       .send = send,
                                       .recv = recv,
                                       .test = test,
                                       .cancel = cancel};
  return &table;
}
