/// @file The device whose kernels are tested: two sets of functions, one for the first CUDA device,
/// one for the host that runs the same sources. Both programs have the functions of caller_device.h
/// for its memory too.
#pragma once

#include "core/dtype.h"
#include "kernels/cuda/table.h"
#include "random.h"
#include "tests/memory/caller_device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero::kernels::test {

/// nullptr: the module could not be loaded.
const cuda::Table *tested_kernels();

/// Bytes of elements that miss the alignment of whole quads, sometimes.
inline int64_t random_offset(Random &random, DType dtype) { return (random.below(3) == 0 ? 1 + random.below(3) : 0) * dtype_nbytes(dtype); }

/// Bytes of the host and what stands for them on the device. Each has an allocation of its own,
/// whose bounds sanitizers watch.
class DeviceMemory {
 public:
  DeviceMemory() : stream_(caller_stream_create(0)) {}
  DeviceMemory(const DeviceMemory &) = delete;
  ~DeviceMemory() {
    free_all();
    caller_stream_destroy(stream_);
  }

  void *stream() const { return stream_; }

  /// A place on the device for bytes of the host, which must stay where they are; `offset` bytes
  /// behind a multiple of 256.
  void *place(void *host, int64_t nbytes, int64_t offset = 0) {
    if (nbytes == 0) return nullptr;
    auto *base = static_cast<std::byte *>(caller_alloc(0, offset + nbytes));
    copies_.push_back({host, base, offset, nbytes});
    return base + offset;
  }
  template <class Element>
  Element *place(std::vector<Element> &host, int64_t offset = 0) {
    return static_cast<Element *>(place(host.data(), std::ssize(host) * static_cast<int64_t>(sizeof(Element)), offset));
  }

  void upload() {
    for (const Copy &copy : copies_) caller_copy(stream_, copy.base + copy.offset, copy.host, copy.nbytes, 0);
  }
  /// All to the host; what was placed is gone.
  void download() {
    for (const Copy &copy : copies_) caller_copy(stream_, copy.host, copy.base + copy.offset, copy.nbytes, 0);
    free_all();
  }

 private:
  struct Copy {
    void *host;
    std::byte *base;
    int64_t offset;
    int64_t nbytes;
  };

  void free_all() {
    caller_wait(stream_);
    for (const Copy &copy : copies_) caller_free(copy.base);
    copies_.clear();
  }

  void *stream_;
  std::vector<Copy> copies_;
};

class DeviceKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (*caller_missing() != '\0') GTEST_SKIP() << caller_missing();
    kernels_ = tested_kernels();
    ASSERT_NE(kernels_, nullptr);
    ASSERT_EQ(kernels_->struct_size, sizeof(cuda::Table));
  }
  const cuda::Table *kernels_ = nullptr;
};

}  // namespace zero::kernels::test
