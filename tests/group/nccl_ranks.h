/// @file Groups whose ranks are threads with a device each, over an NCCL of threads, and memory of such a device for cases.
#pragma once

#include "engine/compute/device_reducer.h"
#include "group/connect/connect.h"
#include "memory/cuda_module.h"
#include "tests/group/collective_cases.h"
#include "tests/group/fake_nccl.h"
#include "tests/group/thread_ranks.h"
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_cuda.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zero::test {

inline constexpr int64_t kDevices = 2;

struct NcclOptions {
  int64_t deadline_ms = 60'000;
  int64_t rendezvous_ms = 20'000;
  int64_t staging_nbytes = 16384;
};

/// A name that no earlier meeting of this process had.
inline std::string nccl_meeting() {
  static std::atomic<int> number{0};
  return "nccl." + std::to_string(::getpid()) + "." + std::to_string(number++);
}

inline Config nccl_config(int64_t rank, NcclOptions options = {}) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_NCCL, 1).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_NCCL_MODULE, ZERO_NCCL_FILE).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DEVICE, rank % kDevices).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_CUDA_MODULE, caller_module()).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DEADLINE_MS, options.deadline_ms).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_RENDEZVOUS_MS, options.rendezvous_ms).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGING_BYTES, options.staging_nbytes).ok());
  return config;
}

inline Status connect_nccl(const std::string &name, int64_t rank, int64_t size, std::shared_ptr<Group> *out, NcclOptions options = {}) {
  const Config config = nccl_config(rank, options);
  const auto reducer = [rank](const Place &) { return std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1); };
  OperationQueue queue;
  return queue.run(connect_local_group(name, rank, size, GroupOptions(config), reducer, out));
}

/// Of groups that are gone, also those whose end took a while, nothing is left but so many objects of devices.
inline void expect_nothing_left(int64_t objects) {
  const auto left = [&] { return fake_nccl_objects() != 0 || emulated_objects() != objects; };
  for (int wait = 0; wait < 10'000 && left(); ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(fake_nccl_objects(), 0);
  EXPECT_EQ(emulated_objects(), objects);
}

/// Memory of a device; with `mixes` every second piece lies on the host.
class DeviceCases final : public CaseMemory {
 public:
  explicit DeviceCases(int64_t device, bool mixes = false) : device_(device), mixes_(mixes), stream_(caller_stream_create(device)) {}
  DeviceCases(const DeviceCases &) = delete;
  ~DeviceCases() override { caller_stream_destroy(stream_); }

  void *alloc(int64_t nbytes) override {
    const bool on_host = mixes_ && (device_ + turn_++) % 2 == 0;
    return on_host ? caller_pinned_alloc(nbytes) : caller_alloc(device_, nbytes);
  }
  void free(void *data, int64_t) override {
    if (lies_on_device(data)) return caller_free(data);
    caller_pinned_free(data);
  }
  void write(void *to, const void *from, int64_t nbytes) override { copy(to, from, nbytes); }
  void read(void *to, const void *from, int64_t nbytes) override { copy(to, from, nbytes); }

 private:
  static bool lies_on_device(const void *data) {
    const zero_cuda_table *cuda = nullptr;
    int64_t device = -1;
    EXPECT_TRUE(load_cuda_module(caller_module(), &cuda).ok());
    EXPECT_EQ(cuda->memory_device(0, data, &device), 0);
    return device >= 0;
  }
  void copy(void *to, const void *from, int64_t nbytes) {
    caller_copy(stream_, to, from, nbytes, 0);
    caller_wait(stream_);
  }

  const int64_t device_;
  const bool mixes_;
  void *const stream_;
  std::atomic<int64_t> turn_{0};
};

enum class Lies { on_devices, on_host, on_both };

/// Runs body(group, memory, report) on `size` thread ranks that connect(rank, out) and expects no failure; returns rank 0's number of
/// cases.
template <class Connect, class Body>
int64_t run_connected(int64_t size, Lies lies, Connect connect, Body body) {
  std::vector<Report> reports(static_cast<size_t>(size));
  run_thread_ranks(size, [&](int64_t rank) {
    Report &report = reports[static_cast<size_t>(rank)];
    DeviceCases cases(rank % kDevices, lies == Lies::on_both);
    std::shared_ptr<Group> group;
    const Status status = connect(rank, &group);
    report.expect(status.ok(), status.text());
    if (group != nullptr) body(*group, lies == Lies::on_host ? host_memory() : cases, &report);
  });
  for (const Report &report : reports) EXPECT_EQ(report.failures, 0) << report.text;
  return reports[0].cases;
}

}  // namespace zero::test
