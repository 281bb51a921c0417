/// @file The emulation of CUDA for tests on machines without a GPU.
#include "tests/memory/emulated_cuda.h"

#include "memory/module/zero_cuda_module.h"
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_device.h"
#include "tests/memory/emulated_streams.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace {

using emulated::bytes_at;
using emulated::Event;
using emulated::fails;
using emulated::Graph;
using emulated::kCaptured;
using emulated::kFailed;
using emulated::Record;
using emulated::Stream;

constexpr int32_t kNoDevice = 100;
constexpr int32_t kInvalid = 1;
constexpr int32_t kFull = 2;

std::atomic<int64_t> devices{2};
std::atomic<int64_t> objects{0};
std::atomic<int64_t> fail_from{-1};
std::atomic<int64_t> calls{0};
std::atomic<int64_t> late_us{50};
std::atomic<int64_t> apart{0};
std::atomic<int64_t> largest{-1};
std::atomic<int64_t> alloc_waits{0};
std::atomic<int64_t> spinning{0};
std::atomic<uint64_t> loaded{0};  ///< bit per device: kernels are loaded

void be_late(int64_t microseconds) {
  if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

/// The default stream of a device, created once and kept.
Stream &default_stream(int64_t device) {
  static std::mutex mutex;
  static auto *streams = new std::map<int64_t, std::unique_ptr<Stream>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Stream> &stream = (*streams)[device];
  if (stream == nullptr) stream = std::make_unique<Stream>(device);
  return *stream;
}

Stream &stream_of(int64_t device, void *stream) { return stream != nullptr ? *static_cast<Stream *>(stream) : default_stream(device); }

void give_copy(Stream &stream, void *out, const void *from, int64_t nbytes, int64_t late) {
  stream.give([=] {
    be_late(late);
    if (nbytes > 0) std::memcpy(bytes_at(out, nbytes), bytes_at(from, nbytes), static_cast<size_t>(nbytes));
  });
}

int32_t clear(int64_t, void *data, int64_t nbytes, void *stream) {
  if (fails()) return kFailed;
  emulated::give(stream, [=] { std::memset(emulated::bytes_of_device(data, nbytes), 0, static_cast<size_t>(nbytes)); });
  return 0;
}

int32_t device_alloc(int64_t device, int64_t nbytes, void **out) {
  if (fails()) return kFailed;
  if (Graph::begun_here()) return kCaptured;
  if (largest >= 0 && nbytes > largest) return kFull;
  if (alloc_waits != 0) be_late(5000);
  while (alloc_waits != 0 && spinning > 0) be_late(50);
  *out = caller_alloc(device, nbytes);
  ++objects;
  return 0;
}

int32_t device_free(int64_t, void *data) {
  if (Graph::begun_here()) return kCaptured;
  Stream::wait_for_all(emulated::device_of_memory(data));
  caller_free(data);
  --objects;
  return fails() ? kFailed : 0;
}

int32_t reach(int64_t device, int64_t peer) {
  if (fails()) return kFailed;
  return device == peer || apart == 0 ? 0 : kInvalid;
}

void error_text(int32_t error, char *out, int64_t out_nbytes) {
  const char *text = error == kNoDevice  ? "no CUDA-capable device is detected"
                     : error == kInvalid ? "invalid argument"
                     : error == kFull    ? "out of memory"
                                         : "launch failure";
  std::snprintf(out, static_cast<size_t>(out_nbytes), "%s (emulated %d)", text, error);
}

int32_t device_count(int64_t *out) {
  if (fails()) return kFailed;
  *out = devices;
  return devices > 0 ? 0 : kNoDevice;
}

int32_t device_name(int64_t device, char *out, int64_t out_nbytes) {
  if (fails()) return kFailed;
  std::snprintf(out, static_cast<size_t>(out_nbytes), "emulated device %lld", static_cast<long long>(device));
  return 0;
}

int32_t memory_device(int64_t, const void *address, int64_t *out) {
  if (fails()) return kFailed;
  *out = emulated::device_of_memory(address);
  return 0;
}

/// A stream that is captured cannot be queried.
int32_t stream_device(int64_t device, void *stream, int64_t *out) {
  if (fails()) return kFailed;
  *out = static_cast<Stream *>(stream)->captures() ? device : emulated::device_of_stream(stream);
  return 0;
}

int32_t pinned_alloc(int64_t, int64_t nbytes, void **out) {
  if (fails()) return kFailed;
  if (Graph::begun_here()) return kCaptured;
  *out = std::malloc(static_cast<size_t>(nbytes));
  ++objects;
  return 0;
}

int32_t pinned_free(int64_t, void *data) {
  if (Graph::begun_here()) return kCaptured;
  std::free(data);
  --objects;
  return fails() ? kFailed : 0;
}

int32_t stream_create(int64_t device, void **out) {
  if (fails()) return kFailed;
  *out = new Stream(device);
  ++objects;
  return 0;
}

int32_t stream_destroy(int64_t, void *stream) {
  delete static_cast<Stream *>(stream);
  --objects;
  return fails() ? kFailed : 0;
}

int32_t stream_wait(int64_t, void *stream) {
  if (Graph::begun_here() || !static_cast<Stream *>(stream)->wait()) return kCaptured;
  return fails() ? kFailed : 0;
}

int32_t stream_captures(int64_t, void *stream, int32_t *out) {
  if (fails()) return kFailed;
  *out = static_cast<Stream *>(stream)->captures() ? 1 : 0;
  return 0;
}

/// A graph cannot copy host memory, because the memory may be gone when the graph runs.
int32_t copy(int64_t, void *out, const void *from, int64_t nbytes, void *stream) {
  if (fails()) return kFailed;
  const bool is_host = emulated::device_of_memory(out) < 0 || emulated::device_of_memory(from) < 0;
  if (is_host && static_cast<Stream *>(stream)->captures()) return kCaptured;
  give_copy(*static_cast<Stream *>(stream), out, from, nbytes, late_us);
  return 0;
}

int32_t event_create(int64_t, void **out) {
  if (fails()) return kFailed;
  *out = new Event;
  ++objects;
  return 0;
}

int32_t event_destroy(int64_t, void *event) {
  delete static_cast<Event *>(event);
  --objects;
  return fails() ? kFailed : 0;
}

int32_t event_record(int64_t device, void *event, void *stream) {
  if (fails()) return kFailed;
  stream_of(device, stream).record(*static_cast<Event *>(event));
  return 0;
}

int32_t event_wait(int64_t, void *event) {
  if (fails()) return kFailed;
  if (Graph::begun_here()) return kCaptured;
  const std::shared_ptr<Record> record = static_cast<Event *>(event)->newest();
  if (record != nullptr && record->graph() != nullptr) return kCaptured;
  if (record != nullptr) record->wait();
  return 0;
}

int32_t event_ended(int64_t, void *event, int32_t *out) {
  if (fails()) return kFailed;
  if (Graph::begun_here()) return kCaptured;
  const std::shared_ptr<Record> record = static_cast<Event *>(event)->newest();
  if (record != nullptr && record->graph() != nullptr) return kCaptured;
  *out = record == nullptr || record->ended() ? 1 : 0;
  return 0;
}

int32_t stream_follow(int64_t device, void *stream, void *event) {
  if (fails()) return kFailed;
  return stream_of(device, stream).follow(*static_cast<Event *>(event)) ? 0 : kCaptured;
}

thread_local int64_t current_device = -1;
thread_local bool was_refused = false;

int32_t enter(int64_t device, zero_cuda_visit *out) {
  was_refused = fails();
  if (was_refused) return kFailed;
  // There is no stack of contexts here; leave() makes this device current again.
  *out = {static_cast<int32_t>(current_device), -1};
  current_device = device;
  return 0;
}

int32_t leave(const zero_cuda_visit *visit) {
  current_device = visit->pushed;
  return fails() ? kFailed : 0;
}

int32_t load(int64_t device) {
  if (fails()) return kFailed;
  loaded |= uint64_t{1} << device;
  return 0;
}

}  // namespace

int64_t emulated::current_device() { return ::current_device; }
bool emulated::was_refused() { return ::was_refused; }

emulated::Spinning::Spinning() { ++spinning; }
emulated::Spinning::~Spinning() { --spinning; }

bool emulated::is_loaded(int64_t device) { return (loaded >> device & 1) != 0; }

bool emulated::fails() {
  const int64_t from = fail_from.load();
  return calls.fetch_add(1) >= from && from >= 0;
}

void emulated::give(void *stream, std::function<void()> work) {
  static_cast<Stream *>(stream)->give([work = std::move(work), late = late_us.load()] {
    be_late(late);
    work();
  });
}

int64_t emulated::device_of_stream(void *stream) { return static_cast<Stream *>(stream)->device(); }

void emulated_devices(int64_t count) { devices = count; }
void emulated_apart(int64_t on) { apart = on; }
void emulated_largest(int64_t nbytes) { largest = nbytes; }
void emulated_alloc_waits(int64_t on) { alloc_waits = on; }
int64_t emulated_spinning() { return spinning; }
void emulated_fail_from(int64_t number) {
  calls = 0;
  fail_from = number;
}
void emulated_late(int64_t microseconds) { late_us = microseconds; }
int64_t emulated_objects() { return objects; }

const char *caller_module() {
  static const std::string path = [] {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<const void *>(&caller_module), &info) != 0 ? std::string(info.dli_fname) : std::string();
  }();
  return path.c_str();
}

const char *caller_missing() { return ""; }

void *caller_pinned_alloc(int64_t nbytes) { return std::malloc(static_cast<size_t>(nbytes)); }
void caller_pinned_free(void *data) { std::free(data); }
void *caller_stream_create(int64_t device) { return new Stream(device); }
void caller_stream_destroy(void *stream) { delete static_cast<Stream *>(stream); }
void caller_copy(void *stream, void *to, const void *from, int64_t nbytes, int64_t late) {
  give_copy(*static_cast<Stream *>(stream), to, from, nbytes, late);
}
void caller_wait(void *stream) { (void)static_cast<Stream *>(stream)->wait(); }
void caller_hold(void *stream, const int32_t *until) {
  static_cast<Stream *>(stream)->give([until] {
    while (__atomic_load_n(until, __ATOMIC_ACQUIRE) == 0) be_late(50);
  });
}
void caller_capture_begin(void *stream) { Graph::begin(*static_cast<Stream *>(stream)); }
void *caller_capture_end(void *stream) { return Graph::end(*static_cast<Stream *>(stream)).release(); }
int64_t caller_graph_nodes(const void *graph) { return static_cast<const Graph *>(graph)->nodes(); }
void caller_replay(void *graph, void *stream) { static_cast<Graph *>(graph)->run(*static_cast<Stream *>(stream)); }
void caller_graph_destroy(void *graph) { delete static_cast<Graph *>(graph); }

extern "C" const zero_cuda_table *zero_cuda_module() {
  static const zero_cuda_table table = {
      .struct_size = sizeof(zero_cuda_table),
      .build = ZERO_CUDA_BUILD,
      .error_text = error_text,
      .device_count = device_count,
      .device_name = device_name,
      .memory_device = memory_device,
      .stream_device = stream_device,
      .pinned_alloc = pinned_alloc,
      .pinned_free = pinned_free,
      .stream_create = stream_create,
      .stream_destroy = stream_destroy,
      .stream_wait = stream_wait,
      .stream_captures = stream_captures,
      .copy = copy,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_record = event_record,
      .event_wait = event_wait,
      .event_ended = event_ended,
      .stream_follow = stream_follow,
      .device_alloc = device_alloc,
      .device_free = device_free,
      .clear = clear,
      .reach = reach,
      .enter = enter,
      .leave = leave,
      .load = load,
      .kernels = emulated::kernels(),
  };
  return &table;
}
