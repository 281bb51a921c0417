/// @file The MPI transport, run as ranks by mpirun. Modes: "work" (everything that succeeds) and "errors" (mismatches, poison, ranks that
/// leave). Every rank returns non-zero when one of its checks fails; rank 0 prints the counts.
#include "tests/group/mpi_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

using zero::Fingerprint;
using zero::OperationKind;
using zero::Status;
using zero::Transport;
using namespace zero::mpi_test;

uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = seed + a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c * 0x94d049bb133111eb;
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

/// Sizes around every limit of the transport, and log-uniform ones.
int64_t piece_nbytes(uint64_t seed, uint64_t round, int64_t from, int64_t to) {
  constexpr int64_t kLimits[] = {0, 0, 1, 7, 1015, 1016, 1017, 4095, 4096, 65537};
  const uint64_t x = mixed(seed, round, static_cast<uint64_t>(from), static_cast<uint64_t>(to));
  if (x % 2 == 0) return kLimits[(x >> 8) % std::size(kLimits)];
  return static_cast<int64_t>((x >> 8) % (uint64_t{1} << ((x >> 40) % 18 + 1)));
}

std::vector<std::byte> piece(uint64_t seed, uint64_t round, int64_t from, int64_t to) {
  std::vector<std::byte> bytes(static_cast<size_t>(piece_nbytes(seed, round, from, to)));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(mixed(seed + i, round, static_cast<uint64_t>(from), static_cast<uint64_t>(to)));
  }
  return bytes;
}

/// One collective of `rounds` rounds with random pieces between all pairs, every byte checked.
void random_collective(Transport &transport, uint64_t seed, uint64_t sequence, uint64_t rounds) {
  const Fingerprint fingerprint{.sequence = sequence, .kind = OperationKind::exchange, .detail = seed};
  Tables tables(transport.size());
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<std::byte>> mine;
    for (int64_t peer = 0; peer < transport.size(); ++peer) {
      mine.push_back(piece(seed, sequence * 16 + round, transport.rank(), peer));
      tables.offers[static_cast<size_t>(peer)] = {mine.back().data(), static_cast<int64_t>(mine.back().size())};
      tables.arrivals[static_cast<size_t>(peer)] = {nullptr, piece_nbytes(seed, sequence * 16 + round, peer, transport.rank())};
    }
    CHECK_OK(run_round(transport, round == 0 ? &fingerprint : nullptr, tables, 20000));
    for (int64_t peer = 0; peer < transport.size(); ++peer) {
      if (peer == transport.rank()) continue;
      const std::vector<std::byte> expected = piece(seed, sequence * 16 + round, peer, transport.rank());
      const zero::Arrival &arrival = tables.arrivals[static_cast<size_t>(peer)];
      CHECK(expected.empty() || std::memcmp(expected.data(), arrival.data, expected.size()) == 0, "piece of rank %d",
            static_cast<int>(peer));
    }
    transport.rounds().consume();
    CHECK_OK(wait_quiet(transport, 20000));
  }
}

void rounds_carry_every_byte(Transport &transport) {
  for (uint64_t sequence = 1; sequence <= 30; ++sequence) random_collective(transport, 17, sequence, sequence % 4 + 1);
}

/// One piece for all, many rounds without a fingerprint: the root runs ahead until the transport makes it wait.
void a_sender_cannot_run_ahead_without_bound(Transport &transport) {
  const Fingerprint fingerprint{.sequence = 1, .kind = OperationKind::broadcast, .root = 0};
  std::vector<std::byte> data(200000);
  const int64_t nbytes = static_cast<int64_t>(data.size());
  for (int round = 0; round < 40; ++round) {
    Tables tables(transport.size());
    if (transport.rank() == 0) {
      std::fill(data.begin(), data.end(), static_cast<std::byte>(round));
      for (zero::Offer &offer : tables.offers) offer = {data.data(), nbytes};
    } else {
      tables.arrivals[0].nbytes = nbytes;
    }
    CHECK_OK(run_round(transport, round == 0 ? &fingerprint : nullptr, tables, 20000));
    const auto *got = static_cast<const std::byte *>(tables.arrivals[0].data);
    CHECK(transport.rank() == 0 || (got[0] == std::byte(round) && got[nbytes - 1] == std::byte(round)), "round %d", round);
    transport.rounds().consume();
  }
  CHECK_OK(wait_quiet(transport, 20000));
  CHECK(transport.staging_nbytes() < 4 * nbytes * transport.size(), "staging is %lld", static_cast<long long>(transport.staging_nbytes()));
}

void messages_cross_in_both_directions(Transport &transport) {
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{4097}, int64_t{3000001}}) {
    const int64_t next = (transport.rank() + 1) % transport.size();
    const int64_t previous = (transport.rank() + transport.size() - 1) % transport.size();
    std::vector<std::byte> out(static_cast<size_t>(count), std::byte(transport.rank() + 1));
    std::vector<std::byte> in(static_cast<size_t>(count));
    const Fingerprint send{.sequence = 1, .kind = OperationKind::send, .count = count, .root = next};
    const Fingerprint recv{.sequence = 1, .kind = OperationKind::recv, .count = count, .root = previous};
    CHECK_OK(transport.messages().send_start(next, send, {out.data(), count}));
    CHECK_OK(transport.messages().recv_start(previous, recv, in.data(), count));
    CHECK_OK(wait_for(20000, [&](bool *done) {
      bool sent = false;
      bool received = false;
      ZERO_TRY(transport.messages().send_poll(next, &sent));
      ZERO_TRY(transport.messages().recv_poll(previous, &received));
      *done = sent && received;
      return Status();
    }));
    CHECK(std::all_of(in.begin(), in.end(), [&](std::byte b) { return b == std::byte(previous + 1); }), "count %d",
          static_cast<int>(count));
  }
}

void derived_groups_work_beside_their_parent(Transport &transport) {
  std::vector<int64_t> members;
  for (int64_t rank = transport.size() - 1; rank >= 0; --rank) {
    if (rank % 2 == transport.rank() % 2) members.push_back(rank);
  }
  std::shared_ptr<Transport> half;
  CHECK_OK(run(transport.derive(members, transport.rank() % 2, 20000, &half)));
  CHECK(half != nullptr && half->size() == static_cast<int64_t>(members.size()), "size of a derived group");
  CHECK(members[static_cast<size_t>(half->rank())] == transport.rank(), "order of members");
  std::shared_ptr<Transport> whole;
  CHECK_OK(run(transport.derive(all_ranks(transport.size()), 0, 20000, &whole)));
  std::shared_ptr<Transport> none;
  const bool in = transport.rank() == 0;
  CHECK_OK(run(transport.derive(in ? std::vector<int64_t>{0} : std::vector<int64_t>{}, 0, 20000, &none)));
  CHECK((none != nullptr) == in, "a rank outside gets nothing");
  for (uint64_t sequence = 1; sequence <= 8; ++sequence) {
    random_collective(*half, 5, sequence, 2);
    random_collective(transport, 6, sequence, 2);
    random_collective(*whole, 7, sequence, 2);
  }
  half.reset();
  random_collective(*whole, 8, 9, 2);
}

void ranks_know_where_they_run(Transport &transport, const char *hosts) {
  const zero::Place place = transport.capabilities().place;
  const int64_t expected = hosts != nullptr ? std::atoll(hosts) : 1;
  CHECK(place.host_count == expected, "%d hosts", static_cast<int>(place.host_count));
  CHECK(place.local_size * expected == transport.size(), "%d ranks on this host", static_cast<int>(place.local_size));
  CHECK(place.local_rank >= 0 && place.local_rank < place.local_size, "local rank %d", static_cast<int>(place.local_rank));
  std::vector<zero::PeerMemory> memory;
  std::shared_ptr<zero::Mapping> mapping;
  CHECK_OK(zero::Mapping::create_shared(4096, &mapping));
  CHECK_OK(run(transport.share(mapping, &memory, 1000)));
  CHECK(memory.size() == static_cast<size_t>(transport.size()), "one entry per rank");
  for (size_t peer = 0; peer < memory.size(); ++peer) {
    CHECK((memory[peer].mapping != nullptr) == (static_cast<int64_t>(peer) == transport.rank()), "only the own mapping is addressable");
  }
}

int work(const char *hosts) {
  std::shared_ptr<zero::MpiTransport> transport;
  CHECK_OK(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &transport)));
  if (transport == nullptr) return finish(0);
  const bool first = transport->rank() == 0;
  CHECK(transport->capabilities().name == "mpi", "name");
  ranks_know_where_they_run(*transport, hosts);
  rounds_carry_every_byte(*transport);
  a_sender_cannot_run_ahead_without_bound(*transport);
  messages_cross_in_both_directions(*transport);
  derived_groups_work_beside_their_parent(*transport);
  std::shared_ptr<zero::MpiTransport> second;
  CHECK_OK(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &second)));
  random_collective(*second, 3, 1, 3);
  transport.reset();
  random_collective(*second, 3, 2, 3);
  CHECK_OK(second->peers().health());
  second.reset();  // finalises MPI
  CHECK_CODE(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &second)), ZERO_E_STATE, "finalised");
  CHECK(zero::mpi_quarantined_nbytes() == 0, "nothing is left to MPI");
  return finish(first ? 1 : 0);
}

/// A group of all ranks that may be broken.
std::shared_ptr<Transport> fresh(Transport &world) {
  std::shared_ptr<Transport> out;
  CHECK_OK(run(world.derive(all_ranks(world.size()), 0, 20000, &out)));
  return out;
}

Status barrier(Transport &transport, uint64_t sequence, int64_t deadline_ms) {
  const Fingerprint fingerprint{.sequence = sequence, .kind = OperationKind::barrier};
  Tables tables(transport.size());
  transport.peers().publish(&fingerprint);
  Status status = run_round(transport, &fingerprint, tables, deadline_ms);
  transport.peers().publish(nullptr);
  if (status.ok()) transport.rounds().consume();
  return status;
}

/// The last rank differs in one field at a time; all ranks must get the error. What is sent leaves without the receiver's help:
/// MPI_Finalize, which comes later here, may end a process with messages under way.
void mismatches_are_errors_on_every_rank(Transport &world) {
  const Fingerprint base{.sequence = 4, .kind = OperationKind::all_reduce, .dtype = ZERO_DTYPE_F32, .count = 100, .op = ZERO_REDUCE_SUM};
  std::vector<Fingerprint> others(7, base);
  others[0].kind = OperationKind::broadcast;
  others[1].dtype = ZERO_DTYPE_I32;
  others[2].count = 200;
  others[3].op = ZERO_REDUCE_MAX;
  others[4].root = 1;
  others[5].sequence = 5;
  others[6].detail = 9;
  for (const Fingerprint &other : others) {
    const std::shared_ptr<Transport> transport = fresh(world);
    const bool odd = world.rank() == world.size() - 1;
    std::vector<std::byte> data(static_cast<size_t>(odd ? 4000 : 2000));
    Tables tables(world.size());
    for (zero::Offer &offer : tables.offers) offer = {data.data(), static_cast<int64_t>(data.size())};
    for (zero::Arrival &arrival : tables.arrivals) arrival.nbytes = static_cast<int64_t>(data.size());
    const Status status = run_round(*transport, odd ? &other : &base, tables, 5000);
    CHECK_CODE(status, ZERO_E_MISMATCH, "");
    transport->peers().poison(status);
    CHECK_OK(barrier(world, 1, 20000));
  }
}

void poison_reaches_every_rank(Transport &world) {
  const std::shared_ptr<Transport> transport = fresh(world);
  if (world.rank() == 0) {
    transport->peers().poison(Status::error(ZERO_E_ABORTED, "the test gave up"));
    transport->peers().poison(Status::error(ZERO_E_TIMEOUT, "a later cause"));
  }
  CHECK_CODE(barrier(*transport, 1, 5000), ZERO_E_ABORTED, "the test gave up");
  CHECK_CODE(transport->peers().health(), ZERO_E_ABORTED, "the test gave up");
  CHECK_OK(barrier(world, 1, 20000));
}

void timeouts_tell_where_ranks_stand(Transport &world) {
  const std::shared_ptr<Transport> transport = fresh(world);
  if (world.rank() == 0) {
    const Status status = barrier(*transport, 1, 200);
    CHECK_CODE(status, ZERO_E_TIMEOUT, "rank 1 is in no collective of this group");
    transport->peers().poison(status);
  } else {
    // Polling another group of the same root is enough to answer.
    CHECK_OK(wait_for(20000, [&](bool *done) {
      ZERO_TRY(world.peers().health());
      *done = !transport->peers().health().ok();
      return Status();
    }));
    CHECK_CODE(transport->peers().health(), ZERO_E_TIMEOUT, "");
  }
  CHECK_OK(barrier(world, 1, 20000));
}

void a_rank_that_leaves_is_named(Transport &world) {
  std::shared_ptr<Transport> transport = fresh(world);
  CHECK_OK(barrier(*transport, 1, 5000));
  if (world.rank() == 0) {
    transport.reset();
  } else {
    CHECK_CODE(barrier(*transport, 2, 5000), ZERO_E_PEER_LEFT, "rank 0");
  }
  CHECK_OK(barrier(world, 1, 20000));
}

/// A message with the wrong count: both sides get the error, nothing is written.
void messages_that_differ_are_refused(Transport &world) {
  const std::shared_ptr<Transport> transport = fresh(world);
  std::vector<std::byte> data(64, std::byte{7});
  Status status;
  if (world.rank() == 0) {
    const Fingerprint send{.sequence = 1, .kind = OperationKind::send, .dtype = ZERO_DTYPE_F32, .count = 16, .root = 1};
    CHECK_OK(transport->messages().send_start(1, send, {data.data(), 64}));
    status = wait_for(5000, [&](bool *done) { return transport->messages().send_poll(1, done); });
  } else if (world.rank() == 1) {
    const Fingerprint recv{.sequence = 1, .kind = OperationKind::recv, .dtype = ZERO_DTYPE_F32, .count = 8, .root = 0};
    CHECK_OK(transport->messages().recv_start(0, recv, data.data(), 32));
    status = wait_for(5000, [&](bool *done) { return transport->messages().recv_poll(0, done); });
  }
  if (world.rank() < 2) CHECK_CODE(status, ZERO_E_MISMATCH, "");
  CHECK(std::all_of(data.begin(), data.end(), [](std::byte b) { return b == std::byte{7}; }), "no byte changed");
  CHECK_OK(barrier(world, 1, 20000));
}

int errors() {
  std::shared_ptr<zero::MpiTransport> world;
  CHECK_CODE(run(zero::connect_mpi(-2, {}, &world)), ZERO_E_INVALID_ARGUMENT, "-2");
  CHECK_CODE(run(zero::connect_mpi(123456, {}, &world)), ZERO_E_INVALID_ARGUMENT, "123456");
  CHECK_OK(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &world)));
  if (world == nullptr) return finish(0);
  zero::MpiOptions other;
  other.staging_nbytes = world->rank() == 0 ? 65536 : 1 << 20;
  std::shared_ptr<zero::MpiTransport> disagreeing;
  CHECK_CODE(run(zero::connect_mpi(ZERO_MPI_WORLD, other, &disagreeing)), ZERO_E_RENDEZVOUS, "65536");
  mismatches_are_errors_on_every_rank(*world);
  poison_reaches_every_rank(*world);
  timeouts_tell_where_ranks_stand(*world);
  a_rank_that_leaves_is_named(*world);
  messages_that_differ_are_refused(*world);
  const bool first = world->rank() == 0;
  std::shared_ptr<zero::MpiTransport> held;
  CHECK_OK(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &held)));
  CHECK_OK(barrier(*held, 1, 20000));
  world.reset();
  stop_mpi();  // libzero leaves MPI alone after a failure
  CHECK_CODE(barrier(*held, 2, 20000), ZERO_E_STATE, "MPI was finalised");
  const int64_t begin_ns = zero::now_ns();
  held.reset();
  CHECK(zero::now_ns() - begin_ns < 10'000'000'000, "a release after MPI_Finalize waits for nobody");
  return finish(first ? 1 : 0);
}

/// Every process was started as a world of its own although the launcher started several.
int singletons() {
  std::shared_ptr<zero::MpiTransport> transport;
  CHECK_CODE(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &transport)), ZERO_E_LAUNCHER, "MPI's world has 1");
  stop_mpi();
  return finish(1);
}

}  // namespace

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "work";
  if (mode == "work") return work(argc > 2 ? argv[2] : nullptr);
  if (mode == "errors") return errors();
  if (mode == "singletons") return singletons();
  std::fprintf(stderr, "mode '%s' is unknown; expected work [hosts], errors or singletons\n", mode.c_str());
  return 2;
}
