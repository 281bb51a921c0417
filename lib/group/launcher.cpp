/// @file Reading the variables of Open MPI, MPICH, PMIx, Slurm, torchrun and Kubernetes' operators. The inner launcher wins, unless it
/// would hide ranks of the outer one.
#include "group/launcher.h"

#include "group/slurm_step.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace zero {
namespace {

constexpr const char *kOpenMpi = "Open MPI";
constexpr const char *kKubernetes = "Kubernetes";

/// The worlds of MPI's launchers and of Slurm, inner ones first.
struct Worlds {
  std::vector<World> all;
  std::optional<SlurmStep> step;  ///< the last one, if there is any

  bool only_slurm() const { return step && all.size() == 1; }
};

/// On one node Slurm's PMI, which sets MPICH's variables, has nothing to tell that its own do not: mpirun starts its ranks from a step of
/// one task there.
bool is_slurms_own(const World &hydra, const std::optional<SlurmStep> &step) {
  return step && step->node_count == 1 && hydra.size == step->world.size;
}

Status read_worlds(const Environment &environment, Worlds *out) {
  std::optional<World> open_mpi;
  std::optional<World> hydra;
  ZERO_TRY(read_pair(environment, kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &open_mpi));
  ZERO_TRY(read_pair(environment, "MPICH", "PMI_RANK", "PMI_SIZE", &hydra));
  ZERO_TRY(read_slurm_step(environment, &out->step));
  if (open_mpi) out->all.push_back(*open_mpi);
  if (hydra && !is_slurms_own(*hydra, out->step)) out->all.push_back(*hydra);
  if (out->step) out->all.push_back(out->step->world);
  return {};
}

/// mpirun and torchrun may run in a step of srun with another number of tasks; but a world of one inside a larger one is N programs apart.
Status check_nesting(const std::vector<World> &worlds) {
  for (const World &outer : worlds) {
    const World &inner = worlds.front();
    ZERO_CHECK(
        inner.size > 1 || outer.size == 1, ZERO_E_LAUNCHER,
        "%s started %lld rank (%s) inside the %lld ranks of %s (%s), so each would train alone; use one launcher, or start all ranks "
        "with the inner one",
        inner.launcher, lld(inner.size), inner.size_variable, lld(outer.size), outer.launcher, outer.size_variable);
  }
  return {};
}

/// Short, and another name for every run and port. On one host also for every restart. Agents of several hosts count restarts each for
/// itself, so theirs may differ; there, ranks of a run that was restarted are apart from those of the run before because torchrun's agents
/// end all their ranks before any starts new ones, and because rank 0 listens only until all have met. What an agent that died left behind
/// and still wants to meet may come to the new rank 0: mostly as a rank that is there twice, which is an error on all ranks.
std::string torchrun_meeting_name(const Environment &environment, Launch::Kind kind) {
  if (kind == Launch::Kind::hosts) return name_from(environment, "torchrun", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"});
  return name_from(environment, "torchrun", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"});
}

/// Where ranks of several hosts meet, by two variables: beside the launcher's own port.
Status read_master(const Environment &environment, const char *address_variable, const char *port_variable, Launch *out) {
  const char *address = value_of(environment, address_variable);
  const char *port = value_of(environment, port_variable);
  ZERO_CHECK(address != nullptr && port != nullptr, ZERO_E_LAUNCHER,
             "%s started %lld ranks on several hosts (%s), but %s is not set, so the hosts cannot find each other; start with torchrun or "
             "mpirun",
             out->launcher.c_str(), lld(out->size), out->variable.c_str(), address == nullptr ? address_variable : port_variable);
  out->master = address;
  ZERO_TRY(read_number(port_variable, port, &out->master_port));
  ++out->master_port;
  return {};
}

Launch launch_of(const World &world, Launch::Kind kind) {
  return {.kind = world.size > 1 ? kind : Launch::Kind::single,
          .rank = world.rank,
          .size = world.size,
          .launcher = world.launcher,
          .variable = world.size_variable};
}

Status read_torchrun(const Environment &environment, const World &world, const World &local, Launch *out) {
  ZERO_CHECK(local.size <= world.size, ZERO_E_LAUNCHER, "LOCAL_WORLD_SIZE is %lld but WORLD_SIZE is %lld; start with torchrun or mpirun",
             lld(local.size), lld(world.size));
  const auto kind = local.size < world.size ? Launch::Kind::hosts : Launch::Kind::local;
  *out = launch_of(world, kind);
  out->name = torchrun_meeting_name(environment, kind);
  if (kind == Launch::Kind::hosts) return read_master(environment, "MASTER_ADDR", "MASTER_PORT", out);
  ZERO_CHECK(local.rank == world.rank, ZERO_E_LAUNCHER, "RANK is %lld but LOCAL_RANK is %lld, although all %lld ranks are on this host",
             lld(world.rank), lld(local.rank), lld(world.size));
  ZERO_CHECK(value_of(environment, "TORCHELASTIC_RUN_ID") != nullptr || value_of(environment, "MASTER_PORT") != nullptr, ZERO_E_LAUNCHER,
             "WORLD_SIZE is %lld but neither TORCHELASTIC_RUN_ID nor MASTER_PORT is set, so the ranks have no name to meet by; start with "
             "torchrun or mpirun",
             lld(world.size));
  return {};
}

/// Kubeflow's operators give each pod RANK and WORLD_SIZE, which torchrun in the pod replaces. A pod without torchrun is a rank if one
/// process runs in each; "auto", their default, counts one per pod too.
Status read_pods(const Environment &environment, const World &world, Launch *out) {
  const char *processes = value_of(environment, "PET_NPROC_PER_NODE");
  const bool in_pod = value_of(environment, "KUBERNETES_SERVICE_HOST") != nullptr;
  const bool one = processes != nullptr ? std::strcmp(processes, "1") == 0 || (in_pod && std::strcmp(processes, "auto") == 0) : in_pod;
  ZERO_CHECK(one, ZERO_E_LAUNCHER,
             "WORLD_SIZE is %lld but LOCAL_WORLD_SIZE is not set%s%s, so it is unknown which ranks share this host; start with torchrun or "
             "mpirun, or with PET_NPROC_PER_NODE=1 where each host or pod runs one rank",
             lld(world.size), processes != nullptr ? " and PET_NPROC_PER_NODE is " : "", processes != nullptr ? processes : "");
  *out = launch_of(world, Launch::Kind::hosts);
  out->launcher = kKubernetes;
  // Rank 0's own pod may call its address "localhost".
  out->name = name_from(environment, "pods", {"MASTER_PORT"});
  return read_master(environment, "MASTER_ADDR", "MASTER_PORT", out);
}

/// torchrun's options as variables, which Kubeflow's trainer sets in each pod. They tell of nodes, and of ranks only if torchrun is not to
/// start several on each.
Status read_nodes(const Environment &environment, Launch *out) {
  const char *nodes = value_of(environment, "PET_NNODES");
  if (nodes == nullptr || std::strcmp(nodes, "1") == 0 || std::strcmp(nodes, "1:1") == 0) return {};
  const char *processes = value_of(environment, "PET_NPROC_PER_NODE");
  ZERO_CHECK((processes == nullptr || std::strcmp(processes, "1") == 0) && std::strchr(nodes, ':') == nullptr, ZERO_E_LAUNCHER,
             "PET_NNODES is \"%s\" and PET_NPROC_PER_NODE is \"%s\", so torchrun is to start the ranks of each node, but RANK and "
             "WORLD_SIZE are not set; start with torchrun, or set PET_NPROC_PER_NODE to 1 where each node or pod runs one rank",
             nodes, processes != nullptr ? processes : "");
  std::optional<World> world;
  ZERO_TRY(read_pair(environment, kKubernetes, "PET_NODE_RANK", "PET_NNODES", &world));
  Launch launch = launch_of(*world, Launch::Kind::hosts);
  launch.name = name_from(environment, "pods", {"PET_MASTER_PORT"});
  ZERO_TRY(read_master(environment, "PET_MASTER_ADDR", "PET_MASTER_PORT", &launch));
  *out = launch;
  return {};
}

/// Tasks of a step that nothing but Slurm tells of one another.
Status read_step(const Environment &environment, const SlurmStep &step, Launch *out) {
  *out = launch_of(step.world, step.node_count == 1 ? Launch::Kind::local : Launch::Kind::hosts);
  if (out->kind == Launch::Kind::single) return {};
  ZERO_TRY(slurm_meeting_name(environment, &out->name));
  if (out->kind == Launch::Kind::local) return {};
  out->mpi_as_well = true;
  return slurm_meeting_place(environment, &out->master, &out->master_port);
}

/// PMIx tells MPI how many ranks there are, but no variable.
Status check_pmix(const Environment &environment) {
  const char *rank = value_of(environment, "PMIX_RANK");
  ZERO_CHECK(rank == nullptr || value_of(environment, "PMIX_NAMESPACE") == nullptr, ZERO_E_LAUNCHER,
             "PMIX_RANK is %s, but no variable says how many ranks were started; start them with mpirun or srun, or unset it", rank);
  return {};
}

/// Whether the worlds of MPI's launchers are those of torchrun's agents, and torchrun's ranks the inner ones. Scripts that hand on RANK and
/// WORLD_SIZE do not set torchrun's id. Others that start like torchrun (Ray) set none either: under Slurm they have more ranks than there
/// are tasks. Ranks do not decide: they may be the same by chance, and all ranks must decide alike.
bool torchrun_is_inner(const Environment &environment, const Worlds &worlds, const World &torch) {
  if (worlds.all.empty() || value_of(environment, "LOCAL_WORLD_SIZE") == nullptr) return false;
  if (value_of(environment, "TORCHELASTIC_RUN_ID") != nullptr) return true;
  return worlds.only_slurm() && torch.size > worlds.step->world.size;
}

/// Scripts that set RANK and WORLD_SIZE from mpirun's variables are fine; anything else is two launchers with two worlds.
Status check_same(const World &mpi, const World &torch) {
  ZERO_CHECK(mpi.rank == torch.rank && mpi.size == torch.size, ZERO_E_LAUNCHER,
             "%s says rank %lld of %lld (%s) but RANK and WORLD_SIZE say rank %lld of %lld; use one launcher, and where a script sets RANK "
             "and WORLD_SIZE, set them to that launcher's numbers",
             mpi.launcher, lld(mpi.rank), lld(mpi.size), mpi.size_variable, lld(torch.rank), lld(torch.size));
  return {};
}

Status read_torch_world(const Environment &environment, const World &torch, Launch *out) {
  *out = launch_of(torch, Launch::Kind::single);
  if (torch.size == 1) return {};
  std::optional<World> local;
  ZERO_TRY(read_pair(environment, "torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE", &local));
  return local ? read_torchrun(environment, torch, *local, out) : read_pods(environment, torch, out);
}

Status read_mpi_world(const Environment &environment, const Worlds &worlds, Launch *out) {
  // Where the number of nodes is not told, MPI has to know.
  const bool alone = worlds.only_slurm() && !step_has_pmix(environment) && worlds.step->node_count > 0;
  if (alone) return read_step(environment, *worlds.step, out);
  *out = launch_of(worlds.all.front(), Launch::Kind::mpi);
  return {};
}

const char *process_variable(const char *name) { return std::getenv(name); }

/// 4 of "Open MPI v4.1.4, package: ...", 0 of another MPI.
int64_t open_mpi_release(const std::string &library) {
  int release = 0;
  return std::sscanf(library.c_str(), "Open MPI v%d", &release) == 1 ? release : 0;
}

}  // namespace

Status read_launch(const Environment &environment, Launch *out) {
  Worlds worlds;
  std::optional<World> torch;
  ZERO_TRY(read_worlds(environment, &worlds));
  ZERO_TRY(read_pair(environment, "torchrun", "RANK", "WORLD_SIZE", &torch));
  const bool torch_inner = torch && torchrun_is_inner(environment, worlds, *torch);
  if (torch_inner) worlds.all.insert(worlds.all.begin(), *torch);
  ZERO_TRY(check_nesting(worlds.all));
  if (!worlds.all.empty() && torch) ZERO_TRY(check_same(worlds.all.front(), *torch));
  Launch launch;
  if (torch && (torch_inner || worlds.all.empty())) {
    ZERO_TRY(read_torch_world(environment, *torch, &launch));
  } else if (!worlds.all.empty()) {
    ZERO_TRY(read_mpi_world(environment, worlds, &launch));
  } else {
    ZERO_TRY(check_pmix(environment));
    ZERO_TRY(read_nodes(environment, &launch));
  }
  *out = launch;
  return {};
}

Status read_launch(Launch *out) { return read_launch(process_variable, out); }

Status check_direct_launch(const Environment &environment, const std::string &library) {
  const int64_t release = open_mpi_release(library);
  std::optional<SlurmStep> step;
  ZERO_TRY(read_slurm_step(environment, &step));
  if (release == 0 || !step || step_has_pmix(environment)) return {};
  ZERO_CHECK(
      step->world.size == 1 && release >= 5, ZERO_E_LAUNCHER,
      "Slurm's srun started this process without PMIx, as task %lld of %lld (SLURM_PROCID, SLURM_STEP_NUM_TASKS), and Open MPI would "
      "end it; start with srun --mpi=pmix or with mpirun. Without MPI, zero_group_create_env joins the tasks of one node, and with "
      "ZERO_KEY_NCCL those of several",
      lld(step->world.rank), lld(step->world.size));
  return {};
}

Status check_direct_launch(const std::string &library) { return check_direct_launch(process_variable, library); }

Status check_world(const Environment &environment, int64_t world_size) {
  Worlds worlds;
  ZERO_TRY(read_worlds(environment, &worlds));
  if (worlds.all.empty()) return {};
  for (const World &world : worlds.all) {
    if (world.size == world_size) return {};
  }
  const World &world = worlds.all.front();
  return Status::error(ZERO_E_LAUNCHER,
                       "%s started %lld ranks (%s) but MPI's world has %lld: this MPI does not know that launcher, so every process is a "
                       "world of its own; use the mpirun of the MPI that libzero_mpi.so was built for, or a launcher with its process "
                       "management (srun --mpi=pmix)",
                       world.launcher, lld(world.size), world.size_variable, lld(world_size));
}

Status check_world(int64_t world_size) { return check_world(process_variable, world_size); }

}  // namespace zero
