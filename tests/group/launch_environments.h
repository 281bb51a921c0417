/// @file Environments as launchers set them.
#pragma once

#include "group/launcher.h"

#include <map>
#include <string>

namespace zero::launch_test {

using Variables = std::map<std::string, std::string>;

inline Environment from(const Variables &variables) {
  return [&variables](const char *name) -> const char * {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  };
}

inline Variables open_mpi(const char *rank, const char *size) { return {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}}; }
inline Variables hydra(const char *rank, const char *size) { return {{"PMI_RANK", rank}, {"PMI_SIZE", size}}; }
/// A step over four nodes.
inline Variables slurm(const char *rank, const char *size) {
  return {{"SLURM_JOB_ID", "7"},          {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", rank},
          {"SLURM_STEP_NUM_TASKS", size}, {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_STEP_NODELIST", "n[1-4]"}};
}
inline Variables slurm_node(const char *rank, const char *size) {
  Variables variables = slurm(rank, size);
  variables["SLURM_STEP_NUM_NODES"] = "1";
  variables["SLURM_STEP_NODELIST"] = "n2";
  return variables;
}
inline const Variables kPmix = {{"PMIX_NAMESPACE", "slurm.pmix.7.0"}, {"PMIX_RANK", "1"}};
/// As Slurm 22.05 tells its batch script, and its shell of salloc.
inline const Variables kBatchScript = {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "4"},
                                       {"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}, {"SLURM_JOB_NODELIST", "n[1-4]"}};
inline const Variables kAllocShell = {
    {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "4"}, {"SLURM_JOB_NODELIST", "n[1-4]"}};
/// With use_interactive_step the shell is a step of one task.
inline const Variables kAllocStep = {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
inline Variables torchrun(const char *rank, const char *size) {
  return {{"RANK", rank},           {"WORLD_SIZE", size},           {"LOCAL_RANK", rank},     {"LOCAL_WORLD_SIZE", size},
          {"MASTER_ADDR", "node1"}, {"TORCHELASTIC_RUN_ID", "job"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
}
inline Variables operator+(Variables a, const Variables &b) {
  for (const auto &[name, value] : b) a[name] = value;
  return a;
}
inline Variables operator-(Variables a, const char *name) {
  a.erase(name);
  return a;
}
inline Variables on_hosts(const char *rank, const char *size, const char *local_rank, const char *local_size) {
  return torchrun(rank, size) + Variables{{"LOCAL_RANK", local_rank}, {"LOCAL_WORLD_SIZE", local_size}};
}

/// A pod of Kubeflow's PyTorchJob, whose numbers are of pods.
inline Variables pod(const char *rank, const char *size) {
  return {{"RANK", rank},       {"WORLD_SIZE", size},           {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"},
          {"PET_NNODES", size}, {"PET_NPROC_PER_NODE", "auto"}, {"PET_NODE_RANK", rank},         {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}};
}
/// A pod of Kubeflow's trainer: options for torchrun, which is to start the ranks.
inline Variables pet(const char *rank, const char *nodes, const char *processes) {
  return {{"PET_NNODES", nodes},
          {"PET_NODE_RANK", rank},
          {"PET_NPROC_PER_NODE", processes},
          {"PET_MASTER_ADDR", "job-node-0-0"},
          {"PET_MASTER_PORT", "29400"},
          {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}};
}
/// A worker of Ray's TorchTrainer: as torchrun, without its id.
inline Variables ray(const char *rank, const char *size, const char *local_rank, const char *local_size) {
  return on_hosts(rank, size, local_rank, local_size) - "TORCHELASTIC_RUN_ID" - "TORCHELASTIC_RESTART_COUNT" +
         Variables{{"NODE_RANK", "0"}};
}

inline std::string text_of(const Variables &variables) {
  std::string text;
  for (const auto &[name, value] : variables) text += name + "=" + value + " ";
  return text;
}

}  // namespace zero::launch_test
