/// @file Where ranks meet by a launcher's variables, and worlds that MPI cannot have.
#include "tests/group/launch_environments.h"

#include "group/slurm_step.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zero::launch_test {
namespace {

TEST(Env, HostsOfTorchrunMeetAtItsMaster) {
  Launch launch;
  ASSERT_TRUE(read_launch(from(on_hosts("5", "8", "1", "4")), &launch).ok());
  EXPECT_EQ(launch.master, "node1");
  EXPECT_EQ(launch.master_port, 29501);
  EXPECT_FALSE(launch.mpi_as_well);
}

TEST(Env, NodesOfSlurmMeetAtTheirFirst) {
  std::set<int64_t> ports;
  std::set<std::string> names;
  for (const Variables &variables :
       {slurm("0", "8"), slurm("5", "8"), slurm("5", "8") + Variables{{"SLURM_STEP_ID", "1"}},
        slurm("5", "8") + Variables{{"SLURM_JOB_ID", "8"}}, slurm("5", "8") + Variables{{"SLURM_RESTART_COUNT", "1"}}}) {
    Launch launch;
    ASSERT_TRUE(read_launch(from(variables), &launch).ok());
    EXPECT_EQ(launch.master, "n1");
    EXPECT_TRUE(launch.mpi_as_well) << "without devices";
    EXPECT_GE(launch.master_port, 61000);
    EXPECT_LE(launch.master_port, 65535);
    ports.insert(launch.master_port);
    names.insert(launch.name);
  }
  EXPECT_EQ(ports.size(), 4u) << "another port for each step, the same on its ranks";
  EXPECT_EQ(names.size(), 4u);
}

TEST(Env, TheFirstHostOfAListAsSlurmWritesIt) {
  const std::vector<std::pair<const char *, const char *>> lists = {
      {"n1", "n1"},
      {"n1,n2", "n1"},
      {"n[1-4]", "n1"},
      {"n[3,7-9]", "n3"},
      {"n[3-5,9],login1", "n3"},
      {"node[001-128]", "node001"},
      {"rack[1-2]n[01-16]", "rack1n01"},
      {"gpu[07]-ib.site.example", "gpu07-ib.site.example"},
      {"login1,n[1-4]", "login1"},
      {"10.0.0.7", "10.0.0.7"},
      {"", ""},
      {",n1", ""},
      {"n[", ""},
      {"n[]", ""},
      {"n[1", ""},
      {"n[a-b]", ""},
      {"n[-1]", ""},
      {"n[1x3]", ""},
      {"n]1", ""},
      {"n 1", ""},
      {"(null)", ""},
  };
  for (const auto &[list, host] : lists) EXPECT_EQ(first_of_hosts(list), host) << list;
}

TEST(Env, PodsMeetWhateverTheFirstCallsItself) {
  std::set<std::string> names;
  for (const Variables &variables : {pod("0", "2") + Variables{{"MASTER_ADDR", "localhost"}}, pod("1", "2")}) {
    Launch launch;
    ASSERT_TRUE(read_launch(from(variables), &launch).ok());
    EXPECT_EQ(launch.master_port, 23457);
    names.insert(launch.name);
  }
  EXPECT_EQ(names.size(), 1u);
  Launch launch;
  const Variables variables = pet("1", "2", "1");
  ASSERT_TRUE(read_launch(from(variables), &launch).ok());
  EXPECT_EQ(launch.master, "job-node-0-0");
  EXPECT_EQ(launch.master_port, 29401);
}

/// What Open MPI does with such a step was seen with release 4.1.4 under Slurm 22.05: the process ends within MPI_Init.
TEST(Env, StepsInWhichOpenMpiWouldEndTheProcessAreRefusedBeforeItStarts) {
  struct Case {
    Variables variables;
    const char *library;
    bool refused;
  };
  constexpr const char *kOpenMpi4 = "Open MPI v4.1.4, package: Debian OpenMPI";
  constexpr const char *kOpenMpi5 = "Open MPI v5.0.3, package: Site";
  const std::vector<Case> cases = {
      {slurm("0", "2"), kOpenMpi4, true},
      {slurm_node("0", "2"), kOpenMpi4, true},
      {slurm_node("0", "1"), kOpenMpi4, true},
      {slurm("0", "2") + hydra("0", "2"), kOpenMpi4, true},
      {slurm("0", "2") + torchrun("0", "2"), kOpenMpi4, true},
      {slurm("0", "2"), kOpenMpi5, true},
      {slurm_node("0", "1"), kOpenMpi5, false},
      {slurm("1", "2") + kPmix, kOpenMpi4, false},
      {slurm("0", "1") + kPmix, kOpenMpi4, false},
      {slurm("0", "2") + open_mpi("3", "4"), kOpenMpi4, false},
      {slurm("0", "2"), "MPICH Version: 4.0.2", false},
      {slurm("0", "2"), "Intel(R) MPI Library 2021.9", false},
      {slurm("0", "2"), "", false},
      {kBatchScript, kOpenMpi4, false},
      {kAllocShell, kOpenMpi4, false},
      {open_mpi("0", "2"), kOpenMpi4, false},
      {{}, kOpenMpi4, false},
  };
  for (const Case &test : cases) {
    const Status status = check_direct_launch(from(test.variables), test.library);
    EXPECT_EQ(status.code(), test.refused ? ZERO_E_LAUNCHER : ZERO_OK) << text_of(test.variables) << test.library;
    const bool told = std::strstr(status.text(), "srun --mpi=pmix") != nullptr;
    EXPECT_EQ(told, test.refused) << status.text();
  }
}

TEST(Env, NamesDifferByRunPortAddressAndRestartOnly) {
  const Variables base = torchrun("0", "2");
  std::set<std::string> names;
  for (const Variables &variables : {base, base + Variables{{"TORCHELASTIC_RUN_ID", "job2"}}, base + Variables{{"MASTER_PORT", "29501"}},
                                     base + Variables{{"MASTER_ADDR", "node2"}}, base + Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}}) {
    Launch launch;
    ASSERT_TRUE(read_launch(from(variables), &launch).ok());
    EXPECT_LE(launch.name.size(), 64u);
    names.insert(launch.name);
  }
  EXPECT_EQ(names.size(), 5u);
  const Variables peer = torchrun("1", "2");
  Launch launch;
  ASSERT_TRUE(read_launch(from(peer), &launch).ok());
  EXPECT_EQ(names.count(launch.name), 1u) << "ranks of one run meet";
}

/// Agents of several hosts count restarts each for itself.
TEST(Env, HostsThatCountedRestartsDifferentlyMeet) {
  std::set<std::string> names;
  for (const char *restarts : {"0", "1"}) {
    const Variables variables = on_hosts("8", "16", "0", "8") + Variables{{"TORCHELASTIC_RESTART_COUNT", restarts}};
    Launch launch;
    ASSERT_TRUE(read_launch(from(variables), &launch).ok());
    names.insert(launch.name);
  }
  EXPECT_EQ(names.size(), 1u);
  for (const char *name : {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "MASTER_ADDR"}) {
    const Variables variables = on_hosts("8", "16", "0", "8") + Variables{{name, "29501"}};
    Launch launch;
    ASSERT_TRUE(read_launch(from(variables), &launch).ok());
    names.insert(launch.name);
  }
  EXPECT_EQ(names.size(), 4u);
}

TEST(Env, AWorldOfAnotherSizeThanTheLaunchersIsRefused) {
  struct Case {
    Variables variables;
    int64_t world_size;
    bool fits;
  };
  const std::vector<Case> cases = {
      {{}, 1, true},
      {{}, 4, true},
      {open_mpi("0", "4"), 4, true},
      {open_mpi("0", "4"), 1, false},
      {hydra("0", "4"), 1, false},
      {slurm("0", "4"), 4, true},
      {slurm("0", "4"), 1, false},
      {open_mpi("0", "4") + slurm("0", "2"), 4, true},
      {open_mpi("0", "4") + slurm("0", "2"), 1, false},
      {open_mpi("x", "4"), 4, false},
      {{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}, 1, true},
  };
  for (const Case &test : cases) {
    const Status status = check_world(from(test.variables), test.world_size);
    EXPECT_EQ(status.code(), test.fits ? ZERO_OK : ZERO_E_LAUNCHER) << text_of(test.variables) << test.world_size << status.text();
  }
  const Variables alone = slurm("0", "4");
  const Status status = check_world(from(alone), 1);
  EXPECT_NE(std::strstr(status.text(), "started 4 ranks"), nullptr) << status.text();
  EXPECT_NE(std::strstr(status.text(), "world has 1"), nullptr) << status.text();
  EXPECT_NE(std::strstr(status.text(), "srun --mpi"), nullptr) << status.text();
}

}  // namespace
}  // namespace zero::launch_test
