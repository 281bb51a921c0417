/// @file Reads a step of Slurm.
#include "group/slurm_step.h"

#include "core/hash.h"

#include <cstring>

namespace zero {
namespace {

constexpr const char *kNodeList = "SLURM_STEP_NODELIST";
constexpr const char *kHostLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

}  // namespace

Status read_slurm_step(const Environment &environment, std::optional<SlurmStep> *out) {
  if (value_of(environment, "SLURM_STEP_NUM_TASKS") == nullptr) return {};
  std::optional<World> world;
  ZERO_TRY(read_pair(environment, kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &world));
  SlurmStep step{*world};
  const char *nodes = value_of(environment, "SLURM_STEP_NUM_NODES");
  if (nodes != nullptr) ZERO_TRY(read_number("SLURM_STEP_NUM_NODES", nodes, &step.node_count));
  *out = step;
  return {};
}

bool step_has_pmix(const Environment &environment) {
  return value_of(environment, "PMIX_NAMESPACE") != nullptr || value_of(environment, "OMPI_COMM_WORLD_SIZE") != nullptr;
}

Status slurm_meeting_name(const Environment &environment, std::string *out) {
  ZERO_CHECK(value_of(environment, "SLURM_JOB_ID") != nullptr, ZERO_E_LAUNCHER,
             "SLURM_STEP_NUM_TASKS is %s but SLURM_JOB_ID is not set, so the tasks have no name to meet by; start them with srun, and hand "
             "on all of its variables",
             value_of(environment, "SLURM_STEP_NUM_TASKS"));
  *out = name_from(environment, "slurm", {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"});
  return {};
}

Status slurm_meeting_place(const Environment &environment, std::string *out_host, int64_t *out_port) {
  const char *list = value_of(environment, kNodeList);
  ZERO_CHECK(
      list != nullptr, ZERO_E_LAUNCHER,
      "SLURM_STEP_NUM_NODES is %s but %s is not set, so the nodes cannot find each other; start the tasks with srun, and hand on all "
      "of its variables",
      value_of(environment, "SLURM_STEP_NUM_NODES"), kNodeList);
  *out_host = first_of_hosts(list);
  ZERO_CHECK(!out_host->empty(), ZERO_E_LAUNCHER, "%s is \"%s\", which is no list of hosts as Slurm writes it (\"n[1-4],login1\")",
             kNodeList, list);
  // Above the ephemeral ports of most systems. Two steps on one node seldom get the same port; if
  // they do, one gets an error.
  constexpr uint64_t kFirst = 61000;
  constexpr uint64_t kCount = 4000;
  std::string step;
  ZERO_TRY(slurm_meeting_name(environment, &step));
  *out_port = static_cast<int64_t>(kFirst + hash_of_text(step) % kCount);
  return {};
}

std::string first_of_hosts(std::string_view list) {
  std::string host;
  size_t at = 0;
  while (at < list.size() && list[at] != ',') {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const size_t close = list.find(']', at);
    const size_t digits = close == std::string_view::npos ? at : list.find_first_not_of("0123456789", at + 1);
    if (digits <= at + 1 || std::strchr("-,]", list[digits]) == nullptr) return {};
    host += list.substr(at + 1, digits - at - 1);
    at = close + 1;
  }
  return host.find_first_not_of(kHostLetters) == std::string::npos ? host : std::string();
}

}  // namespace zero
