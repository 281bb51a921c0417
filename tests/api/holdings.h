/// @file Holdings: the system resources that this process holds. A test compares the counts before
/// and after its calls.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace zero::test {

inline int64_t entries_in(const char *folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

inline int64_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t shared = 0;
  for (std::string line; std::getline(maps, line);)
    shared += line.find("memfd:") != std::string::npos || line.find("zero") != std::string::npos;
  return shared;
}

struct Holdings {
  int64_t files = entries_in("/proc/self/fd");
  int64_t maps = shared_mappings();
  int64_t heap_nbytes = static_cast<int64_t>(::mallinfo2().uordblks);
};

}  // namespace zero::test
