/// @file Reading the variables of Open MPI, MPICH, Slurm and torchrun. The inner launcher wins, unless it would hide ranks of the outer
/// one.
#include "group/launcher.h"

#include "core/hash.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace zero {
namespace {

constexpr const char *kOpenMpi = "Open MPI";
constexpr const char *kSlurm = "Slurm's srun";

/// Rank and size as one launcher gives them.
struct World {
  const char *launcher;
  const char *size_variable;
  int64_t rank;
  int64_t size;
};

/// A variable that is set to something.
const char *value_of(const Environment &environment, const char *variable) {
  const char *value = environment(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Status read_number(const char *variable, const char *value, int64_t *out) {
  const char *end = value + std::strlen(value);
  const auto result = std::from_chars(value, end, *out);
  ZERO_CHECK(result.ec == std::errc() && result.ptr == end && *out >= 0 && *out <= INT32_MAX, ZERO_E_LAUNCHER,
             "the variable %s is \"%s\", not a number from 0 to 2147483647; start the ranks with mpirun, srun or torchrun, or unset it",
             variable, value);
  return {};
}

/// Both variables of a pair, or neither (then out stays empty).
Status read_pair(const Environment &environment, const char *launcher, const char *rank_variable, const char *size_variable,
                 std::optional<World> *out) {
  const char *rank = value_of(environment, rank_variable);
  const char *size = value_of(environment, size_variable);
  if (rank == nullptr && size == nullptr) return {};
  ZERO_CHECK(rank != nullptr && size != nullptr, ZERO_E_LAUNCHER, "%s is set to \"%s\" but %s is not; %s sets both: set or unset both",
             rank != nullptr ? rank_variable : size_variable, rank != nullptr ? rank : size,
             rank != nullptr ? size_variable : rank_variable, launcher);
  World world{launcher, size_variable, 0, 0};
  ZERO_TRY(read_number(rank_variable, rank, &world.rank));
  ZERO_TRY(read_number(size_variable, size, &world.size));
  ZERO_CHECK(world.rank < world.size, ZERO_E_LAUNCHER, "%s is %lld but %s is %lld; ranks run from 0 to size - 1", rank_variable,
             lld(world.rank), size_variable, lld(world.size));
  *out = world;
  return {};
}

/// Slurm sets its variables for a whole allocation too; only inside a job step do they describe this process.
Status read_slurm(const Environment &environment, std::optional<World> *out) {
  if (value_of(environment, "SLURM_STEP_ID") == nullptr && value_of(environment, "SLURM_STEP_NUM_TASKS") == nullptr) return {};
  const char *size = value_of(environment, "SLURM_STEP_NUM_TASKS") != nullptr ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  return read_pair(environment, kSlurm, "SLURM_PROCID", size, out);
}

/// The worlds of MPI's launchers, inner ones first.
Status read_mpi_worlds(const Environment &environment, std::vector<World> *out) {
  std::optional<World> open_mpi;
  std::optional<World> hydra;
  std::optional<World> slurm;
  ZERO_TRY(read_pair(environment, kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &open_mpi));
  ZERO_TRY(read_pair(environment, "MPICH", "PMI_RANK", "PMI_SIZE", &hydra));
  ZERO_TRY(read_slurm(environment, &slurm));
  for (const auto &world : {open_mpi, hydra, slurm}) {
    if (world) out->push_back(*world);
  }
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
std::string meeting_name(const Environment &environment, Launch::Kind kind) {
  std::string values;
  for (const char *variable : {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}) {
    if (kind == Launch::Kind::hosts && std::strcmp(variable, "TORCHELASTIC_RESTART_COUNT") == 0) continue;
    const char *value = value_of(environment, variable);
    values.append(value != nullptr ? value : "").push_back('\0');
  }
  char text[32];
  std::snprintf(text, sizeof text, "torchrun-%016llx", static_cast<unsigned long long>(hash_of_text(values)));
  return text;
}

/// Where ranks of several hosts meet.
Status read_master(const Environment &environment, Launch *out) {
  const char *address = value_of(environment, "MASTER_ADDR");
  const char *port = value_of(environment, "MASTER_PORT");
  ZERO_CHECK(address != nullptr && port != nullptr, ZERO_E_LAUNCHER,
             "torchrun started %lld ranks, %lld of them on this host, but %s is not set, so the hosts cannot find each other; start with "
             "torchrun or mpirun",
             lld(out->size), lld(out->local_size), address == nullptr ? "MASTER_ADDR" : "MASTER_PORT");
  out->master = address;
  return read_number("MASTER_PORT", port, &out->master_port);
}

Status read_torchrun(const Environment &environment, const World &world, Launch *out) {
  std::optional<World> local;
  ZERO_TRY(read_pair(environment, "torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE", &local));
  ZERO_CHECK(
      local.has_value(), ZERO_E_LAUNCHER,
      "WORLD_SIZE is %lld but LOCAL_WORLD_SIZE is not set, so it is unknown which ranks share this host; start with torchrun or mpirun",
      lld(world.size));
  ZERO_CHECK(local->size <= world.size, ZERO_E_LAUNCHER, "LOCAL_WORLD_SIZE is %lld but WORLD_SIZE is %lld; start with torchrun or mpirun",
             lld(local->size), lld(world.size));
  const auto kind = local->size < world.size ? Launch::Kind::hosts : Launch::Kind::local;
  *out = {.kind = kind, .rank = world.rank, .size = world.size, .launcher = world.launcher,
          .variable = world.size_variable, .local_size = local->size};
  out->name = meeting_name(environment, kind);
  if (kind == Launch::Kind::hosts) return read_master(environment, out);
  ZERO_CHECK(local->rank == world.rank, ZERO_E_LAUNCHER, "RANK is %lld but LOCAL_RANK is %lld, although all %lld ranks are on this host",
             lld(world.rank), lld(local->rank), lld(world.size));
  ZERO_CHECK(value_of(environment, "TORCHELASTIC_RUN_ID") != nullptr || value_of(environment, "MASTER_PORT") != nullptr, ZERO_E_LAUNCHER,
             "WORLD_SIZE is %lld but neither TORCHELASTIC_RUN_ID nor MASTER_PORT is set, so the ranks have no name to meet by; start with "
             "torchrun or mpirun",
             lld(world.size));
  return {};
}

/// Whether Slurm's step, if any, is one of torchrun's agents: these two variables are what scripts that hand on RANK and WORLD_SIZE do not
/// set. The numbers do not decide: torchrun may give a rank Slurm's by chance, and all ranks must decide alike.
bool torchrun_is_inner(const Environment &environment, const std::vector<World> &worlds) {
  if (value_of(environment, "TORCHELASTIC_RUN_ID") == nullptr || value_of(environment, "LOCAL_WORLD_SIZE") == nullptr) return false;
  if (worlds.empty() || std::string_view(worlds.back().launcher) != kSlurm) return false;
  // Slurm's own PMI sets MPICH's variables to Slurm's numbers.
  return std::all_of(worlds.begin(), worlds.end(), [&worlds](const World &world) {
    return std::string_view(world.launcher) != kOpenMpi && world.rank == worlds.back().rank && world.size == worlds.back().size;
  });
}

/// Scripts that set RANK and WORLD_SIZE from mpirun's variables are fine; anything else is two launchers with two worlds.
Status check_same(const World &mpi, const World &torch) {
  ZERO_CHECK(mpi.rank == torch.rank && mpi.size == torch.size, ZERO_E_LAUNCHER,
             "%s says rank %lld of %lld (%s) but RANK and WORLD_SIZE say rank %lld of %lld; use one launcher, and where a script sets RANK "
             "and WORLD_SIZE, set them to that launcher's numbers",
             mpi.launcher, lld(mpi.rank), lld(mpi.size), mpi.size_variable, lld(torch.rank), lld(torch.size));
  return {};
}

const char *process_variable(const char *name) { return std::getenv(name); }

}  // namespace

Status read_launch(const Environment &environment, Launch *out) {
  std::vector<World> worlds;
  std::optional<World> torch;
  ZERO_TRY(read_mpi_worlds(environment, &worlds));
  ZERO_TRY(read_pair(environment, "torchrun", "RANK", "WORLD_SIZE", &torch));
  const bool torch_inner = torch && torchrun_is_inner(environment, worlds);
  if (torch_inner) worlds.insert(worlds.begin(), *torch);
  ZERO_TRY(check_nesting(worlds));
  if (!worlds.empty() && torch) ZERO_TRY(check_same(worlds.front(), *torch));
  Launch launch;
  if (!worlds.empty() && !torch_inner) {
    const World &world = worlds.front();
    launch = {.kind = world.size > 1 ? Launch::Kind::mpi : Launch::Kind::single,
              .rank = world.rank,
              .size = world.size,
              .launcher = world.launcher,
              .variable = world.size_variable};
  } else if (torch && torch->size > 1) {
    ZERO_TRY(read_torchrun(environment, *torch, &launch));
  } else if (torch) {
    launch.launcher = torch->launcher;
    launch.variable = torch->size_variable;
  }
  *out = launch;
  return {};
}

Status read_launch(Launch *out) { return read_launch(process_variable, out); }

Status check_world(const Environment &environment, int64_t world_size) {
  std::vector<World> worlds;
  ZERO_TRY(read_mpi_worlds(environment, &worlds));
  if (worlds.empty()) return {};
  for (const World &world : worlds) {
    if (world.size == world_size) return {};
  }
  const World &world = worlds.front();
  return Status::error(ZERO_E_LAUNCHER,
                       "%s started %lld ranks (%s) but MPI's world has %lld: this MPI does not know that launcher, so every process is a "
                       "world of its own; use the mpirun of the MPI that libzero_mpi.so was built for, or a launcher with its process "
                       "management (srun --mpi=pmix)",
                       world.launcher, lld(world.size), world.size_variable, lld(world_size));
}

Status check_world(int64_t world_size) { return check_world(process_variable, world_size); }

}  // namespace zero
