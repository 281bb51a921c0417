/// @file MpiCollectives where the build has no MPI.
#include "mpi_collectives.h"
#include "must.h"

namespace zero::bench {

MpiCollectives::MpiCollectives() { fail("--launcher", "this program was built without MPI"); }
MpiCollectives::~MpiCollectives() = default;
void MpiCollectives::call(Collective /*collective*/, float * /*send*/, float * /*recv*/, int64_t /*count*/) const {}

}  // namespace zero::bench
