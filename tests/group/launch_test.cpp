/// @file What each combination of launcher variables means: a table of environments and the world or the error they give.
#include "group/launcher.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zero::launch_test {
namespace {

using Variables = std::map<std::string, std::string>;

Environment from(const Variables &variables) {
  return [&variables](const char *name) -> const char * {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  };
}

Variables open_mpi(const char *rank, const char *size) { return {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}}; }
Variables hydra(const char *rank, const char *size) { return {{"PMI_RANK", rank}, {"PMI_SIZE", size}}; }
Variables slurm(const char *rank, const char *size) {
  return {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", rank}, {"SLURM_STEP_NUM_TASKS", size}};
}
Variables torchrun(const char *rank, const char *size) {
  return {{"RANK", rank},           {"WORLD_SIZE", size},           {"LOCAL_RANK", rank},     {"LOCAL_WORLD_SIZE", size},
          {"MASTER_ADDR", "node1"}, {"TORCHELASTIC_RUN_ID", "job"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
}
Variables operator+(Variables a, const Variables &b) {
  for (const auto &[name, value] : b) a[name] = value;
  return a;
}
Variables operator-(Variables a, const char *name) {
  a.erase(name);
  return a;
}
Variables on_hosts(const char *rank, const char *size, const char *local_rank, const char *local_size) {
  return torchrun(rank, size) + Variables{{"LOCAL_RANK", local_rank}, {"LOCAL_WORLD_SIZE", local_size}};
}

struct World {
  Variables variables;
  Launch::Kind kind;
  int64_t rank;
  int64_t size;
  const char *launcher;
};

constexpr auto kSingle = Launch::Kind::single;
constexpr auto kLocal = Launch::Kind::local;
constexpr auto kHosts = Launch::Kind::hosts;
constexpr auto kMpi = Launch::Kind::mpi;

const std::vector<World> kWorlds = {
    {{}, kSingle, 0, 1, ""},
    {{{"OMPI_COMM_WORLD_RANK", ""}, {"WORLD_SIZE", ""}}, kSingle, 0, 1, ""},
    {open_mpi("0", "1"), kSingle, 0, 1, "Open MPI"},
    {open_mpi("0", "2"), kMpi, 0, 2, "Open MPI"},
    {open_mpi("3", "4"), kMpi, 3, 4, "Open MPI"},
    {open_mpi("70000", "70001"), kMpi, 70000, 70001, "Open MPI"},
    {hydra("0", "1"), kSingle, 0, 1, "MPICH"},
    {hydra("2", "3"), kMpi, 2, 3, "MPICH"},
    {slurm("0", "1"), kSingle, 0, 1, "Slurm's srun"},
    {slurm("5", "8"), kMpi, 5, 8, "Slurm's srun"},
    {slurm("5", "8") - "SLURM_STEP_ID", kMpi, 5, 8, "Slurm's srun"},
    {slurm("5", "8") - "SLURM_STEP_NUM_TASKS" + Variables{{"SLURM_NTASKS", "8"}}, kMpi, 5, 8, "Slurm's srun"},
    {slurm("5", "8") + Variables{{"SLURM_NTASKS", "16"}}, kMpi, 5, 8, "Slurm's srun"},
    // A batch script is no step: Slurm's variables describe the allocation.
    {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "7"}}, kSingle, 0, 1, ""},
    {{{"SLURM_NTASKS", "8"}}, kSingle, 0, 1, ""},
    // mpirun starts its daemons through srun, one per node.
    {open_mpi("3", "4") + slurm("0", "1"), kMpi, 3, 4, "Open MPI"},
    {open_mpi("3", "4") + slurm("1", "2"), kMpi, 3, 4, "Open MPI"},
    {hydra("3", "4") + slurm("1", "2"), kMpi, 3, 4, "MPICH"},
    {hydra("3", "4") + slurm("3", "4"), kMpi, 3, 4, "MPICH"},
    {open_mpi("0", "1") + slurm("0", "1"), kSingle, 0, 1, "Open MPI"},
    {torchrun("0", "1"), kSingle, 0, 1, "torchrun"},
    {torchrun("0", "2"), kLocal, 0, 2, "torchrun"},
    {torchrun("7", "8"), kLocal, 7, 8, "torchrun"},
    {on_hosts("0", "8", "0", "4"), kHosts, 0, 8, "torchrun"},
    {on_hosts("5", "8", "1", "4"), kHosts, 5, 8, "torchrun"},
    {on_hosts("1", "2", "0", "1") - "TORCHELASTIC_RUN_ID", kHosts, 1, 2, "torchrun"},
    {torchrun("1", "2") - "TORCHELASTIC_RUN_ID", kLocal, 1, 2, "torchrun"},
    {torchrun("1", "2") - "MASTER_PORT" - "MASTER_ADDR", kLocal, 1, 2, "torchrun"},
    {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, kSingle, 0, 1, "torchrun"},
    // srun starts torchrun's agents, one per node; its PMI says so, too.
    {slurm("0", "1") + torchrun("3", "8"), kLocal, 3, 8, "torchrun"},
    {slurm("1", "2") + on_hosts("8", "16", "0", "8"), kHosts, 8, 16, "torchrun"},
    {slurm("1", "2") + hydra("1", "2") + on_hosts("8", "16", "0", "8"), kHosts, 8, 16, "torchrun"},
    {slurm("1", "2") + on_hosts("0", "2", "0", "1"), kHosts, 0, 2, "torchrun"},
    {slurm("1", "2") + on_hosts("1", "2", "0", "1"), kHosts, 1, 2, "torchrun"},
    {slurm("0", "1") + torchrun("0", "1"), kSingle, 0, 1, "torchrun"},
    // Scripts that hand mpirun's numbers on in torchrun's variables.
    {open_mpi("3", "4") + Variables{{"RANK", "3"}, {"WORLD_SIZE", "4"}}, kMpi, 3, 4, "Open MPI"},
    {slurm("1", "4") + Variables{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, kMpi, 1, 4, "Slurm's srun"},
    {slurm("1", "4") + torchrun("1", "4") - "TORCHELASTIC_RUN_ID", kMpi, 1, 4, "Slurm's srun"},
    {open_mpi("3", "4") + slurm("1", "2") + torchrun("3", "4"), kMpi, 3, 4, "Open MPI"},
};

struct Refusal {
  Variables variables;
  std::vector<const char *> parts;  ///< of the text
};

const std::vector<Refusal> kRefusals = {
    {open_mpi("4", "4"), {"OMPI_COMM_WORLD_RANK is 4", "OMPI_COMM_WORLD_SIZE is 4"}},
    {open_mpi("9", "4"), {"is 9", "is 4"}},
    {open_mpi("0", "0"), {"is 0"}},
    {open_mpi("-1", "4"), {"OMPI_COMM_WORLD_RANK", "\"-1\""}},
    {open_mpi("one", "4"), {"\"one\"", "not a number"}},
    {open_mpi("1 ", "4"), {"\"1 \""}},
    {open_mpi(" 1", "4"), {"\" 1\""}},
    {open_mpi("+1", "4"), {"\"+1\""}},
    {open_mpi("1", "4.0"), {"\"4.0\""}},
    {open_mpi("1", "0x4"), {"\"0x4\""}},
    {open_mpi("1", "99999999999999999999"), {"OMPI_COMM_WORLD_SIZE"}},
    {open_mpi("1", "2147483648"), {"2147483648"}},
    {open_mpi("1", "4") - "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE is set to \"4\"", "OMPI_COMM_WORLD_RANK is not"}},
    {open_mpi("1", "4") - "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_RANK is set to \"1\"", "OMPI_COMM_WORLD_SIZE is not"}},
    {hydra("1", "4") - "PMI_RANK", {"PMI_SIZE", "PMI_RANK is not"}},
    {hydra("1", "4") - "PMI_SIZE", {"PMI_RANK", "PMI_SIZE is not"}},
    {hydra("4", "2"), {"PMI_RANK is 4", "PMI_SIZE is 2"}},
    {slurm("1", "4") - "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID is not"}},
    {slurm("1", "4") - "SLURM_STEP_NUM_TASKS", {"SLURM_PROCID", "SLURM_NTASKS is not"}},
    {slurm("8", "8"), {"SLURM_PROCID is 8", "SLURM_STEP_NUM_TASKS is 8"}},
    {slurm("x", "8"), {"SLURM_PROCID", "\"x\""}},
    {torchrun("2", "2"), {"RANK is 2", "WORLD_SIZE is 2"}},
    {torchrun("3", "2"), {"RANK is 3", "WORLD_SIZE is 2"}},
    {torchrun("0", "2") - "RANK", {"WORLD_SIZE is set to \"2\"", "RANK is not"}},
    {torchrun("0", "2") - "WORLD_SIZE", {"RANK is set to \"0\"", "WORLD_SIZE is not"}},
    {torchrun("0", "2") - "LOCAL_RANK", {"LOCAL_WORLD_SIZE", "LOCAL_RANK is not"}},
    {torchrun("0", "2") - "LOCAL_WORLD_SIZE", {"LOCAL_RANK", "LOCAL_WORLD_SIZE is not"}},
    {torchrun("0", "2") - "LOCAL_WORLD_SIZE" - "LOCAL_RANK", {"WORLD_SIZE is 2", "which ranks share this host", "mpirun"}},
    {torchrun("0", "2") - "TORCHELASTIC_RUN_ID" - "MASTER_PORT", {"no name to meet by"}},
    {on_hosts("0", "8", "0", "4") - "MASTER_ADDR", {"8 ranks, 4 of them on this host", "MASTER_ADDR is not set"}},
    {on_hosts("0", "8", "0", "4") - "MASTER_PORT", {"MASTER_PORT is not set"}},
    {on_hosts("0", "8", "0", "4") + Variables{{"MASTER_PORT", "http"}}, {"MASTER_PORT", "\"http\""}},
    {on_hosts("0", "8", "4", "4"), {"LOCAL_RANK is 4 but LOCAL_WORLD_SIZE is 4"}},
    {on_hosts("0", "2", "0", "4"), {"LOCAL_WORLD_SIZE is 4 but WORLD_SIZE is 2"}},
    {torchrun("0", "2") + Variables{{"LOCAL_RANK", "1"}}, {"RANK is 0 but LOCAL_RANK is 1"}},
    {torchrun("0", "two"), {"\"two\""}},
    {open_mpi("0", "1") + slurm("2", "4"), {"Open MPI started 1 rank", "4 ranks of Slurm"}},
    {hydra("0", "1") + slurm("2", "4"), {"MPICH started 1 rank", "4 ranks of Slurm"}},
    {open_mpi("0", "1") + hydra("0", "4"), {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}},
    {slurm("2", "4") + torchrun("0", "1"), {"torchrun started 1 rank (WORLD_SIZE)", "4 ranks of Slurm"}},
    {slurm("0", "1") + torchrun("3", "8") - "TORCHELASTIC_RUN_ID", {"rank 0 of 1 (SLURM_STEP_NUM_TASKS)", "rank 3 of 8"}},
    {slurm("1", "2") + hydra("3", "4") + torchrun("3", "8"), {"MPICH says rank 3 of 4", "rank 3 of 8"}},
    {open_mpi("1", "4") + slurm("0", "1") + torchrun("0", "2"), {"rank 1 of 4", "rank 0 of 2"}},
    {open_mpi("1", "4") + torchrun("0", "2"), {"rank 1 of 4", "rank 0 of 2", "set them to that launcher's numbers"}},
    {open_mpi("1", "2") + torchrun("0", "2"), {"rank 1 of 2", "rank 0 of 2"}},
    {open_mpi("0", "1") + torchrun("0", "2"), {"rank 0 of 1", "rank 0 of 2"}},
    {open_mpi("0", "4") + Variables{{"WORLD_SIZE", "4"}}, {"RANK is not"}},
};

std::string text_of(const Variables &variables) {
  std::string text;
  for (const auto &[name, value] : variables) text += name + "=" + value + " ";
  return text;
}

TEST(Env, ReadsEveryLaunchersWorld) {
  for (const World &world : kWorlds) {
    Launch launch;
    const Status status = read_launch(from(world.variables), &launch);
    ASSERT_TRUE(status.ok()) << text_of(world.variables) << status.text();
    EXPECT_EQ(launch.kind, world.kind) << text_of(world.variables);
    EXPECT_EQ(launch.rank, world.rank) << text_of(world.variables);
    EXPECT_EQ(launch.size, world.size) << text_of(world.variables);
    EXPECT_EQ(launch.launcher, world.launcher) << text_of(world.variables);
    const char *ranks = from(world.variables)(launch.variable.c_str());
    EXPECT_EQ(launch.variable.empty(), launch.launcher.empty()) << text_of(world.variables);
    EXPECT_EQ(ranks != nullptr ? ranks : "1", std::to_string(world.size)) << text_of(world.variables) << launch.variable;
    EXPECT_EQ(launch.name.empty(), world.kind != kLocal && world.kind != kHosts) << text_of(world.variables);
  }
  std::printf("%zu environments read\n", kWorlds.size());
}

TEST(Env, HostsOfTorchrunMeetAtItsMaster) {
  Launch launch;
  ASSERT_TRUE(read_launch(from(on_hosts("5", "8", "1", "4")), &launch).ok());
  EXPECT_EQ(launch.master, "node1");
  EXPECT_EQ(launch.master_port, 29500);
  EXPECT_EQ(launch.local_size, 4);
}

TEST(Env, RefusesContradictionsAndNamesTheValues) {
  for (const Refusal &refusal : kRefusals) {
    Launch launch;
    launch.rank = 77;
    const Status status = read_launch(from(refusal.variables), &launch);
    EXPECT_EQ(status.code(), ZERO_E_LAUNCHER) << text_of(refusal.variables);
    for (const char *part : refusal.parts) EXPECT_NE(std::strstr(status.text(), part), nullptr) << status.text() << "\nhas no: " << part;
    EXPECT_EQ(launch.rank, 77) << "an error changes nothing";
  }
  std::printf("%zu environments refused\n", kRefusals.size());
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
