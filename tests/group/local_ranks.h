/// @file What tests of the local transport share: connecting under fresh names, and counting what a process holds open.
/// Knows the local transport, not groups.
#pragma once

#include "group/local/local_transport.h"
#include "tests/fresh_number.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace zero::test {

inline std::string fresh_name() { return "test." + std::to_string(fresh_number()); }

inline Status try_connect(const std::string &name, int64_t rank, int64_t size, std::shared_ptr<Transport> *out, LocalOptions options = {}) {
  return run_task(connect_local(name, rank, size, options, out));
}

inline std::shared_ptr<Transport> connect(const std::string &name, int64_t rank, int64_t size, LocalOptions options = {}) {
  std::shared_ptr<Transport> transport;
  const Status status = try_connect(name, rank, size, &transport, options);
  EXPECT_TRUE(status.ok()) << status.text();
  return transport;
}

inline int64_t open_descriptors() {
  int64_t count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd"); entry != std::filesystem::directory_iterator(); ++entry) ++count;
  return count;
}

/// Mappings of libzero's memory files.
inline int64_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:libzero") != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace zero::test
