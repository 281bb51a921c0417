/// @file Groups over hosts: sums and gathers inside each host first, against all data straight between the ranks through MPI. Both groups
/// run the same collectives in turns. Beside the times stands what this host sent, counted at its interface, and the ideal time: what two
/// hosts must send each other, at the cable's rate. To be started by mpirun on two hosts of several ranks each. usage: hosts_benchmark
/// [--interface=zero0] [--gbits=1] [--mib=16] [--repeats=9]
#include "must.h"
#include "options.h"
#include "samples.h"
#include "tests/group/interface_bytes.h"

#include <zero/zero.h>

#include <chrono>
#include <functional>
#include <vector>

namespace {

using namespace zero::bench;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::string interface;
  double gbits;  ///< of the cable, per second
  int64_t elements;
  int64_t repeats;
};

/// One way to move data between the ranks.
struct Way {
  zero_group *group = nullptr;
  Samples seconds;
  Samples mebibytes;  ///< that this host sent
};

void open(Way &way, int64_t shared) {
  zero_config *config = nullptr;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_MPI_SHARED, shared));
  must(zero_group_create_mpi(ZERO_MPI_WORLD, config, &way.group));
  zero_config_release(config);
}

using Collective = std::function<void(zero_group *)>;

void measure(Way &way, const Collective &collective, const std::string &interface) {
  must(zero_group_barrier(way.group));
  const int64_t before = zero::test::interface_sent_nbytes(interface.c_str());
  must(zero_group_barrier(way.group));  // nobody sends before all have looked
  const auto begin = Clock::now();
  collective(way.group);
  must(zero_group_barrier(way.group));
  way.seconds.add(std::chrono::duration<double>(Clock::now() - begin).count());
  way.mebibytes.add(static_cast<double>(zero::test::interface_sent_nbytes(interface.c_str()) - before) / 1048576);
}

void print_way(const Way &way, double ideal_seconds) {
  std::printf(" %7.1f (%.1f to %.1f) ms, %5.2f of ideal, %6.2f MiB |", 1e3 * way.seconds.median(), 1e3 * way.seconds.least(),
              1e3 * way.seconds.most(), way.seconds.median() / ideal_seconds, way.mebibytes.median());
}

/// crossing: bytes that a host must send.
void compare(const char *name, double crossing, const Settings &settings, Way &hosts, Way &flat, const Collective &collective) {
  for (int64_t repeat = 0; repeat <= settings.repeats; ++repeat) {
    measure(hosts, collective, settings.interface);
    measure(flat, collective, settings.interface);
    if (repeat > 0) continue;  // the first call touches memory
    hosts.seconds = flat.seconds = hosts.mebibytes = flat.mebibytes = {};
  }
  int64_t rank = 0;
  must(zero_group_rank(hosts.group, &rank));
  if (rank != 0) return;
  const double ideal_seconds = 8 * crossing / (1e9 * settings.gbits);
  std::printf("%-20s|", name);
  print_way(hosts, ideal_seconds);
  print_way(flat, ideal_seconds);
  std::printf(" %.2f\n", hosts.seconds.median() / flat.seconds.median());
}

}  // namespace

int main(int argc, char **argv) {
  Options options(argc, argv, "[--interface=zero0] [--gbits=1] [--mib=16] [--repeats=9]");
  const Settings settings{options.text("interface", "zero0"), options.fraction("gbits", 1), options.number("mib", 16) << 18,
                          options.number("repeats", 9)};
  options.finish();
  Way hosts;
  Way flat;
  open(hosts, 1);
  open(flat, 0);
  int64_t size = 0;
  int64_t rank = 0;
  must(zero_group_size(hosts.group, &size));
  must(zero_group_rank(hosts.group, &rank));
  const int64_t count = settings.elements / size * size;
  const int64_t share = count / size;
  std::vector<float> send(static_cast<size_t>(count), 1);
  std::vector<float> recv(static_cast<size_t>(count));
  if (rank == 0) {
    std::printf(
        "%lld ranks on two hosts, %lld fp32 elements, a cable of %g Gbit/s; what this host sent\n%-20s| inside each host first | straight"
        " between ranks | time ratio\n",
        static_cast<long long>(size), static_cast<long long>(count), settings.gbits, "");
  }
  const double half = static_cast<double>(count) / 2 * sizeof(float);
  compare("reduce_scatter", half, settings, hosts, flat, [&](zero_group *group) {
    must(zero_group_reduce_scatter(group, send.data(), count, recv.data(), share, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr));
  });
  compare("all_gather", half, settings, hosts, flat,
          [&](zero_group *group) { must(zero_group_all_gather(group, send.data(), share, recv.data(), count, ZERO_DTYPE_F32, nullptr)); });
  compare("all_reduce", 2 * half, settings, hosts, flat, [&](zero_group *group) {
    must(zero_group_all_reduce(group, send.data(), count, recv.data(), count, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, nullptr));
  });
  zero_group_release(flat.group);
  zero_group_release(hosts.group);
  return 0;
}
