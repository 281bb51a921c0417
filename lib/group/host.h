/// @file Hosts: the host of this process, and the ranks that share a host. Knows no transport.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The place of a rank: its host, and its neighbours there.
struct Place {
  int64_t local_rank = 0;  ///< among the group's ranks on this host
  int64_t local_size = 1;
  int64_t host_count = 1;
  /// Number of ranks on this host, this one included, that may use the same cores or are threads of
  /// one process. Counts ranks of the group, or of the first group from which it was split.
  int64_t core_sharers = 1;
};

/// Equal on ranks that share a kernel, host name and network namespace, so containers of one
/// machine count as hosts. The variable ZERO_HOST_ID overrides it.
uint64_t host_id();

/// Numbers the hosts of ranks from 0, in order of first appearance.
std::vector<int64_t> number_hosts(std::span<const uint64_t> ids);

/// The place of a rank, from the numbers of all ranks' hosts. It assumes that all ranks of a host
/// may use the same cores.
Place place_of(std::span<const int64_t> hosts, int64_t rank);

/// The largest power of two for which each block of that many ranks, from rank 0 on, shares a host.
int64_t host_block_of(std::span<const int64_t> hosts);

}  // namespace zero
