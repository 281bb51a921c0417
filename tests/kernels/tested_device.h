/// @file The device whose kernels are tested: two sets of functions, one for the first CUDA device, one for the host that runs the same
/// sources. Both programs have the functions of caller_device.h for its memory too.
#pragma once

#include "kernels/cuda/table.h"
#include "random.h"
#include "tests/memory/caller_device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace zero::kernels::test {

/// nullptr: the module could not be loaded.
const cuda::Table *tested_kernels();

/// Memory of the device that is given out piece by piece and taken back as a whole, and the bytes of the host that it stands for.
class Slab {
 public:
  explicit Slab(int64_t nbytes) : nbytes_(nbytes), data_(static_cast<std::byte *>(caller_alloc(0, nbytes))) {
    stream_ = caller_stream_create(0);
  }
  Slab(const Slab &) = delete;
  ~Slab() {
    caller_wait(stream_);
    caller_stream_destroy(stream_);
    caller_free(data_);
  }

  void *stream() const { return stream_; }

  /// A place on the device for bytes of the host, which must stay where they are; `offset` bytes behind a multiple of 256.
  void *place(void *host, int64_t nbytes, int64_t offset = 0) {
    if (nbytes == 0) return data_;
    std::byte *at = data_ + used_ + offset;
    used_ += (offset + nbytes + 255) / 256 * 256;
    if (used_ > nbytes_) std::abort();
    copies_.push_back({host, at, nbytes});
    return at;
  }
  template <class Element>
  Element *place(std::vector<Element> &host, int64_t offset = 0) {
    return static_cast<Element *>(place(host.data(), std::ssize(host) * static_cast<int64_t>(sizeof(Element)), offset));
  }

  void upload() {
    for (const Copy &copy : copies_) caller_copy(stream_, copy.device, copy.host, copy.nbytes, 0);
  }
  /// All to the host, and the places back.
  void download() {
    for (const Copy &copy : copies_) caller_copy(stream_, copy.host, copy.device, copy.nbytes, 0);
    caller_wait(stream_);
    copies_.clear();
    used_ = 0;
  }

 private:
  struct Copy {
    void *host;
    void *device;
    int64_t nbytes;
  };
  int64_t nbytes_;
  std::byte *data_;
  void *stream_ = nullptr;
  int64_t used_ = 0;
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
