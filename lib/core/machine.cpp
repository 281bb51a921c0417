/// @file Asking the system.
#include "core/machine.h"

#include "core/hash.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace zero {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

/// The first bytes of a small file of the system; empty when it cannot be read.
std::string contents_of(const char *path) {
  const File file(std::fopen(path, "re"), &std::fclose);
  if (file == nullptr) return {};
  char text[4096];
  return std::string(text, std::fread(text, 1, sizeof text, file.get()));
}

/// The number behind `name`, or -1.
int64_t number_after(const std::string &text, const char *name) {
  const size_t at = text.find(name);
  long long value = -1;
  if (at == std::string::npos || std::sscanf(text.c_str() + at + std::strlen(name), " %lld", &value) != 1) return -1;
  return value;
}

/// What the control group (version 2) of this process has left; the largest number where there is no limit.
int64_t group_left_nbytes() {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const std::string line = contents_of("/proc/self/cgroup");
  const size_t at = line.find("0::");
  if (at == std::string::npos) return kNoLimit;
  const std::string folder = "/sys/fs/cgroup" + line.substr(at + 3, line.find('\n', at) - at - 3);
  const int64_t most = number_after(contents_of((folder + "/memory.max").c_str()), "");
  const int64_t now = number_after(contents_of((folder + "/memory.current").c_str()), "");
  return most < 0 || now < 0 ? kNoLimit : std::max<int64_t>(0, most - now);
}

}  // namespace

uint64_t host_key() {
  std::string name = contents_of("/proc/sys/kernel/random/boot_id");
  char host[256] = {};
  if (name.empty() && ::gethostname(host, sizeof host - 1) == 0) name = host;
  return hash_of_text(name);
}

int64_t memory_available_nbytes() {
  constexpr int64_t kKibibyte = 1024;
  const int64_t free = number_after(contents_of("/proc/meminfo"), "MemAvailable:");
  const int64_t system = free < 0 ? std::numeric_limits<int64_t>::max() : free * kKibibyte;
  return std::min(system, group_left_nbytes());
}

}  // namespace zero
