/// @file Collectives of fp32 from 1 KiB to 256 MiB: in memory that all ranks share, in private memory, beside a kernel that reads the
/// peers' memory directly with nothing but a spinning barrier before and after (which has no fingerprints, deadlines or counters), and
/// beside MPI's own; interleaved. all_gather in place, the others out of place. Without --launcher MPI is not started: medians of its
/// collectives then come from the file that a run with it has saved. With it MPI is for one thread, with which it is fastest, and binding
/// is the launcher's; otherwise each rank is bound to one core, unless --unbound is given. With --busy a thread of each rank computes all
/// the while, and samples are of few calls. usage: collectives_benchmark [options of Google Benchmark] [--ranks=2,4] [--processes]
/// [--unbound] [--busy] [--most-bytes=N]
///        [--beside=FILE]
///        mpirun -n N collectives_benchmark --launcher [--by-name] [--busy] [--most-bytes=N] [--save=FILE]. --by-name: its processes form
///        a local group
#include "api/nouns.h"
#include "collective_cases.h"
#include "core/mapping.h"
#include "engine/storage/slot_memory.h"
#include "group/collectives.h"
#include "kernels/kernels.h"
#include "limits.h"
#include "mpi_collectives.h"
#include "options.h"
#include "ranks.h"

#include <benchmark/benchmark.h>

#include <sched.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace {

using namespace zero;
using namespace zero::bench;

void must(const Status &status) {
  if (!status.ok()) fail("libzero", status.text());
}

/// What a rank offers in one kind of memory.
struct Buffers {
  float *send = nullptr;
  float *recv = nullptr;
};

/// A barrier that spins, and yields only when the other ranks cannot all be running.
class SpinBarrier {
 public:
  SpinBarrier(std::byte *shared, int64_t size) : arrived_(*reinterpret_cast<std::atomic<int64_t> *>(shared)), size_(size) {}
  void wait() {
    const int64_t wanted = (arrived_.fetch_add(1, std::memory_order_acq_rel) / size_ + 1) * size_;
    for (int64_t round = 0; arrived_.load(std::memory_order_acquire) < wanted; ++round) {
      if (round >= kSpins) ::sched_yield();
    }
  }

 private:
  static constexpr int64_t kSpins = 20'000;
  std::atomic<int64_t> &arrived_;
  const int64_t size_;
};

/// One rank with its memory: [send | recv | a page of the barrier], shared with all ranks, and the same in private memory.
class Rank {
 public:
  Rank(std::shared_ptr<Group> group, int64_t most_nbytes) : group_(std::move(group)), most_nbytes_(most_nbytes) {
    must(Mapping::create_shared(recv_offset() + most_nbytes + kPage, &mine_));
    std::memset(mine_->data(), 0, static_cast<size_t>(mine_->nbytes()));
    must(run(group_->transport().share(mine_, &peers_, group_->deadline_ms())));
    shared_ = buffers_at(mine_->data());
    private_memory_.resize(static_cast<size_t>(recv_offset() + most_nbytes));
    private_ = buffers_at(private_memory_.data());
    for (int64_t i = 0; i < most_nbytes / 4; ++i) shared_.send[i] = private_.send[i] = static_cast<float>(i % 1021);
    for (int64_t peer = 0; peer < group_->size(); ++peer) addressable_ = addressable_ && base_of(peer) != nullptr;
    if (addressable_) barrier_ = std::make_unique<SpinBarrier>(base_of(0) + recv_offset() + most_nbytes, group_->size());
  }
  Rank(const Rank &) = delete;
  ~Rank() {
    must(run(barrier(*group_)));
    group_->transport().unshare(*mine_);
  }

  bool addressable() const { return addressable_; }
  const Buffers &shared() const { return shared_; }
  const Buffers &own() const { return private_; }
  void wait() { must(run(barrier(*group_))); }

  void collective(Collective collective, const Buffers &buffers, int64_t count, const Cuts &cuts) {
    const Range mine = cuts[static_cast<size_t>(group_->rank())];
    switch (collective) {
      case Collective::all_reduce:
        return must(run(all_reduce(*group_, buffers.send, buffers.recv, count, DType::f32, ReduceOp::sum)));
      case Collective::reduce_scatter:
        return must(run(reduce_scatter(*group_, {buffers.send, buffers.recv, &cuts, DType::f32, ReduceOp::sum})));
      case Collective::all_gather:
        return must(run(all_gather(*group_, buffers.recv + mine.begin, buffers.recv, cuts, DType::f32)));
    }
  }

  /// The same without the library.
  void bare(Collective collective, const Cuts &cuts) {
    const Range mine = cuts[static_cast<size_t>(group_->rank())];
    barrier_->wait();
    if (collective == Collective::all_reduce) {
      sum(shared_.recv + mine.begin, mine);
      barrier_->wait();
    }
    if (collective == Collective::reduce_scatter) sum(shared_.recv, mine);
    if (collective != Collective::reduce_scatter) copy_others(cuts);
    barrier_->wait();
  }

 private:
  static constexpr int64_t kPage = 4096;
  static constexpr int64_t kStreamed = int64_t{1} << 20;  ///< elements

  Status run(Task task) { return group_->queue()->run(std::move(task)); }

  std::byte *base_of(int64_t peer) const {
    if (peer == group_->rank()) return mine_->data();
    const std::shared_ptr<Mapping> &mapping = peers_[static_cast<size_t>(peer)].mapping;
    return mapping != nullptr ? mapping->data() : nullptr;
  }
  /// Not at an address equal to that of what is sent but for one bit.
  int64_t recv_offset() const { return most_nbytes_ + kSlotStagger; }
  Buffers buffers_at(std::byte *base) const { return {reinterpret_cast<float *>(base), reinterpret_cast<float *>(base + recv_offset())}; }

  /// Lines that are not read are written past the caches where that is faster.
  static bool streams(int64_t count) { return count >= kStreamed; }

  void sum(float *out, Range part) {
    const int64_t size = group_->size();
    sources_.clear();
    for (int64_t peer = 0; peer < size; ++peer) sources_.push_back(buffers_at(base_of(peer)).send + part.begin);
    if (streams(part.count()) && (size == 2 || size == 4)) return move_written(out, sources_.data(), size, part.count());
    const std::vector<const void *> sources(sources_.begin(), sources_.end());
    kernels::active().reduce({out, sources.data(), size, part.count(), DType::f32, ReduceOp::sum, 1});
  }
  void copy_others(const Cuts &cuts) const {
    for (int64_t peer = 0; peer < group_->size(); ++peer) {
      const Range part = cuts[static_cast<size_t>(peer)];
      if (peer == group_->rank()) continue;
      const float *from = buffers_at(base_of(peer)).recv + part.begin;
      if (streams(part.count())) {
        move_written(shared_.recv + part.begin, &from, 1, part.count());
      } else {
        std::memcpy(shared_.recv + part.begin, from, static_cast<size_t>(4 * part.count()));
      }
    }
  }

  const std::shared_ptr<Group> group_;
  const int64_t most_nbytes_;
  std::shared_ptr<Mapping> mine_;
  std::vector<PeerMemory> peers_;
  Buffers shared_, private_;
  std::vector<std::byte> private_memory_;
  std::unique_ptr<SpinBarrier> barrier_;
  std::vector<const float *> sources_;
  bool addressable_ = true;
};

struct Times {
  Samples shared, own, bare, mpi;
};

/// How all ranks are measured.
struct Manner {
  Launch launch = Launch::threads;
  bool by_name = false;  ///< processes of a launcher form a local group
  bool binds = true;
  bool busy = false;
  int64_t most_nbytes = 0;
  const MpiCollectives *mpi = nullptr;  ///< nullptr: not in this program
  Medians medians;                      ///< of MPI
  std::string saves;                    ///< the file that they go to; empty: none
};

Times measure(Rank &rank, const Group &group, Collective collective, int64_t nbytes, const Manner &manner) {
  const int64_t count = nbytes / 4;
  const int64_t calls = manner.busy ? 1 : calls_per_sample(nbytes);
  const Cuts cuts = even_cuts(count, group.size());
  const auto in_shared = [&] { rank.collective(collective, rank.shared(), count, cuts); };
  const auto in_own = [&] { rank.collective(collective, rank.own(), count, cuts); };
  const auto bare = [&] { rank.bare(collective, cuts); };
  const auto by_mpi = [&] { manner.mpi->call(collective, rank.own().send, rank.own().recv, count); };
  in_shared();
  if (manner.mpi != nullptr) by_mpi();
  Times times;
  for (int repeat = 0; repeat < collective_repeats(nbytes); ++repeat) {
    rank.wait();
    times.shared.add(time_calls(calls, in_shared));
    times.own.add(time_calls(calls, in_own));
    rank.wait();
    if (rank.addressable()) times.bare.add(time_calls(calls, bare));
    rank.wait();
    if (manner.mpi != nullptr) times.mpi.add(time_calls(calls, by_mpi));
  }
  return times;
}

void print_row(Collective collective, int64_t nbytes, const Times &times, double mpi) {
  const auto ratio = [](double other, double mine) { return other > 0 ? mine / other : 0; };
  const double shared = times.shared.median();
  std::printf("%-15s %10lld %11.2f %11.2f %11.2f %11.2f %11.2f %11.2f %8.2f %8.2f %11.2f\n", collective_name(collective),
              static_cast<long long>(nbytes), 1e6 * shared, 1e6 * times.shared.least(), 1e6 * times.shared.most(), 1e6 * times.own.median(),
              1e6 * times.bare.median(), 1e6 * mpi, ratio(times.bare.median(), shared), ratio(mpi, shared), ratio(mpi, times.own.median()));
  std::fflush(stdout);
}

void print_header(const Group &group, const Manner &manner) {
  std::printf(
      "collectives, %lld %s%s, fp32, medians in microseconds; ratios are times of the library over the other's, 0 = not measured; MPI's "
      "are "
      "of %s\n",
      static_cast<long long>(group.size()), launch_name(manner.launch), manner.by_name ? " that meet by name" : "",
      manner.mpi != nullptr ? "the same processes" : "another run");
  std::printf("%-15s %10s %11s %11s %11s %11s %11s %11s %8s %8s %11s\n", "", "bytes", "shared us", "min us", "max us", "private us",
              "bare us", "MPI us", "x bare", "x MPI", "private/MPI");
}

/// Rounds that move nothing, with and without a fingerprint to send and compare, interleaved: what every collective pays to be checked.
void print_fingerprint_cost(Group &group) {
  Transport &transport = group.transport();
  const Fingerprint fingerprint{.sequence = 1, .kind = OperationKind::barrier};
  std::vector<Offer> offers(static_cast<size_t>(group.size()));
  std::vector<Arrival> arrivals(static_cast<size_t>(group.size()));
  const auto round = [&](const Fingerprint *compared) {
    must(transport.rounds().start(compared, offers, arrivals));
    for (bool arrived = false; !arrived;) must(transport.rounds().poll(&arrived));
    transport.rounds().consume();
  };
  const int64_t calls = calls_per_sample(1024);
  Samples checked;
  Samples bare;
  for (int repeat = 0; repeat < collective_repeats(1024); ++repeat) {
    checked.add(time_calls(calls, [&] { round(&fingerprint); }));
    bare.add(time_calls(calls, [&] { round(nullptr); }));
  }
  if (group.rank() != 0) return;
  std::printf("fingerprint: a round takes %.0f ns with it (%.0f to %.0f), %.0f ns without (%.0f to %.0f)\n", 1e9 * checked.median(),
              1e9 * checked.least(), 1e9 * checked.most(), 1e9 * bare.median(), 1e9 * bare.least(), 1e9 * bare.most());
}

/// A caller's thread that computes, on the cores of the thread that made it, until it goes out of scope.
std::jthread busy_thread() {
  return std::jthread([](const std::stop_token &stop) {
    double value = 1;
    while (!stop.stop_requested()) benchmark::DoNotOptimize(value = value * 0.999 + 1e-3);
  });
}

void run_rank(zero_group *handle, Manner &manner) {
  const std::jthread caller = manner.busy ? busy_thread() : std::jthread();
  std::shared_ptr<Group> group;
  must(api::find(handle, "group", &group));
  Rank rank(group, manner.most_nbytes);
  const bool spins = group->size() <= static_cast<int64_t>(std::thread::hardware_concurrency());
  if (group->size() > 1 && spins) print_fingerprint_cost(*group);
  if (group->rank() == 0) print_header(*group, manner);
  for (const Collective collective : kCollectives) {
    for (const int64_t nbytes : collective_nbytes(manner.most_nbytes)) {
      const Times times = measure(rank, *group, collective, nbytes, manner);
      if (group->rank() != 0) continue;
      if (manner.mpi != nullptr) manner.medians.set(collective, nbytes, group->size(), times.mpi.median());
      print_row(collective, nbytes, times, manner.medians.get(collective, nbytes, group->size()));
    }
  }
  if (group->rank() == 0 && !manner.saves.empty()) manner.medians.save(manner.saves);
}

/// Processes that a launcher has started, with MPI in them.
void run_launched(Manner &manner) {
  const MpiCollectives mpi;
  manner.mpi = &mpi;
  if (!manner.by_name) return run_ranks(manner.launch, mpi.size(), false, [&](zero_group *group) { run_rank(group, manner); });
  const std::string name = "collectives." + std::to_string(::getppid());
  ranks::run_one(name, mpi.rank(), mpi.size(), false, [&](zero_group *group) { run_rank(group, manner); });
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  Options options(
      argc, argv,
      "[--ranks=2,4] [--processes | --launcher [--by-name] [--save=FILE]] [--unbound] [--busy] [--most-bytes=N] [--beside=FILE]");
  const std::vector<int64_t> ranks = options.numbers("ranks", "2,4");
  Manner manner;
  manner.most_nbytes = options.number("most-bytes", int64_t{256} << 20);
  if (options.flag("processes")) manner.launch = Launch::processes;
  if (options.flag("launcher")) manner.launch = Launch::launcher;
  manner.by_name = options.flag("by-name");
  manner.binds = !options.flag("unbound");
  manner.busy = options.flag("busy");
  manner.medians.load(options.text("beside", ""));
  manner.saves = options.text("save", "");
  options.finish();
  if (manner.launch == Launch::launcher) {
    run_launched(manner);
    return 0;
  }
  if (manner.by_name || !manner.saves.empty()) fail("--by-name and --save", "they go with --launcher");
  for (const int64_t size : ranks) {
    run_ranks(manner.launch, size, manner.binds, [&](zero_group *group) { run_rank(group, manner); });
  }
  return 0;
}
