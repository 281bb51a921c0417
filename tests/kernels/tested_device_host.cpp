/// @file The host as the device whose kernels are tested.
#include "tests/kernels/host_run_kernels.h"
#include "tests/kernels/tested_device.h"

#include <cstdlib>
#include <cstring>

namespace zero::kernels::test {

const cuda::Table *tested_kernels() { return host_run_kernels(); }

}  // namespace zero::kernels::test

const char *caller_missing() { return ""; }
void *caller_alloc(int64_t, int64_t nbytes) {
  void *data = nullptr;
  if (::posix_memalign(&data, 256, static_cast<size_t>(nbytes)) != 0) std::abort();
  return data;
}
void caller_free(void *data) { std::free(data); }
void *caller_stream_create(int64_t) { return nullptr; }
void caller_stream_destroy(void *) {}
void caller_copy(void *, void *to, const void *from, int64_t nbytes, int64_t) { std::memcpy(to, from, static_cast<size_t>(nbytes)); }
void caller_wait(void *) {}
