/// @file Side streams on CUDA devices.
#include "memory/cuda_side_stream.h"

#include "core/signals_blocked.h"

#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace zero {
namespace {

/// Side streams of one device that may never end, and the deferred frees that wait for them.
struct Abandoned {
  int64_t lanes = 0;
  std::vector<std::function<void()>> kept;
};

struct AbandonedDevices {
  std::mutex mutex;
  std::map<int64_t, Abandoned> devices;
};

/// Never destroyed: threads that end communicators may outlive all other objects.
AbandonedDevices &abandoned() {
  static auto *all = new AbandonedDevices;
  return *all;
}

}  // namespace

bool is_abandoned(int64_t device) {
  const std::lock_guard lock(abandoned().mutex);
  const auto found = abandoned().devices.find(device);
  return found != abandoned().devices.end() && found->second.lanes > 0;
}

void keep_until_reclaimed(int64_t device, std::function<void()> free) {
  {
    const std::lock_guard lock(abandoned().mutex);
    Abandoned &kept_back = abandoned().devices[device];
    if (kept_back.lanes > 0) return kept_back.kept.push_back(std::move(free));
  }
  free();
}

CudaSideStream::~CudaSideStream() {
  give_back(device_, [&cuda = cuda_, device = device_, stream = stream_, turn = turn_, marked = marked_] {
    for (void *event : {turn, marked}) {
      if (event != nullptr) (void)cuda.event_destroy(device, event);
    }
    if (stream != nullptr) (void)cuda.stream_destroy(device, stream);
  });
}

Status CudaSideStream::open() {
  ZERO_TRY(check(cuda_.stream_create(device_, &stream_), "making a stream"));
  ZERO_TRY(check(cuda_.event_create(device_, &turn_), "making an event"));
  return check(cuda_.event_create(device_, &marked_), "making an event");
}

Status CudaSideStream::check(int32_t error, const char *what) const {
  if (error == 0) return {};
  char text[256] = "";
  cuda_.error_text(error, text, sizeof text);
  return Status::error(ZERO_E_DEVICE_FAILED, "%s of device %lld failed: %s", what, lld(device_), text);
}

Status CudaSideStream::find(const void *memory, bool *out_here) const {
  int64_t device = -1;
  ZERO_TRY(check(cuda_.memory_device(device_, memory, &device), "looking up memory"));
  ZERO_CHECK(device < 0 || device == device_, ZERO_E_INVALID_ARGUMENT,
             "memory of device %lld was given, but must be of the host or of device %lld (ZERO_KEY_DEVICE)", lld(device), lld(device_));
  *out_here = device >= 0;
  return {};
}

Status CudaSideStream::alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const { return allocate_on_device(cuda_, device_, nbytes, out); }

Status CudaSideStream::within(const std::function<void()> &use) const {
  zero_cuda_visit visit;
  ZERO_TRY(check(cuda_.enter(device_, &visit), "entering"));
  use();
  return check(cuda_.leave(&visit), "leaving");
}

Status CudaSideStream::wait_for_leader() {
  ZERO_TRY(check(cuda_.event_record(device_, turn_, leader_), "recording an event"));
  return check(cuda_.stream_follow(device_, stream_, turn_), "waiting for an event");
}

Status CudaSideStream::mark() { return check(cuda_.event_record(device_, marked_, stream_), "recording an event"); }

Status CudaSideStream::ended(bool *out) const {
  int32_t ended = 0;
  ZERO_TRY(check(cuda_.event_ended(device_, marked_, &ended), "work"));
  *out = ended != 0;
  return {};
}

void CudaSideStream::abandon() const {
  const std::lock_guard lock(abandoned().mutex);
  ++abandoned().devices[device_].lanes;
}

/// Freeing may wait for other work of the device, so a thread of its own does it.
void CudaSideStream::reclaim() const {
  std::vector<std::function<void()>> kept;
  {
    const std::lock_guard lock(abandoned().mutex);
    Abandoned &device = abandoned().devices[device_];
    if (--device.lanes == 0) kept.swap(device.kept);
  }
  if (kept.empty()) return;
  const auto free_all = [](const std::vector<std::function<void()>> &all) {
    for (const std::function<void()> &free : all) free();
  };
  try {
    const SignalsBlocked blocked;
    std::thread(free_all, kept).detach();
  } catch (const std::exception &) {
    free_all(kept);
  }
}

Status allocate_on_device(const zero_cuda_table &cuda, int64_t device, int64_t nbytes, std::shared_ptr<Mapping> *out) {
  void *data = nullptr;
  const int32_t error = cuda.device_alloc(device, nbytes, &data);
  if (error != 0) {
    char text[256] = "";
    cuda.error_text(error, text, sizeof text);
    return Status::error(ZERO_E_OUT_OF_MEMORY, "device %lld has no %lld bytes: %s", lld(device), lld(nbytes), text);
  }
  // The module stays loaded, so its table outlives the memory.
  const auto release = [&cuda, device, data] { give_back(device, [&cuda, device, data] { (void)cuda.device_free(device, data); }); };
  return Mapping::adopt(static_cast<std::byte *>(data), nbytes, release, out);
}

}  // namespace zero
