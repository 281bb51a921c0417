/// @file A sandbox: system calls that fail at once, every time, as a seccomp filter makes them. Knows nothing of libzero.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero::test {

/// From now on these calls of this process, and of what it starts, fail with errno `reason`. False where there are no such filters.
inline bool refuse_calls(const std::vector<long> &numbers, int reason) {
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long number : numbers) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(reason)));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// A process that repeats a call without end is killed by SIGXCPU, after so many seconds of processor time.
inline void limit_cpu_seconds(rlim_t seconds) {
  const rlimit limit = {seconds, seconds + 1};
  ::setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace zero::test
