/// @file A rank's communicator of the NCCL module over an NCCL of threads, with a stream and memory of an emulated device.
#pragma once

#include "group/nccl/nccl_module.h"
#include "memory/cuda_module.h"
#include "tests/group/fake_nccl.h"
#include "tests/memory/caller_device.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test {

using Id = std::array<char, ZERO_NCCL_ID_NBYTES>;

inline constexpr int32_t kStillBusy = -1;

inline const zero_nccl_table &nccl() {
  static const zero_nccl_table *const loaded = [] {
    const zero_nccl_table *table = nullptr;
    const Status status = load_nccl_module(ZERO_NCCL_FILE, &table);
    if (!status.ok()) ADD_FAILURE() << status.text();
    return table;
  }();
  return *loaded;
}

inline const zero_cuda_table &cuda() {
  static const zero_cuda_table *const loaded = [] {
    const zero_cuda_table *table = nullptr;
    const Status status = load_cuda_module(caller_module(), &table);
    if (!status.ok()) ADD_FAILURE() << status.text();
    return table;
  }();
  return *loaded;
}

inline Id new_id() {
  Id id{};
  EXPECT_EQ(nccl().unique_id(id.data()), 0);
  return id;
}

/// A rank's communicator, stream and memory on a device.
class Seat {
 public:
  explicit Seat(int64_t device) : device_(device), stream_(caller_stream_create(device)), memory_(caller_alloc(device, kMemory)) {}
  Seat(const Id &id, int64_t rank, int64_t size, int64_t device) : Seat(device) { EXPECT_EQ(begin(id, rank, size), 0); }
  ~Seat() {
    abort();
    caller_stream_destroy(stream_);
    caller_free(memory_);
  }
  Seat(const Seat &) = delete;
  Seat &operator=(const Seat &) = delete;

  int32_t begin(const Id &id, int64_t rank, int64_t size) {
    const int32_t error = within([&] { return nccl().comm_begin(id.data(), rank, size, &handle_); });
    comm = handle_;
    return error;
  }
  /// Looks at the state until nothing is under way, but no more often than `looks`.
  int32_t settle(int64_t looks = 1 << 20) const {
    for (int64_t i = 0; i < looks; ++i) {
      int32_t busy = 0;
      const int32_t error = nccl().comm_state(comm, &busy);
      if (busy == 0) return error;
      std::this_thread::yield();
    }
    return kStillBusy;
  }
  int32_t move(std::vector<zero_nccl_move> moves) const {
    return within([&] { return nccl().move(comm, moves.data(), static_cast<int64_t>(moves.size()), stream_); });
  }
  zero_nccl_move send(int64_t peer, int64_t offset, int64_t nbytes) const { return {at(offset), nbytes, peer, ZERO_NCCL_SEND}; }
  zero_nccl_move broadcast(int64_t root, int64_t offset, int64_t nbytes) const { return {at(offset), nbytes, root, ZERO_NCCL_BROADCAST}; }
  zero_nccl_move gather(int64_t rank, int64_t offset, int64_t nbytes) const { return {at(offset), nbytes, rank, ZERO_NCCL_GATHER}; }
  zero_nccl_move recv(int64_t peer, int64_t offset, int64_t nbytes) const { return {at(offset), nbytes, peer, ZERO_NCCL_RECV}; }

  void write(const std::vector<char> &bytes, int64_t offset = 0) const { copy(at(offset), bytes.data(), bytes.size()); }
  std::vector<char> read(int64_t offset, int64_t nbytes) const {
    std::vector<char> bytes(static_cast<size_t>(nbytes));
    copy(bytes.data(), at(offset), bytes.size());
    return bytes;
  }
  void wait() const { caller_wait(stream_); }
  /// Whether the stream has done all it was given, after some time.
  bool ends() const {
    void *event = nullptr;
    EXPECT_EQ(cuda().event_create(device_, &event), 0);
    EXPECT_EQ(cuda().event_record(device_, event, stream_), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int32_t ended = 0;
    EXPECT_EQ(cuda().event_ended(device_, event, &ended), 0);
    EXPECT_EQ(cuda().event_destroy(device_, event), 0);
    return ended != 0;
  }

  int32_t finish() const {
    return within([&] { return nccl().comm_finish(comm); });
  }
  int32_t free() {
    return within([&] { return nccl().comm_free(std::exchange(comm, nullptr)); });
  }
  void end() {
    EXPECT_EQ(finish(), 0);
    EXPECT_EQ(settle(), 0);
    EXPECT_EQ(free(), 0);
  }
  int32_t abort() {
    if (comm == nullptr) return 0;
    return within([&] { return nccl().comm_abort(std::exchange(comm, nullptr)); });
  }

  void *comm = nullptr;

 private:
  static constexpr int64_t kMemory = 1 << 16;

  /// With the device as the thread's current one.
  template <class Use>
  int32_t within(Use &&use) const {
    zero_cuda_visit visit;
    EXPECT_EQ(cuda().enter(device_, &visit), 0);
    const int32_t error = use();
    EXPECT_EQ(cuda().leave(&visit), 0);
    return error;
  }
  char *at(int64_t offset) const { return static_cast<char *>(memory_) + offset; }
  void copy(void *to, const void *from, size_t nbytes) const {
    caller_copy(stream_, to, from, static_cast<int64_t>(nbytes), 0);
    caller_wait(stream_);
  }

  void *handle_ = nullptr;  ///< what NCCL writes
  const int64_t device_;
  void *const stream_;
  void *const memory_;
};

class NcclTable : public ::testing::Test {
 protected:
  void SetUp() override { fake_nccl_reset(); }
  void TearDown() override {
    fake_nccl_reset();
    EXPECT_EQ(fake_nccl_objects(), 0);
  }

  /// Two ranks of this thread that have met.
  void open_pair(Seat *zero, Seat *one) {
    const Id id = new_id();
    ASSERT_EQ(zero->begin(id, 0, 2), 0);
    ASSERT_EQ(one->begin(id, 1, 2), 0);
    ASSERT_EQ(zero->settle(), 0);
    ASSERT_EQ(one->settle(), 0);
    exchange(zero, one);
  }
  void exchange(Seat *zero, Seat *one) {
    ASSERT_EQ(zero->move({zero->send(1, 0, 8)}), 0);
    ASSERT_EQ(one->move({one->recv(0, 0, 8)}), 0);
    ASSERT_EQ(zero->settle(), 0);
    ASSERT_EQ(one->settle(), 0);
    zero->wait();
    one->wait();
  }
};

}  // namespace zero::test
