/// @file Groups over each transport.
#include "group/connect.h"

#include "group/env.h"
#include "group/local_transport.h"
#include "group/mpi_transport.h"

namespace zero {
namespace {

std::shared_ptr<Group> make_group(std::shared_ptr<Transport> transport, const GroupOptions &options, const ReducerFactory &reducer) {
  std::shared_ptr<const Reducer> made = reducer(transport->place());
  return std::make_shared<Group>(std::move(transport), std::move(made), options.deadline_ms);
}

}  // namespace

GroupOptions::GroupOptions(const Config &config)
    : deadline_ms(config.i64(ZERO_KEY_DEADLINE_MS)),
      rendezvous_ms(config.i64(ZERO_KEY_RENDEZVOUS_MS)),
      staging_nbytes(config.i64(ZERO_KEY_STAGING_BYTES)),
      mpi_module(config.str(ZERO_KEY_MPI_MODULE)) {}

Task connect_local_group(std::string name, int64_t rank, int64_t size, GroupOptions options, ReducerFactory reducer,
                         std::shared_ptr<Group> *out) {
  std::shared_ptr<Transport> transport;
  ZERO_CO_TRY(connect_local(std::move(name), rank, size, {options.rendezvous_ms, options.staging_nbytes}, &transport));
  *out = make_group(std::move(transport), options, reducer);
  co_return Status();
}

Task connect_mpi_group(int64_t comm, GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out) {
  std::shared_ptr<Transport> transport;
  // Named: gcc 12 copies a braced temporary with a string in it bit by bit when it occurs in an awaited expression.
  MpiOptions mpi{options.mpi_module, options.rendezvous_ms, options.staging_nbytes};
  ZERO_CO_TRY(connect_mpi(comm, std::move(mpi), &transport));
  *out = make_group(std::move(transport), options, reducer);
  co_return Status();
}

Task connect_env_group(GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out) {
  Launch launch;
  ZERO_CO_RETURN_IF_ERROR(read_launch(&launch));
  if (launch.kind == Launch::Kind::mpi) {
    ZERO_CO_TRY(connect_mpi_group(ZERO_MPI_WORLD, std::move(options), std::move(reducer), out));
  } else {
    ZERO_CO_TRY(connect_local_group(launch.name, launch.rank, launch.size, std::move(options), std::move(reducer), out));
  }
  co_return Status();
}

}  // namespace zero
