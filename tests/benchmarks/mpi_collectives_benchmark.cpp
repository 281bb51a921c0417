/// @file MPI's own collectives over the sizes of collectives_benchmark, all_gather in place, the others out of place.
/// usage: mpirun -n N mpi_collectives_benchmark [--most-bytes=N] [--save=FILE]
#include "collective_cases.h"
#include "options.h"

#include <mpi.h>

namespace {

using namespace zero::bench;

void call(Collective collective, float *send, float *recv, int count, int size) {
  switch (collective) {
    case Collective::all_reduce:
      MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter_block(send, recv, count / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Collective::all_gather:
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count / size, MPI_FLOAT, MPI_COMM_WORLD);
      return;
  }
}

Samples measure(Collective collective, int64_t nbytes, float *send, float *recv, int size) {
  const auto count = static_cast<int>(nbytes / 4);
  const auto once = [&] { call(collective, send, recv, count, size); };
  once();
  Samples samples;
  for (int repeat = 0; repeat < collective_repeats(nbytes); ++repeat) {
    MPI_Barrier(MPI_COMM_WORLD);
    samples.add(time_calls(calls_per_sample(nbytes), once));
  }
  return samples;
}

}  // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  Options options(argc, argv, "[--most-bytes=N] [--save=FILE]");
  const int64_t most = options.number("most-bytes", int64_t{256} << 20);
  const std::string path = options.text("save", "");
  options.finish();
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<float> send(static_cast<size_t>(most / 4), 1.0F);
  std::vector<float> recv(static_cast<size_t>(most / 4), 1.0F);
  if (rank == 0)
    std::printf("MPI's collectives, %d ranks, fp32\n%-15s %10s %12s %12s %12s\n", size, "", "bytes", "median us", "min us", "max us");
  Medians medians;
  for (const Collective collective : kCollectives) {
    for (const int64_t nbytes : collective_nbytes(most)) {
      const Samples samples = measure(collective, nbytes, send.data(), recv.data(), size);
      medians.set(collective, nbytes, size, samples.median());
      if (rank != 0) continue;
      std::printf("%-15s %10lld %12.2f %12.2f %12.2f\n", collective_name(collective), static_cast<long long>(nbytes),
                  1e6 * samples.median(), 1e6 * samples.least(), 1e6 * samples.most());
    }
  }
  if (rank == 0 && !path.empty()) medians.save(path);
  MPI_Finalize();
  return 0;
}
