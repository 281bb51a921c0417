/// @file Hosts: which one this process runs on, and which ranks share one. Knows no transport.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Where a rank runs.
struct Place {
  int64_t local_rank = 0;  ///< among the group's ranks on this host
  int64_t local_size = 1;
  int64_t host_count = 1;
  /// Ranks of this host, this one among them, that may use the same cores or whose threads are of one process: of the group, or of the one
  /// that it was split from first.
  int64_t core_sharers = 1;
};

/// The same on ranks that share a kernel, host name and network namespace, so that containers of one machine count as hosts; or as the
/// variable ZERO_HOST_ID tells them.
uint64_t host_id();

/// A number for each rank's host, from 0 on, in the order in which they come.
std::vector<int64_t> number_hosts(std::span<const uint64_t> ids);

/// Of a rank, by the numbers of all ranks' hosts. All ranks of a host may use the same cores, as far as is known here.
Place place_of(std::span<const int64_t> hosts, int64_t rank);

/// The largest power of two for which every run of so many ranks, from rank 0 on, shares a host.
int64_t host_block_of(std::span<const int64_t> hosts);

}  // namespace zero
