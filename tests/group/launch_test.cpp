/// @file What each combination of launcher variables means: a table of environments and the world or the error they give.
#include "tests/group/launch_environments.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace zero::launch_test {
namespace {

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
    // A step with PMIx is MPI's; without, one node shares memory, and several meet over TCP.
    {slurm("5", "8") + kPmix, kMpi, 5, 8, "Slurm's srun"},
    {slurm_node("5", "8") + kPmix, kMpi, 5, 8, "Slurm's srun"},
    {slurm("0", "1") + kPmix, kSingle, 0, 1, "Slurm's srun"},
    {slurm_node("5", "8"), kLocal, 5, 8, "Slurm's srun"},
    {slurm_node("5", "8") - "SLURM_STEP_ID", kLocal, 5, 8, "Slurm's srun"},
    {slurm_node("5", "8") + Variables{{"SLURM_NTASKS", "16"}}, kLocal, 5, 8, "Slurm's srun"},
    {slurm_node("5", "8") + Variables{{"RANK", "5"}, {"WORLD_SIZE", "8"}}, kLocal, 5, 8, "Slurm's srun"},
    {slurm("5", "8"), kHosts, 5, 8, "Slurm's srun"},
    {slurm("5", "8") + Variables{{"SLURM_NTASKS", "16"}}, kHosts, 5, 8, "Slurm's srun"},
    {slurm("5", "8") - "SLURM_STEP_NUM_NODES", kMpi, 5, 8, "Slurm's srun"},
    // Slurm's PMI sets MPICH's variables: on one node shared memory needs nothing of it.
    {slurm_node("5", "8") + hydra("5", "8"), kLocal, 5, 8, "Slurm's srun"},
    {slurm("5", "8") + hydra("5", "8"), kMpi, 5, 8, "MPICH"},
    // Neither a batch script nor a shell of salloc is a step: Slurm's variables describe the allocation.
    {kBatchScript, kSingle, 0, 1, ""},
    {kAllocShell, kSingle, 0, 1, ""},
    {kAllocShell + kAllocStep, kSingle, 0, 1, "Slurm's srun"},
    {kBatchScript + open_mpi("3", "8"), kMpi, 3, 8, "Open MPI"},
    {kBatchScript + torchrun("3", "8"), kLocal, 3, 8, "torchrun"},
    {kAllocShell + kAllocStep + open_mpi("3", "8"), kMpi, 3, 8, "Open MPI"},
    {kAllocShell + kAllocStep + torchrun("3", "8"), kLocal, 3, 8, "torchrun"},
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
    {slurm("1", "4") + kPmix + Variables{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, kMpi, 1, 4, "Slurm's srun"},
    {slurm("1", "4") + kPmix + torchrun("1", "4") - "TORCHELASTIC_RUN_ID", kMpi, 1, 4, "Slurm's srun"},
    {slurm("1", "4") + torchrun("1", "4") - "TORCHELASTIC_RUN_ID", kHosts, 1, 4, "Slurm's srun"},
    {open_mpi("3", "4") + slurm("1", "2") + torchrun("3", "4") - "TORCHELASTIC_RUN_ID", kMpi, 3, 4, "Open MPI"},
    // mpirun starts torchrun's agents, one per host.
    {open_mpi("1", "2") + on_hosts("8", "16", "0", "8"), kHosts, 8, 16, "torchrun"},
    {open_mpi("1", "2") + on_hosts("0", "2", "0", "1"), kHosts, 0, 2, "torchrun"},
    {open_mpi("0", "1") + torchrun("0", "2"), kLocal, 0, 2, "torchrun"},
    {open_mpi("3", "4") + slurm("1", "2") + torchrun("3", "4"), kLocal, 3, 4, "torchrun"},
    // Ray, also where srun starts its agents.
    {ray("0", "1", "0", "1"), kSingle, 0, 1, "torchrun"},
    {ray("3", "4", "3", "4"), kLocal, 3, 4, "torchrun"},
    {ray("5", "8", "1", "4"), kHosts, 5, 8, "torchrun"},
    {slurm("1", "2") + ray("5", "8", "1", "4"), kHosts, 5, 8, "torchrun"},
    {slurm("0", "1") + ray("3", "8", "3", "8"), kLocal, 3, 8, "torchrun"},
    // Kubernetes: PyTorchJob, and torchrun in its pods.
    {pod("3", "4"), kHosts, 3, 4, "Kubernetes"},
    {pod("0", "1"), kSingle, 0, 1, "torchrun"},
    {pod("3", "4") - "PET_NPROC_PER_NODE", kHosts, 3, 4, "Kubernetes"},
    {pod("3", "4") - "KUBERNETES_SERVICE_HOST" + Variables{{"PET_NPROC_PER_NODE", "1"}}, kHosts, 3, 4, "Kubernetes"},
    {pod("1", "2") + on_hosts("8", "16", "0", "8"), kHosts, 8, 16, "torchrun"},
    {pod("0", "1") + torchrun("3", "8"), kLocal, 3, 8, "torchrun"},
    // Kubeflow's trainer sets torchrun's options alone.
    {pet("3", "4", "1"), kHosts, 3, 4, "Kubernetes"},
    {pet("3", "4", "1") - "PET_NPROC_PER_NODE", kHosts, 3, 4, "Kubernetes"},
    {pet("0", "1", "8"), kSingle, 0, 1, ""},
    {pet("0", "1:1", "auto"), kSingle, 0, 1, ""},
    {pet("0", "1", "8") + torchrun("3", "8"), kLocal, 3, 8, "torchrun"},
    {pet("1", "2", "8") + on_hosts("8", "16", "0", "8"), kHosts, 8, 16, "torchrun"},
    {pet("1", "2", "auto") + open_mpi("3", "4"), kMpi, 3, 4, "Open MPI"},
    // The MPI operator: mpirun in one pod starts the ranks in others, and the first pod alone is none of them.
    {open_mpi("3", "4") + Variables{{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"}}, kMpi, 3, 4, "Open MPI"},
    {open_mpi("3", "4") + Variables{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}, kMpi, 3, 4, "Open MPI"},
    {hydra("3", "4") + Variables{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}, kMpi, 3, 4, "MPICH"},
    {{{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}, kSingle, 0, 1, ""},
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
    {slurm("1", "4") + Variables{{"SLURM_STEP_NUM_NODES", "two"}}, {"SLURM_STEP_NUM_NODES", "\"two\""}},
    {slurm("1", "4") - "SLURM_STEP_NODELIST", {"SLURM_STEP_NUM_NODES is 4", "SLURM_STEP_NODELIST is not set"}},
    {slurm("1", "4") + Variables{{"SLURM_STEP_NODELIST", "n[1-"}}, {"SLURM_STEP_NODELIST is \"n[1-\"", "no list of hosts"}},
    {slurm("1", "4") - "SLURM_JOB_ID", {"SLURM_JOB_ID is not set", "no name to meet by"}},
    {slurm_node("1", "4") - "SLURM_JOB_ID", {"SLURM_JOB_ID is not set", "no name to meet by"}},
    {kPmix, {"PMIX_RANK is 1", "how many ranks"}},
    {kBatchScript + kPmix, {"PMIX_RANK is 1", "how many ranks"}},
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
    {on_hosts("0", "8", "0", "4") - "MASTER_ADDR", {"8 ranks on several hosts", "MASTER_ADDR is not set"}},
    {pod("1", "2") - "MASTER_ADDR", {"Kubernetes started 2 ranks", "MASTER_ADDR is not set"}},
    {pod("1", "2") - "MASTER_PORT", {"Kubernetes started 2 ranks", "MASTER_PORT is not set"}},
    {pod("2", "2"), {"RANK is 2", "WORLD_SIZE is 2"}},
    {pod("1", "16") + Variables{{"PET_NPROC_PER_NODE", "8"}}, {"WORLD_SIZE is 16", "PET_NPROC_PER_NODE is 8", "torchrun"}},
    {pod("1", "2") - "KUBERNETES_SERVICE_HOST", {"WORLD_SIZE is 2", "PET_NPROC_PER_NODE is auto"}},
    {pod("1", "2") + Variables{{"LOCAL_RANK", "0"}}, {"LOCAL_RANK", "LOCAL_WORLD_SIZE is not"}},
    {pet("1", "2", "8"), {"PET_NNODES is \"2\"", "PET_NPROC_PER_NODE is \"8\"", "start with torchrun"}},
    {pet("1", "2", "auto"), {"PET_NPROC_PER_NODE is \"auto\"", "set PET_NPROC_PER_NODE to 1"}},
    {pet("1", "1:4", "1"), {"PET_NNODES is \"1:4\"", "start with torchrun"}},
    {pet("2", "2", "1"), {"PET_NODE_RANK is 2 but PET_NNODES is 2"}},
    {pet("1", "2", "1") - "PET_NODE_RANK", {"PET_NODE_RANK is not"}},
    {pet("1", "2", "1") - "PET_MASTER_ADDR", {"PET_MASTER_ADDR is not set"}},
    {pet("1", "2", "1") - "PET_MASTER_PORT", {"PET_MASTER_PORT is not set"}},
    {pet("1", "many", "1"), {"PET_NNODES", "\"many\""}},
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
    {slurm("0", "1") + pod("3", "8"), {"rank 0 of 1 (SLURM_STEP_NUM_TASKS)", "rank 3 of 8"}},
    {slurm("3", "8") + ray("0", "2", "0", "2"), {"rank 3 of 8 (SLURM_STEP_NUM_TASKS)", "rank 0 of 2"}},
    {slurm("0", "2") + ray("1", "2", "0", "1"), {"rank 0 of 2 (SLURM_STEP_NUM_TASKS)", "rank 1 of 2"}},
    {open_mpi("1", "4") + torchrun("0", "1"), {"torchrun started 1 rank (WORLD_SIZE)", "4 ranks of Open MPI"}},
    {slurm("1", "2") + hydra("3", "4") + ray("3", "8", "3", "8"), {"MPICH says rank 3 of 4", "rank 3 of 8"}},
    {open_mpi("1", "4") + slurm("0", "1") + ray("0", "2", "0", "2"), {"rank 1 of 4", "rank 0 of 2"}},
    {open_mpi("1", "4") + ray("0", "2", "0", "2"), {"rank 1 of 4", "rank 0 of 2", "set them to that launcher's numbers"}},
    {open_mpi("1", "2") + ray("0", "2", "0", "2"), {"rank 1 of 2", "rank 0 of 2"}},
    {open_mpi("0", "1") + ray("0", "2", "0", "2"), {"rank 0 of 1", "rank 0 of 2"}},
    {open_mpi("0", "4") + Variables{{"WORLD_SIZE", "4"}}, {"RANK is not"}},
};

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

}  // namespace
}  // namespace zero::launch_test
