/// @file Memory as the system's files report it: made-up files of both versions of control groups,
/// and the real ones.
#include "core/machine.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace zero::machine_test {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr const char *kVersion1 = "/sys/fs/cgroup/memory";
constexpr const char *kVersion2 = "/sys/fs/cgroup";

/// A folder in which the system's files are made up; gone with the test.
class MadeUpSystem {
 public:
  MadeUpSystem() : root_(std::filesystem::temp_directory_path() / ("zero_machine_test." + std::to_string(::getpid()))) {}
  MadeUpSystem(const MadeUpSystem &) = delete;
  ~MadeUpSystem() { std::filesystem::remove_all(root_); }

  void write(const std::string &path, const std::string &text) const {
    const std::string file = root_.string() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }

  /// A control group of version 2; `most` may be "max".
  void write_group(const std::string &path, const std::string &most, int64_t used, int64_t files) const {
    const std::string folder = kVersion2 + path;
    write(folder + "/memory.max", most + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 5\nfile 77\nactive_file " + std::to_string(files) + "\ninactive_file 3\n");
  }

  MemoryOffer offer() const { return memory_offer(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST(Machine, HasOneKeyAndSomeMemory) {
  EXPECT_NE(machine_key(), 0U);
  EXPECT_EQ(machine_key(), machine_key());
  EXPECT_GT(memory_offer().system_nbytes, 0);
  EXPECT_GT(memory_offer().group_nbytes, 0);
}

TEST(Machine, WithoutTheSystemsFilesNothingIsLimited) {
  const MemoryOffer offer = MadeUpSystem().offer();
  EXPECT_EQ(offer.system_nbytes, kNoLimit);
  EXPECT_EQ(offer.group_nbytes, kNoLimit);
  EXPECT_EQ(offer.group_key, 0U);
}

TEST(Machine, TellsWhatTheSystemHasAvailable) {
  const MadeUpSystem system;
  system.write("/proc/meminfo", "MemTotal:  900 kB\nMemFree:  10 kB\nNotMemAvailable: 5 kB\nMemAvailable:     700 kB\nBuffers: 1 kB\n");
  EXPECT_EQ(system.offer().system_nbytes, 700 * 1024);
}

TEST(Machine, FindsTheControlGroupThatLeavesLeastUpToTheRoot) {
  const MadeUpSystem system;
  system.write("/proc/self/cgroup", "0::/job/task\n");
  system.write_group("/job/task", "max", 600, 0);
  EXPECT_EQ(system.offer().group_nbytes, kNoLimit);
  system.write_group("/job", "1000", 700, 0);
  EXPECT_EQ(system.offer().group_nbytes, 303);  // pages of files count as free
  const uint64_t job = system.offer().group_key;
  EXPECT_NE(job, 0U);
  system.write_group("/job/task", "800", 600, 0);
  EXPECT_EQ(system.offer().group_nbytes, 203);
  EXPECT_NE(system.offer().group_key, job);
  system.write_group("/job/task", "800", 600, 150);
  EXPECT_EQ(system.offer().group_nbytes, 303);
  system.write_group("/job/task", "800", 600, 50'000);  // counters are read one after the other: never more than the limit
  EXPECT_EQ(system.offer().group_nbytes, 303);
  system.write_group("/job/task", "500", 600, 0);  // lowered below what is used
  EXPECT_EQ(system.offer().group_nbytes, 0);
}

TEST(Machine, TasksOfOneControlGroupHaveItsKey) {
  const MadeUpSystem system;
  system.write_group("/job", "1000", 700, 0);
  system.write_group("/job/a", "max", 1, 0);
  system.write_group("/job/b", "max", 1, 0);
  system.write("/proc/self/cgroup", "0::/job/a\n");
  const uint64_t first = system.offer().group_key;
  system.write("/proc/self/cgroup", "0::/job/b\n");
  EXPECT_EQ(system.offer().group_key, first);
}

TEST(Machine, InAContainerItsOwnGroupMayBeMountedAtTheRoot) {
  const MadeUpSystem system;
  system.write("/proc/self/cgroup", "0::/system.slice/container-1f0c.scope\n");
  system.write_group("", "5000", 1000, 0);
  EXPECT_EQ(system.offer().group_nbytes, 4003);
}

TEST(Machine, ReadsTheFirstVersionOfControlGroups) {
  const MadeUpSystem system;
  system.write("/proc/self/cgroup", "12:cpu,cpuacct:/other\n7:memory:/batch/job_7\n1:name=systemd:/batch\n0::/unified\n");
  const std::string folder = std::string(kVersion1) + "/batch/job_7";
  system.write(folder + "/memory.limit_in_bytes", "4000\n");
  system.write(folder + "/memory.usage_in_bytes", "3000\n");
  system.write(folder + "/memory.stat", "inactive_file 9\nactive_file 9\ntotal_inactive_file 500\ntotal_active_file 40\n");
  EXPECT_EQ(system.offer().group_nbytes, 1540);
  system.write("/proc/self/cgroup", "12:cpu,cpuacct:/batch/job_7\n");  // another controller's groups
  EXPECT_EQ(system.offer().group_nbytes, kNoLimit);
}

}  // namespace
}  // namespace zero::machine_test
