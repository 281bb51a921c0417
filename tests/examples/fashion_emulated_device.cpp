/// @file examples/fashion/device.h over the emulation of CUDA: kernels run on the host when it is their stream's turn, on bytes that nobody
/// reaches through the device's addresses.
#include "examples/fashion/device.h"

#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_device.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kDevices = 2;  // as the emulation begins with
thread_local int64_t current_device = 0;

/// A kernel with addresses of the host in place of the device's. Nothing else in a kernel looks like one.
std::vector<char> seen(std::vector<char> kernel) {
  for (size_t at = 0; at + sizeof(void *) <= kernel.size(); at += sizeof(void *)) {
    const void *word = nullptr;
    std::memcpy(&word, kernel.data() + at, sizeof word);
    if (emulated::device_of_memory(word) < 0) continue;
    word = emulated::bytes_of_device(word, 1);
    std::memcpy(kernel.data() + at, &word, sizeof word);
  }
  return kernel;
}

}  // namespace

int device_open(int64_t device, void **out_stream) {
  if (device >= kDevices) {
    std::fprintf(stderr, "train_fashion: --device cuda:%lld: invalid device ordinal (emulated)\n", static_cast<long long>(device));
    return -1;
  }
  current_device = device;
  *out_stream = caller_stream_create(device);
  return 0;
}

void device_close(void *stream) {
  if (stream == nullptr) return;
  caller_wait(stream);
  caller_stream_destroy(stream);
}

void *device_allocate(size_t nbytes) { return caller_alloc(current_device, static_cast<int64_t>(nbytes)); }

void device_deallocate(void *memory) {
  if (memory != nullptr) caller_free(memory);
}

int device_clear(void *stream, void *to, size_t nbytes) {
  emulated::give(stream, [=] { std::memset(emulated::bytes_of_device(to, static_cast<int64_t>(nbytes)), 0, nbytes); });
  return 0;
}

int device_copy(void *stream, void *to, const void *from, size_t nbytes) {
  caller_copy(stream, to, from, static_cast<int64_t>(nbytes), 0);
  caller_wait(stream);
  return 0;
}

int device_give(void *stream, void (*run)(const void *kernel, int64_t count), int64_t count, const void *kernel, size_t nbytes) {
  const auto *bytes = static_cast<const char *>(kernel);
  emulated::give(stream, [=, given = std::vector<char>(bytes, bytes + nbytes)] { run(seen(given).data(), count); });
  return 0;
}
