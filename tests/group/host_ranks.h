/// @file Groups over pretended hosts: the ranks of each meet over a transport of their own, and all of them over another, which here is a
/// local one as well. Knows nothing of what the groups do.
#pragma once

#include "group/group.h"
#include "group/hierarchy_transport.h"
#include "group/local/local_transport.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

/// The host of every rank.
using Hosts = std::vector<int64_t>;

inline constexpr int64_t kHostsDeadlineMs = 60'000;
inline constexpr int64_t kHostsStagingNbytes = 16384;

/// What stands between hosts instead of the transport that all ranks meet over.
using FarWay = std::function<std::shared_ptr<Transport>(std::shared_ptr<Transport>)>;

inline Status connect_host_transport(
    const std::string &name, int64_t rank, const Hosts &hosts, std::shared_ptr<Transport> *out,
    const FarWay &far_way = [](std::shared_ptr<Transport> far) { return far; }, int64_t staging_nbytes = kHostsStagingNbytes) {
  const int64_t host = hosts[static_cast<size_t>(rank)];
  const auto begin = hosts.begin();
  const LocalOptions options{kHostsDeadlineMs, staging_nbytes};
  OperationQueue queue;
  std::shared_ptr<Transport> near;
  std::shared_ptr<Transport> far;
  ZERO_TRY(queue.run(connect_local(name + ".near." + std::to_string(host), std::count(begin, begin + rank, host),
                                   std::count(begin, hosts.end(), host), options, &near)));
  ZERO_TRY(queue.run(connect_local(name + ".far", rank, static_cast<int64_t>(hosts.size()), options, &far)));
  *out = std::make_shared<HierarchyTransport>(near, far_way(far), hosts);
  return {};
}

inline Status connect_hosts(const std::string &name, int64_t rank, const Hosts &hosts, std::shared_ptr<const Reducer> reducer,
                            std::shared_ptr<Group> *out) {
  std::shared_ptr<Transport> transport;
  ZERO_TRY(connect_host_transport(name, rank, hosts, &transport));
  *out = std::make_shared<Group>(std::move(transport), std::move(reducer), kHostsDeadlineMs);
  return {};
}

}  // namespace zero::test
