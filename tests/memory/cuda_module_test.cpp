/// @file Tests the functions of libzero_cuda.so over a fake CUDA, with any call failing. Work runs
/// on the named device, in the capture mode that ignores captures of other threads, and no other
/// device is initialised. The calling thread keeps its own device or none, its mode and its last
/// error.
#include "memory/module/zero_cuda_module.h"

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

extern "C" {
const zero_cuda_table *zero_cuda_module(void);
extern const int zero_cuda_kernels;
const int zero_cuda_kernels = 0;
int32_t zero_cuda_load_kernels();
}

namespace {

constexpr int kDevices = 3;
constexpr int64_t kNamed = 2;  // the device that calls name
constexpr int kOwn = 1;        // the calling thread's device
constexpr int kNone = -1;

/// The state of the fake run time for the calling thread, and the calls that it received.
struct Runtime {
  std::vector<int> devices = {kOwn};  ///< the thread's stack; the last is current
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  cudaError_t last = cudaSuccess;
  int calls = 0;
  int failing = -1;  ///< number of the call that fails
  cudaError_t failure = cudaErrorUnknown;
  cudaError_t answer = cudaSuccess;  ///< result of the work itself
  bool captures = false;             ///< the queried stream is captured
  std::vector<std::string> work;     ///< calls on the named device, in the right mode
  std::vector<std::string> astray;   ///< all other calls

  int device() const { return devices.empty() ? kNone : devices.back(); }
};
Runtime runtime;
std::set<int> set_up;  ///< devices that have a context, which stays
std::byte contexts[256];

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) runtime.last = error;
  return error;
}

bool fails() { return runtime.calls++ == runtime.failing; }

/// Records a call that belongs on the named device.
cudaError_t work(const char *name, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  const bool right = runtime.device() == kNamed && runtime.mode == mode;
  (right ? runtime.work : runtime.astray).push_back(name);
  return note(fails() ? runtime.failure : runtime.answer);
}

/// The same in a stream, which must not be the default stream.
cudaError_t work_in(cudaStream_t stream, const char *name) {
  if (stream == nullptr) runtime.astray.push_back(name);
  return work(name);
}

// libcuda's functions.

int init(unsigned) { return 0; }

int device_get(int *out, int ordinal) {
  *out = ordinal;
  return fails() ? runtime.failure : 0;
}

int primary_context_retain(void **out, int device) {
  if (fails()) return runtime.failure;
  set_up.insert(device);
  *out = &contexts[device];
  return 0;
}

int context_get_current(void **out) {
  *out = runtime.devices.empty() ? nullptr : &contexts[runtime.device()];
  return fails() ? runtime.failure : 0;
}

int context_push(void *context) {
  if (fails()) return runtime.failure;
  runtime.devices.push_back(static_cast<int>(static_cast<std::byte *>(context) - contexts));
  return 0;
}

int context_pop(void **out) {
  if (fails()) return runtime.failure;
  *out = &contexts[runtime.device()];
  runtime.devices.pop_back();
  return 0;
}

}  // namespace

// The linker uses these instead of the loader's functions.
extern "C" {
void *__wrap_dlopen(const char *name, int) { return std::string(name) == "libcuda.so.1" ? &runtime : nullptr; }
void *__wrap_dlsym(void *, const char *name) {
  static const std::map<std::string, void *> functions = {
      {"cuInit", reinterpret_cast<void *>(init)},
      {"cuDeviceGet", reinterpret_cast<void *>(device_get)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(primary_context_retain)},
      {"cuCtxGetCurrent", reinterpret_cast<void *>(context_get_current)},
      {"cuCtxPushCurrent_v2", reinterpret_cast<void *>(context_push)},
      {"cuCtxPopCurrent_v2", reinterpret_cast<void *>(context_pop)},
  };
  const auto found = functions.find(name);
  return found != functions.end() ? found->second : nullptr;
}
}

extern "C" {
cudaError_t cudaGetLastError() { return std::exchange(runtime.last, cudaSuccess); }
const char *cudaGetErrorString(cudaError_t) { return "made up"; }
const char *cudaGetErrorName(cudaError_t) { return "cudaErrorMadeUp"; }
cudaError_t cudaGetDeviceCount(int *out) {
  *out = kDevices;
  return note(fails() ? runtime.failure : cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  *out = {};
  std::snprintf(out->name, sizeof out->name, "made up %d", device);
  return note(fails() ? runtime.failure : cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  // The mode applies to memory of the current device, so that must be the named device.
  if (runtime.device() != kNamed) runtime.astray.push_back("mode");
  if (fails()) return note(runtime.failure);
  std::swap(*mode, runtime.mode);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *address) {
  *out = {};
  out->type = address != nullptr ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  out->device = 0;
  return work("find", cudaStreamCaptureModeRelaxed);  // also if this thread captures
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int *out) {
  *out = 1;
  if (std::exchange(runtime.captures, false)) return note(cudaErrorStreamCaptureUnsupported);
  return work("stream device");
}
cudaError_t cudaHostAlloc(void **, size_t, unsigned) { return work("pin"); }
cudaError_t cudaFreeHost(void *) { return work("unpin"); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  static std::byte stream;
  const cudaError_t error = work(flags == cudaStreamNonBlocking ? "stream" : "?");
  if (error == cudaSuccess) *out = reinterpret_cast<cudaStream_t>(&stream);
  return error;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return work("end stream"); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return work_in(stream, "wait"); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *out) {
  *out = runtime.captures ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return work("captures");
}
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t stream) { return work_in(stream, "copy"); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned flags) { return work(flags == cudaEventDisableTiming ? "event" : "?"); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return work("end event"); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return work("record"); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return work("wait for event"); }
cudaError_t cudaEventQuery(cudaEvent_t) { return work("look at event"); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return work("follow"); }
cudaError_t cudaMalloc(void **out, size_t) {
  static std::byte memory;
  const cudaError_t error = work("alloc");
  if (error == cudaSuccess) *out = &memory;
  return error;
}
cudaError_t cudaFree(void *) { return work("free"); }
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t stream) { return work_in(stream, "clear"); }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return work("reach"); }
int32_t zero_cuda_load_kernels() { return work("load"); }
}

namespace {

struct Call {
  std::vector<std::string> work;  ///< expected calls of the run time
  std::function<int32_t(const zero_cuda_table &)> make;
};

std::vector<Call> calls() {
  static void *out = nullptr;
  static int64_t found = 0;
  static int32_t flag = 0;
  void *const some = &found;
  return {
      {{"find"}, [=](const zero_cuda_table &cuda) { return cuda.memory_device(kNamed, some, &found); }},
      {{"captures", "stream device"}, [=](const zero_cuda_table &cuda) { return cuda.stream_device(kNamed, some, &found); }},
      {{"pin"}, [=](const zero_cuda_table &cuda) { return cuda.pinned_alloc(kNamed, 64, &out); }},
      {{"unpin"}, [=](const zero_cuda_table &cuda) { return cuda.pinned_free(kNamed, some); }},
      {{"stream"}, [=](const zero_cuda_table &cuda) { return cuda.stream_create(kNamed, &out); }},
      {{"end stream"}, [=](const zero_cuda_table &cuda) { return cuda.stream_destroy(kNamed, some); }},
      {{"wait"}, [=](const zero_cuda_table &cuda) { return cuda.stream_wait(kNamed, some); }},
      {{"captures"}, [=](const zero_cuda_table &cuda) { return cuda.stream_captures(kNamed, some, &flag); }},
      {{"copy"}, [=](const zero_cuda_table &cuda) { return cuda.copy(kNamed, some, some, 64, some); }},
      {{"event"}, [=](const zero_cuda_table &cuda) { return cuda.event_create(kNamed, &out); }},
      {{"end event"}, [=](const zero_cuda_table &cuda) { return cuda.event_destroy(kNamed, some); }},
      {{"record"}, [=](const zero_cuda_table &cuda) { return cuda.event_record(kNamed, some, some); }},
      {{"wait for event"}, [=](const zero_cuda_table &cuda) { return cuda.event_wait(kNamed, some); }},
      {{"look at event"}, [=](const zero_cuda_table &cuda) { return cuda.event_ended(kNamed, some, &flag); }},
      {{"follow"}, [=](const zero_cuda_table &cuda) { return cuda.stream_follow(kNamed, some, some); }},
      {{"stream", "alloc", "clear", "wait", "end stream"},
       [=](const zero_cuda_table &cuda) { return cuda.device_alloc(kNamed, 64, &out); }},
      {{"free"}, [=](const zero_cuda_table &cuda) { return cuda.device_free(kNamed, some); }},
      {{"clear"}, [=](const zero_cuda_table &cuda) { return cuda.clear(kNamed, some, 64, some); }},
      {{"reach"}, [=](const zero_cuda_table &cuda) { return cuda.reach(kNamed, 0); }},
      {{"load"}, [=](const zero_cuda_table &cuda) { return cuda.load(kNamed); }},
  };
}

void expect_own_thread() {
  EXPECT_EQ(runtime.devices, std::vector<int>{kOwn});
  EXPECT_EQ(runtime.mode, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(runtime.last, cudaSuccess);
  EXPECT_EQ(runtime.astray, std::vector<std::string>());
}

TEST(CudaModule, CallsWorkOnTheirDeviceAndLeaveTheThreadAsItWas) {
  for (const Call &call : calls()) {
    SCOPED_TRACE(call.work.front());
    runtime = {};
    EXPECT_EQ(call.make(*zero_cuda_module()), 0);
    EXPECT_EQ(runtime.work, call.work);
    expect_own_thread();
  }
}

/// Like the library's own threads, on all devices of a host but one.
TEST(CudaModule, AThreadWithoutADeviceHasNoneAfterwardsAndNoOtherDeviceIsSetUp) {
  std::set<int> expected = set_up;
  expected.insert(static_cast<int>(kNamed));
  for (const Call &call : calls()) {
    SCOPED_TRACE(call.work.front());
    runtime = {};
    runtime.devices = {};
    EXPECT_EQ(call.make(*zero_cuda_module()), 0);
    EXPECT_EQ(runtime.work, call.work);
    EXPECT_EQ(runtime.devices, std::vector<int>());
  }
  EXPECT_EQ(set_up, expected);
}

TEST(CudaModule, AThreadThatIsOnTheDeviceStaysThere) {
  runtime = {};
  runtime.devices = {kOwn, static_cast<int>(kNamed)};
  EXPECT_EQ(zero_cuda_module()->device_free(kNamed, &runtime), 0);
  EXPECT_EQ(runtime.devices, (std::vector<int>{kOwn, static_cast<int>(kNamed)}));
}

TEST(CudaModule, ADeviceThatCannotBeSetUpIsAnErrorUntilItCan) {
  static int64_t device = kDevices;
  ++device;  // no device is initialised twice
  for (const int failing : {0, 1, -1}) {
    runtime = {};
    runtime.failing = failing;
    EXPECT_EQ(zero_cuda_module()->event_wait(device, &runtime), failing < 0 ? cudaSuccess : cudaErrorUnknown);
    EXPECT_EQ(runtime.devices, std::vector<int>{kOwn});
    EXPECT_EQ(runtime.last, cudaSuccess);
    EXPECT_EQ(set_up.count(static_cast<int>(device)), failing < 0 ? 1u : 0u);
  }
}

TEST(CudaModule, DevicesThatThereAreNotAreErrors) {
  runtime = {};
  for (const int64_t device : {int64_t{-1}, int64_t{256}, INT64_MAX}) {
    EXPECT_EQ(zero_cuda_module()->device_free(device, &runtime), cudaErrorInvalidDevice);
    expect_own_thread();
  }
}

TEST(CudaModule, WhateverFailsIsToldAndTheThreadIsAsItWas) {
  for (const Call &call : calls()) {
    SCOPED_TRACE(call.work.front());
    runtime = {};
    call.make(*zero_cuda_module());
    const int all = runtime.calls;
    for (int failing = 0; failing < all; ++failing) {
      runtime = {};
      runtime.failing = failing;
      EXPECT_EQ(call.make(*zero_cuda_module()), cudaErrorUnknown) << "call " << failing;
      EXPECT_EQ(runtime.last, cudaSuccess);
      // The last two calls restore the thread's mode and device. If they fail, nothing can restore
      // them.
      if (failing < all - 2) expect_own_thread();
      if (failing == all - 2) {
        EXPECT_EQ(runtime.devices, std::vector<int>{kOwn});
      }
    }
  }
}

TEST(CudaModule, MemoryThatCannotBeClearedIsGivenBack) {
  runtime = {};
  runtime.failing = 5;  // after the device (2), the mode, the stream and the allocation
  void *out = nullptr;
  EXPECT_EQ(zero_cuda_module()->device_alloc(kNamed, 64, &out), cudaErrorUnknown);
  EXPECT_EQ(runtime.work, (std::vector<std::string>{"stream", "alloc", "clear", "end stream", "free"}));
  EXPECT_EQ(out, nullptr);
}

TEST(CudaModule, AnswersThatAreNoErrors) {
  const zero_cuda_table &cuda = *zero_cuda_module();
  int32_t flag = -1;
  runtime = {};
  EXPECT_EQ(cuda.event_ended(kNamed, &flag, &flag), 0);
  EXPECT_EQ(flag, 1);
  runtime.answer = cudaErrorNotReady;
  EXPECT_EQ(cuda.event_ended(kNamed, &flag, &flag), 0);
  EXPECT_EQ(flag, 0);
  expect_own_thread();
  runtime.answer = cudaErrorPeerAccessAlreadyEnabled;
  EXPECT_EQ(cuda.reach(kNamed, 0), 0);
  expect_own_thread();
  runtime = {};
  runtime.failing = 0;
  EXPECT_EQ(cuda.reach(kNamed, kNamed), 0) << "a device reaches its own memory";
  EXPECT_EQ(runtime.calls, 0);
}

TEST(CudaModule, TellsWhoseMemoryAndStreamsTheseAre) {
  const zero_cuda_table &cuda = *zero_cuda_module();
  int64_t device = -2;
  runtime = {};
  EXPECT_EQ(cuda.memory_device(kNamed, &device, &device), 0);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuda.memory_device(kNamed, nullptr, &device), 0);
  EXPECT_EQ(device, -1) << "of the host";
  EXPECT_EQ(cuda.stream_device(kNamed, &device, &device), 0);
  EXPECT_EQ(device, 1);
  for (const bool captures : {false, true}) {
    int32_t captured = -1;
    runtime.captures = captures;
    EXPECT_EQ(cuda.stream_captures(kNamed, &device, &captured), 0);
    EXPECT_EQ(captured, captures ? 1 : 0);
  }
}

TEST(CudaModule, CapturedStreamsAreBelievedAndTheirCapturesGoOn) {
  int64_t device = -2;
  runtime = {};
  runtime.captures = true;
  EXPECT_EQ(zero_cuda_module()->stream_device(kNamed, &device, &device), 0);
  EXPECT_EQ(device, kNamed);
  EXPECT_TRUE(runtime.captures);
  expect_own_thread();
}

TEST(CudaModule, DriversThatCannotTellAStreamsDeviceAreBelieved) {
  int64_t device = -2;
  runtime = {};
  runtime.answer = cudaErrorCallRequiresNewerDriver;
  EXPECT_EQ(zero_cuda_module()->stream_device(kNamed, &device, &device), 0);
  EXPECT_EQ(device, kNamed);
  expect_own_thread();
}

TEST(CudaModule, OnlyEnterLeavesTheThreadOnTheDevice) {
  const zero_cuda_table &cuda = *zero_cuda_module();
  runtime = {};
  zero_cuda_visit visit;
  EXPECT_EQ(cuda.enter(kNamed, &visit), 0);
  EXPECT_EQ(runtime.device(), kNamed);
  EXPECT_EQ(runtime.mode, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cuda.leave(&visit), 0);
  expect_own_thread();
  for (const int failing : {0, 1, 2}) {
    runtime = {};
    runtime.failing = failing;
    EXPECT_EQ(cuda.enter(kNamed, &visit), cudaErrorUnknown) << "call " << failing;
    expect_own_thread();
  }
}

TEST(CudaModule, DevicesAndErrorsHaveNames) {
  const zero_cuda_table &cuda = *zero_cuda_module();
  runtime = {};
  int64_t count = 0;
  char text[64] = "";
  EXPECT_EQ(cuda.device_count(&count), 0);
  EXPECT_EQ(count, kDevices);
  EXPECT_EQ(cuda.device_name(kNamed, text, sizeof text), 0);
  EXPECT_STREQ(text, "made up 2");
  cuda.error_text(cudaErrorUnknown, text, sizeof text);
  EXPECT_STREQ(text, "made up (cudaErrorMadeUp)");
  for (const int failing : {0, 1}) {
    runtime = {};
    runtime.failing = failing;
    EXPECT_EQ(cuda.device_count(&count), failing == 0 ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(cuda.device_name(0, text, sizeof text), failing == 1 ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(runtime.last, cudaSuccess);
  }
}

}  // namespace
