/// @file Groups over the fake MPI in tests: ranks that meet, a round, and the end of what nobody holds any more.
/// Knows the fake and the transport, not what is tested.
#pragma once

#include "core/clock.h"
#include "group/mpi/mpi_module.h"
#include "group/mpi/mpi_transport.h"
#include "tests/group/fake_mpi.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace zero::test {

inline constexpr int64_t kLongMs = 20'000;

inline Status connect(std::shared_ptr<Transport> *out, int64_t rendezvous_ms = kLongMs) {
  MpiOptions options;
  options.module_path = ZERO_FAKE_MPI_FILE;
  options.rendezvous_ms = rendezvous_ms;
  options.staging_nbytes = 65536;
  std::shared_ptr<MpiTransport> transport;
  ZERO_TRY(run_task(connect_mpi(ZERO_MPI_WORLD, options, &transport)));
  *out = std::move(transport);
  return {};
}

/// Runs body(rank, transport) on thread ranks that have met.
template <class Body>
void run_ranks(int64_t size, Body body) {
  fake_mpi::begin_world(size);
  run_thread_ranks(size, [&](int64_t rank) {
    fake_mpi::join(rank);
    std::shared_ptr<Transport> transport;
    const Status status = connect(&transport);
    ASSERT_TRUE(status.ok()) << status.text();
    body(rank, std::move(transport));
  });
}

inline std::vector<int64_t> all_ranks(int64_t size) {
  std::vector<int64_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// A round in which every rank offers and expects so many bytes.
inline Status exchange(Transport &transport, const Fingerprint *fingerprint, int64_t offered, int64_t expected, int64_t deadline_ms) {
  const auto size = static_cast<size_t>(transport.size());
  const std::vector<std::byte> data(static_cast<size_t>(offered));
  return round(transport, fingerprint, std::vector<Offer>(size, {data.data(), offered}), std::vector<Arrival>(size, {nullptr, expected}),
               {}, deadline_ms);
}

/// What start_mpi finds; looked at by tests that need a root without a transport.
inline MpiProcess start_fake_mpi() {
  const zero_mpi_table *table = nullptr;
  MpiProcess process;
  EXPECT_TRUE(load_mpi_module(ZERO_FAKE_MPI_FILE, &table).ok());
  const Status status = start_mpi(table, &process);
  EXPECT_TRUE(status.ok()) << status.text();
  return process;
}

/// Gives roots that nobody holds the chance to close, as each creation and release does. True when all duplicates of the world are freed.
inline bool all_close(int64_t retry_ms = 2'000) {
  const MpiProcess process = start_fake_mpi();
  const Deadline deadline = Deadline::after_ms(retry_ms);
  Backoff backoff;
  while (fake_mpi::open_communicators() > 0 && !deadline.passed()) {
    std::shared_ptr<MpiRoot> passing;
    EXPECT_TRUE(make_mpi_root(process, 0, &passing).ok());
    passing.reset();
    backoff.pause();
  }
  return fake_mpi::open_communicators() == 0;
}

}  // namespace zero::test
