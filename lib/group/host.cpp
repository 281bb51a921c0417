/// @file Identifies the host by its boot, name and network namespace, and counts ranks by host.
#include "group/host.h"

#include "core/file_text.h"
#include "core/hash.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>

namespace zero {

uint64_t host_id() {
  if (const char *told = std::getenv("ZERO_HOST_ID"); told != nullptr && *told != '\0') return hash_of_text(told);
  Hash hash;
  char text[256] = "";
  const int64_t nbytes = read_file("/proc/sys/kernel/random/boot_id", text);
  if (nbytes > 0) hash.add(text, static_cast<size_t>(nbytes));
  if (::gethostname(text, sizeof text - 1) == 0) hash.add(text, ::strnlen(text, sizeof text - 1));
  struct stat name_space {};
  if (::stat("/proc/self/ns/net", &name_space) == 0) hash.add(name_space.st_ino);
  return hash.value();
}

std::vector<int64_t> number_hosts(std::span<const uint64_t> ids) {
  std::vector<uint64_t> known;
  std::vector<int64_t> hosts;
  for (const uint64_t id : ids) {
    const auto found = std::find(known.begin(), known.end(), id);
    hosts.push_back(found - known.begin());
    if (found == known.end()) known.push_back(id);
  }
  return hosts;
}

Place place_of(std::span<const int64_t> hosts, int64_t rank) {
  const auto first = hosts.begin();
  const int64_t own = hosts[static_cast<size_t>(rank)];
  const int64_t here = std::count(first, hosts.end(), own);
  return {std::count(first, first + rank, own), here, static_cast<int64_t>(std::set<int64_t>(first, hosts.end()).size()), here};
}

namespace {

bool shares_hosts(std::span<const int64_t> hosts, size_t block) {
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != hosts[rank / block * block]) return false;
  }
  return true;
}

}  // namespace

int64_t host_block_of(std::span<const int64_t> hosts) {
  size_t block = 1;
  while (hosts.size() % (2 * block) == 0 && shares_hosts(hosts, 2 * block)) block *= 2;
  return static_cast<int64_t>(block);
}

}  // namespace zero
