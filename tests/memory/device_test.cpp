/// @file Device: bytes that pass between a device and the host, what comes before and after what,
/// and every way in which CUDA can fail.
#include "memory/device.h"

#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace zero::test::device_test {
namespace {

constexpr int64_t kLateUs = 200;

std::vector<std::byte> pattern(int64_t nbytes, int64_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(nbytes));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 4096 + static_cast<size_t>(seed)) & 0xff);
  return bytes;
}

/// Memory of a device and a stream that fills it late.
struct Remote {
  explicit Remote(int64_t nbytes, int64_t device = 0)
      : size(nbytes), data(caller_alloc(device, std::max<int64_t>(nbytes, 1))), stream(caller_stream_create(device)) {}
  Remote(const Remote &) = delete;
  ~Remote() {
    caller_stream_destroy(stream);
    caller_free(data);
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(static_cast<size_t>(size));
    caller_copy(stream, bytes.data(), data, size, 0);
    caller_wait(stream);
    return bytes;
  }

  int64_t size;
  void *data;
  void *stream;
};

std::unique_ptr<Device> open_device(int64_t index = 0) {
  std::unique_ptr<Device> device;
  const Status status = Device::open(caller_module(), index, &device);
  EXPECT_TRUE(status.ok()) << status.text();
  return device;
}

Status fetch_all(Device &device, const Remote &remote, std::vector<std::byte> *out) {
  out->clear();
  return device.fetch(remote.data, remote.size, remote.stream, [&](const std::byte *data, int64_t begin, int64_t nbytes) {
    EXPECT_EQ(begin, std::ssize(*out));
    out->insert(out->end(), data, data + nbytes);
  });
}

Status store_all(Device &device, const Remote &remote, const std::vector<std::byte> &bytes) {
  return device.store(remote.data, remote.size, remote.stream, [&](std::byte *data, int64_t begin, int64_t nbytes) {
    std::memcpy(data, bytes.data() + begin, static_cast<size_t>(nbytes));
  });
}

const std::vector<int64_t> kSizes = {0, 1, 4, 1001, 2 << 20, (2 << 20) + 1, (7 << 20) + 13};

// The first module that loads stays, so what must be refused comes first.
TEST(Device, ModulesThatAreMissingAreNamedWithTheReason) {
  std::unique_ptr<Device> device;
  const Status missing = Device::open("/no/such/module.so", 0, &device);
  EXPECT_EQ(missing.code(), ZERO_E_MODULE);
  EXPECT_NE(std::strstr(missing.text(), "/no/such/module.so: cannot open"), nullptr) << missing.text();
  EXPECT_NE(std::strstr(missing.text(), "ZERO_KEY_CUDA_MODULE"), nullptr) << missing.text();
  const Status other = Device::open("libm.so.6", 0, &device);
  EXPECT_EQ(other.code(), ZERO_E_MODULE);
  EXPECT_NE(std::strstr(other.text(), "it has no symbol zero_cuda_module"), nullptr) << other.text();
  EXPECT_EQ(device, nullptr);
}

TEST(Device, DevicesThatAreNotThereAreErrors) {
  std::unique_ptr<Device> device;
  const Status beyond = Device::open(caller_module(), 2, &device);
  EXPECT_EQ(beyond.code(), ZERO_E_DEVICE);
  EXPECT_NE(std::strstr(beyond.text(), "is 2, but must be in 0 .. 1"), nullptr) << beyond.text();
  emulated_devices(0);
  const Status none = Device::open(caller_module(), 0, &device);
  emulated_devices(2);
  EXPECT_EQ(none.code(), ZERO_E_DEVICE);
  EXPECT_NE(std::strstr(none.text(), "no CUDA-capable device"), nullptr) << none.text();
  EXPECT_EQ(device, nullptr);
}

TEST(Device, DevicesAreDescribed) {
  const auto device = open_device(1);  // the module is loaded then
  EXPECT_EQ(device->name(), "emulated device 1");
  EXPECT_NE(describe_devices().find("; device 0: emulated device 0; device 1: emulated device 1"), std::string::npos);
  emulated_devices(0);
  EXPECT_NE(describe_devices().find("; no device: no CUDA-capable device"), std::string::npos);
  emulated_devices(2);
}

TEST(Device, FetchSeesWhatTheStreamWasGivenBefore) {
  const auto device = open_device();
  ASSERT_TRUE(device->allocate().ok());
  for (const int64_t size : kSizes) {
    const Remote remote(size);
    const std::vector<std::byte> sent = pattern(size, size);
    const std::vector<std::byte> garbage(static_cast<size_t>(size), std::byte{0xee});
    std::vector<std::byte> got;
    caller_copy(remote.stream, remote.data, garbage.data(), size, kLateUs);
    caller_copy(remote.stream, remote.data, sent.data(), size, kLateUs);
    ASSERT_TRUE(fetch_all(*device, remote, &got).ok());
    // The memory is the caller's again, and nobody sees what it does with it now.
    caller_copy(remote.stream, remote.data, garbage.data(), size, kLateUs);
    EXPECT_EQ(got, sent) << size;
    caller_wait(remote.stream);
  }
}

TEST(Device, StoreComesBeforeWhatTheStreamIsGivenAfterwards) {
  const auto device = open_device(1);
  ASSERT_TRUE(device->allocate().ok());
  for (const int64_t size : kSizes) {
    const Remote remote(size, 1);
    const std::vector<std::byte> before(static_cast<size_t>(size), std::byte{0xee});
    caller_copy(remote.stream, remote.data, before.data(), size, kLateUs);
    std::vector<std::byte> bytes = pattern(size, 1);
    ASSERT_TRUE(store_all(*device, remote, bytes).ok());
    const std::vector<std::byte> sent = bytes;
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    EXPECT_EQ(remote.read(), sent) << size;
  }
}

TEST(Device, CopiesBothWaysShareBuffers) {
  const auto device = open_device();
  ASSERT_TRUE(device->allocate().ok());
  const int64_t size = (5 << 20) + 3;
  const Remote from(size);
  const Remote to(size);
  std::vector<std::byte> got;
  for (int64_t round = 0; round < 5; ++round) {
    const std::vector<std::byte> sent = pattern(size, round);
    const std::vector<std::byte> back = pattern(size, 100 + round);
    caller_copy(from.stream, from.data, sent.data(), size, kLateUs);
    ASSERT_TRUE(store_all(*device, to, back).ok());
    ASSERT_TRUE(fetch_all(*device, from, &got).ok());
    EXPECT_EQ(got, sent);
    EXPECT_EQ(to.read(), back);
  }
}

TEST(Device, TheDefaultStreamIsNull) {
  const auto device = open_device();
  ASSERT_TRUE(device->allocate().ok());
  const Remote remote(1000);
  const std::vector<std::byte> bytes = pattern(1000, 3);
  ASSERT_TRUE(device
                  ->store(remote.data, 1000, nullptr,
                          [&](std::byte *data, int64_t, int64_t nbytes) { std::memcpy(data, bytes.data(), static_cast<size_t>(nbytes)); })
                  .ok());
  std::vector<std::byte> got;
  ASSERT_TRUE(
      device->fetch(remote.data, 1000, nullptr, [&](const std::byte *data, int64_t, int64_t nbytes) { got.assign(data, data + nbytes); })
          .ok());
  EXPECT_EQ(got, bytes);
  EXPECT_TRUE(device->check_stream(nullptr).ok());
}

TEST(Device, MemoryAndStreamsOfOtherDevicesAreErrors) {
  const auto device = open_device();
  const Remote here(10);
  const Remote there(10, 1);
  const int local = 0;
  bool on_device = false;
  EXPECT_TRUE(device->find(static_cast<const char *>(here.data) + 9, "grad", &on_device).ok());
  EXPECT_TRUE(on_device);
  EXPECT_TRUE(device->find(&local, "grad", &on_device).ok());
  EXPECT_FALSE(on_device);
  const Status memory = device->find(there.data, "grad", &on_device);
  EXPECT_EQ(memory.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(memory.text(), "grad is memory of device 1, but must be of the host or of device 0"), nullptr) << memory.text();
  EXPECT_TRUE(device->check_stream(here.stream).ok());
  const Status stream = device->check_stream(there.stream);
  EXPECT_EQ(stream.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(stream.text(), "stream is one of device 1"), nullptr) << stream.text();
}

/// Everything a device does once; the first error.
Status use_device(const Remote &remote) {
  std::unique_ptr<Device> device;
  std::vector<std::byte> got;
  bool on_device = false;
  ZERO_TRY(Device::open(caller_module(), 0, &device));
  ZERO_TRY(device->allocate());
  ZERO_TRY(device->find(remote.data, "grad", &on_device));
  ZERO_TRY(device->check_stream(remote.stream));
  ZERO_TRY(fetch_all(*device, remote, &got));
  ZERO_TRY(store_all(*device, remote, got));
  std::shared_ptr<Mapping> memory;
  ZERO_TRY(device->reach(0));
  ZERO_TRY(device->alloc(4096, &memory));
  ZERO_TRY(device->wait_for(remote.stream));
  ZERO_TRY(device->copy(memory->data(), remote.data, 4096));
  ZERO_TRY(device->clear(memory->data(), 4096));
  ZERO_TRY(device->signal(remote.stream));
  return device->wait();
}

TEST(Device, EveryFailureIsAnErrorThatLeavesNothing) {
  const Remote remote((4 << 20) + 1);
  const int64_t before = emulated_objects();
  int64_t failures = 0;
  for (;; ++failures) {
    emulated_fail_from(failures);
    const Status status = use_device(remote);
    emulated_fail_from(-1);
    EXPECT_EQ(emulated_objects(), before) << "call " << failures;
    if (status.ok()) break;
    const bool expected = status.code() == ZERO_E_DEVICE || status.code() == ZERO_E_DEVICE_FAILED ||
                          status.code() == ZERO_E_INVALID_ARGUMENT || status.code() == ZERO_E_OUT_OF_MEMORY;
    EXPECT_TRUE(expected) << status_name(status.code());
    EXPECT_NE(std::strstr(status.text(), "launch failure"), nullptr) << status.text();
    ASSERT_LT(failures, 1000);
  }
  EXPECT_GT(failures, 20);
}

TEST(Device, MemoryComesZeroedAndOutlivesWhatMadeIt) {
  const int64_t before = emulated_objects();
  std::shared_ptr<Mapping> memory;
  {
    const auto device = open_device();
    ASSERT_TRUE(device->allocate().ok());
    std::vector<std::byte> got(1000, std::byte{1});
    ASSERT_TRUE(device->alloc(1000, &memory).ok());
    bool there = false;
    ASSERT_TRUE(device->find_any(memory->data() + 999, &there).ok());
    EXPECT_TRUE(there);
    ASSERT_TRUE(device->find_any(&before, &there).ok());
    EXPECT_FALSE(there);
    ASSERT_TRUE(device->copy(got.data(), memory->data(), 1000).ok());
    ASSERT_TRUE(device->wait().ok());
    EXPECT_EQ(got, std::vector<std::byte>(1000));
  }
  EXPECT_EQ(emulated_objects(), before + 1);
  memory.reset();
  EXPECT_EQ(emulated_objects(), before);
}

TEST(Device, AFullDeviceIsOutOfMemory) {
  const auto device = open_device();
  std::shared_ptr<Mapping> memory;
  emulated_largest(999);
  const Status status = device->alloc(1000, &memory);
  emulated_largest(-1);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_NE(std::strstr(status.text(), "device 0 has no 1000 bytes: out of memory"), nullptr) << status.text();
  EXPECT_EQ(memory, nullptr);
}

TEST(Device, WorkComesAfterTheStreamThatItFollowsAndBeforeTheOneThatItLeads) {
  const auto device = open_device();
  ASSERT_TRUE(device->allocate().ok());
  const Remote before(1000);
  const Remote after(1000);
  const std::vector<std::byte> sent = pattern(1000, 5);
  caller_copy(before.stream, before.data, sent.data(), 1000, 20 * kLateUs);
  ASSERT_TRUE(device->wait_for(before.stream).ok());
  ASSERT_TRUE(device->copy(after.data, before.data, 1000).ok());
  ASSERT_TRUE(device->clear(before.data, 500).ok());
  ASSERT_TRUE(device->signal(after.stream).ok());
  EXPECT_EQ(after.read(), sent);
  ASSERT_TRUE(device->wait().ok());
  const std::vector<std::byte> cleared = before.read();
  EXPECT_EQ(std::count(cleared.begin(), cleared.begin() + 500, std::byte{0}), 500);
  EXPECT_TRUE(std::equal(cleared.begin() + 500, cleared.end(), sent.begin() + 500));
}

TEST(Device, DevicesThatAreApartAreAnError) {
  const auto device = open_device();
  EXPECT_TRUE(device->reach(1).ok());
  emulated_apart(1);
  const Status apart = device->reach(1);
  EXPECT_TRUE(device->reach(0).ok());
  emulated_apart(0);
  EXPECT_EQ(apart.code(), ZERO_E_DEVICE);
  EXPECT_NE(std::strstr(apart.text(), "device 0 does not reach the memory of device 1"), nullptr) << apart.text();
}

TEST(Device, AnExceptionEndsCopiesFirst) {
  const auto device = open_device();
  ASSERT_TRUE(device->allocate().ok());
  const int64_t size = 5 << 20;
  const Remote next(size);
  void *memory = caller_alloc(0, size);
  emulated_late(20'000);
  EXPECT_THROW((void)device->fetch(memory, size, nullptr, [](const std::byte *, int64_t, int64_t) { throw 1; }), int);
  emulated_late(0);
  caller_free(memory);  // a copy that reads what is gone ends the process
  const std::vector<std::byte> sent = pattern(size, 9);
  std::vector<std::byte> got;
  caller_copy(next.stream, next.data, sent.data(), size, kLateUs);
  ASSERT_TRUE(fetch_all(*device, next, &got).ok());
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace zero::test::device_test
