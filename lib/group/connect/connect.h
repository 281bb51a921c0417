/// @file Connect: makes groups over each transport, and the group that a launcher's variables
/// describe.
#pragma once

#include "core/config.h"
#include "group/group.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zero {

/// Limits of groups without MPI: on one host, and on devices.
inline constexpr int64_t kMostRanksOfHost = 1024;
inline constexpr int64_t kMostRanksOnDevices = 64;

/// The options of a new group, read from its config.
struct GroupOptions {
  explicit GroupOptions(const Config &config);

  int64_t deadline_ms;
  int64_t rendezvous_ms;
  int64_t rendezvous_port;
  int64_t staging_nbytes;
  std::string mpi_module;
  bool mpi_shared;
  bool nccl;
  std::string nccl_module;
};

/// Makes the reducer once the number of ranks on the host is known.
using ReducerFactory = std::function<std::shared_ptr<const Reducer>(const Place &place)>;

Task connect_local_group(std::string name, int64_t rank, int64_t size, GroupOptions options, ReducerFactory reducer,
                         std::shared_ptr<Group> *out);
Task connect_mpi_group(int64_t comm, GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out);
/// Ranks of any hosts, with data in device memory; `id` is one of make_tcp_id.
Task connect_nccl_group(std::string id, int64_t rank, int64_t size, GroupOptions options, ReducerFactory reducer,
                        std::shared_ptr<Group> *out);
Task connect_env_group(GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out);

}  // namespace zero
