/// @file Machine by proc(5), and by cgroup-v2.rst and cgroup-v1/memory.rst of the kernel's
/// documentation.
#include "core/machine.h"

#include "core/file_text.h"
#include "core/hash.h"
#include "core/owned_fd.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

namespace zero {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Returns the number after `name` at the beginning of a line, or -1.
int64_t number_after(const std::string &text, const std::string &name) {
  const std::string lines = "\n" + text;
  const size_t at = lines.find("\n" + name);
  long long value = -1;
  if (at == std::string::npos || std::sscanf(lines.c_str() + at + 1 + name.size(), " %lld", &value) != 1) return -1;
  return value;
}

/// The files and fields of a version of control groups.
struct Version {
  const char *mount;
  const char *most;
  const char *used;
  const char *inactive;  ///< file pages, which the kernel drops when memory is short
  const char *active;
};
constexpr Version kVersion1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file ",
                            "total_active_file "};
constexpr Version kVersion2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file ", "active_file "};

/// Reads one control group, and lowers the offer if it leaves less.
void narrow(const Version &version, const std::string &folder, MemoryOffer *offer) {
  const int64_t most = number_after(file_text(folder + version.most), "");
  const int64_t used = number_after(file_text(folder + version.used), "");
  if (most < 0 || used < 0) return;
  const std::string stat = file_text(folder + "/memory.stat");
  const int64_t files =
      std::max<int64_t>(0, number_after(stat, version.inactive)) + std::max<int64_t>(0, number_after(stat, version.active));
  const int64_t left = std::max<int64_t>(0, most - std::max<int64_t>(0, used - files));
  if (left >= offer->group_nbytes) return;
  struct stat place {};
  if (::stat(folder.c_str(), &place) != 0) return;
  Hash hash;
  hash.add(machine_key());
  hash.add(place.st_dev);
  hash.add(place.st_ino);
  offer->group_nbytes = left;
  offer->group_key = hash.value();
}

/// Reads every group up to the mount. In a container its own group is mounted there, and its path
/// may not exist below.
void narrow_upwards(const Version &version, const std::string &root, std::string path, MemoryOffer *offer) {
  for (;;) {
    narrow(version, root + version.mount + path, offer);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.erase(slash);
  }
}

bool lists_memory(const std::string &controllers) { return ("," + controllers + ",").find(",memory,") != std::string::npos; }

}  // namespace

uint64_t machine_key() {
  std::string name = file_text("/proc/sys/kernel/random/boot_id");
  char host[256] = {};
  if (name.empty() && ::gethostname(host, sizeof host - 1) == 0) name = host;
  return hash_of_text(name);
}

int64_t online_cores() {
  static const int64_t count = [] {
    const StandardFdsHeld held;  // the C library opens a system file
    return std::max<int64_t>(1, std::thread::hardware_concurrency());
  }();
  return count;
}

MemoryOffer memory_offer(const std::string &root) {
  constexpr int64_t kKibibyte = 1024;
  const int64_t free = number_after(file_text(root + "/proc/meminfo"), "MemAvailable:");
  MemoryOffer offer{free < 0 ? kNoLimit : free * kKibibyte, kNoLimit, 0};
  std::istringstream lines(file_text(root + "/proc/self/cgroup"));
  std::string line;  // "number:controllers:path", version 2 without controllers
  while (std::getline(lines, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) narrow_upwards(kVersion2, root, line.substr(second + 1), &offer);
    if (lists_memory(controllers)) narrow_upwards(kVersion1, root, line.substr(second + 1), &offer);
  }
  return offer;
}

}  // namespace zero
