/// @file The calls of MPI.
#include "mpi_collectives.h"

#include <mpi.h>

namespace zero::bench {

MpiCollectives::MpiCollectives() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiCollectives::~MpiCollectives() { MPI_Finalize(); }

void MpiCollectives::call(Collective collective, float *send, float *recv, int64_t count) const {
  const auto whole = static_cast<int>(count);
  const int part = whole / size_;
  switch (collective) {
    case Collective::all_reduce:
      MPI_Allreduce(send, recv, whole, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter_block(send, recv, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Collective::all_gather:
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, part, MPI_FLOAT, MPI_COMM_WORLD);
      return;
  }
}

}  // namespace zero::bench
