/// @file The local transport with ranks as threads: rounds, quiet, shared memory, derived transports, poison, leaving.
#include "group/local_transport.h"

#include "group/thread_ranks.h"
#include "group/transport_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace zero {
namespace {

using test::barrier;
using test::call;
using test::quiet;
using test::run_task;
using test::run_thread_ranks;

bool full() {
  const char *value = std::getenv("ZERO_TEST_FULL");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

std::string fresh_name() { return "test." + std::to_string(random_u64()); }

std::shared_ptr<Transport> connect(const std::string &name, int64_t rank, int64_t size, LocalOptions options = {}) {
  std::shared_ptr<Transport> transport;
  const Status status = run_task(connect_local(name, rank, size, options, &transport));
  EXPECT_TRUE(status.ok()) << status.text();
  return transport;
}

/// The byte that `from` offers to `to` at `index` of round `round`.
std::byte expected_byte(int64_t from, int64_t to, int64_t round, int64_t index) {
  return static_cast<std::byte>(from * 89 + to * 57 + round * 31 + index * 7 + 3);
}

/// Every pair's piece size in a round, known to all ranks.
std::vector<int64_t> piece_sizes(int64_t size, int64_t round, int64_t round_nbytes) {
  std::mt19937_64 random(static_cast<uint64_t>(round * 1000 + size));
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < size * size; ++i) {
    const int64_t limit = round_nbytes / size;
    const int64_t choices[] = {0, 1, 88, 89, 4096, limit, static_cast<int64_t>(random() % static_cast<uint64_t>(limit + 1))};
    sizes.push_back(std::min(limit, choices[random() % 7]));
  }
  return sizes;
}

/// One round of random pieces; counts wrong bytes.
Status random_round(Transport &transport, int64_t number, std::atomic<int64_t> *wrong) {
  const int64_t size = transport.size();
  const int64_t rank = transport.rank();
  const auto sizes = piece_sizes(size, number, transport.round_nbytes());
  std::vector<std::vector<std::byte>> pieces(static_cast<size_t>(size));
  std::vector<Offer> offers(static_cast<size_t>(size));
  std::vector<Arrival> arrivals(static_cast<size_t>(size));
  for (int64_t peer = 0; peer < size; ++peer) {
    const auto i = static_cast<size_t>(peer);
    pieces[i].resize(static_cast<size_t>(sizes[static_cast<size_t>(rank * size + peer)]));
    for (size_t at = 0; at < pieces[i].size(); ++at) pieces[i][at] = expected_byte(rank, peer, number, static_cast<int64_t>(at));
    offers[i] = {pieces[i].data(), static_cast<int64_t>(pieces[i].size())};
    arrivals[i].nbytes = sizes[static_cast<size_t>(peer * size + rank)];
  }
  const Fingerprint fingerprint = call(OperationKind::exchange, static_cast<uint64_t>(number) + 1);
  return test::round(transport, number % 3 == 2 ? nullptr : &fingerprint, offers, arrivals, [&](const std::vector<Arrival> &arrived) {
    for (int64_t peer = 0; peer < size; ++peer) {
      const Arrival &arrival = arrived[static_cast<size_t>(peer)];
      for (int64_t at = 0; peer != rank && at < arrival.nbytes; ++at) {
        if (static_cast<const std::byte *>(arrival.data)[at] != expected_byte(peer, rank, number, at)) ++*wrong;
      }
    }
  });
}

class LocalTransportOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LocalTransportOfSize, testing::Range<int64_t>(1, 9));

TEST_P(LocalTransportOfSize, RandomPiecesArriveWhole) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  const int64_t rounds = full() ? 1000 : 60;
  std::atomic<int64_t> wrong{0};
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size, {20'000, 64 * 1024});
    std::mt19937_64 random(static_cast<uint64_t>(rank));
    for (int64_t number = 0; number < rounds; ++number) {
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      const Status status = random_round(*transport, number, &wrong);
      ASSERT_TRUE(status.ok()) << status.text();
    }
    EXPECT_TRUE(quiet(*transport).ok());
    EXPECT_TRUE(barrier(*transport, 10'000).ok());
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace zero
