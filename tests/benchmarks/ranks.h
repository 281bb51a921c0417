/// @file Ranks of a benchmark: threads of this process, processes of this host, or what a launcher has started.
/// Knows nothing of what the ranks do.
#pragma once

#include "must.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zero::bench {

enum class Launch { threads, processes, launcher };

constexpr const char *launch_name(Launch launch) {
  return launch == Launch::threads ? "threads" : launch == Launch::processes ? "processes" : "ranks of the launcher";
}

namespace ranks {

/// Binds the calling thread, and what it starts, to one core, as mpirun does by default.
inline void bind(int64_t rank) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  int64_t skipped = rank % CPU_COUNT(&usable);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || skipped-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

inline void run_one(const std::string &name, int64_t rank, int64_t size, bool binds, const std::function<void(zero_group *)> &function) {
  if (binds) bind(rank);
  zero_group *group = nullptr;
  must(zero_group_create_local(name.c_str(), rank, size, nullptr, &group));
  function(group);
  zero_group_release(group);
}

inline void run_processes(const std::string &name, int64_t size, bool binds, const std::function<void(zero_group *)> &function) {
  std::fflush(nullptr);
  for (int64_t rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_one(name, rank, size, binds, function);
    std::fflush(nullptr);
    ::_exit(0);
  }
  for (int64_t rank = 0; rank < size; ++rank) {
    int state = 0;
    ::wait(&state);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) fail("a rank", "ended with an error");
  }
}

}  // namespace ranks

/// Runs function(group) on every rank of a group of `size`; with Launch::launcher on this rank of the group that the launcher made. With
/// Launch::processes the calling process must have one thread and have used nothing of the library. `binds`: each rank to one core; a
/// launcher does that itself.
inline void run_ranks(Launch launch, int64_t size, bool binds, const std::function<void(zero_group *)> &function) {
  const std::string name = std::string(program_invocation_short_name) + "." + std::to_string(::getpid()) + "." + std::to_string(size);
  if (launch == Launch::processes) return ranks::run_processes(name, size, binds, function);
  if (launch == Launch::launcher) {
    zero_group *group = nullptr;
    must(zero_group_create_env(nullptr, &group));
    function(group);
    return zero_group_release(group);
  }
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < size; ++rank) threads.emplace_back(ranks::run_one, name, rank, size, binds, function);
}

}  // namespace zero::bench
