/// @file Ranks to which a sandbox refuses one system call: they work without it or end with an
/// error, soon, and wait for nothing at full speed. Knows only the public API.
#include "tests/api/trained_values.h"
#include "tests/group/process_ranks.h"
#include "tests/refused_calls.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace zero::test {
namespace {

constexpr int64_t kRefusedCallsTimeoutMs = 60'000;
constexpr int kNoSeccomp = 77;

/// A call, and what the first rank that fails says; nullptr: the ranks train without it.
struct Refusal {
  const char *name;
  std::vector<long> calls;
  const char *error;
};

const std::vector<Refusal> kRefusals = {
    {"getrandom", {SYS_getrandom}, nullptr},
#if defined(SYS_futex_waitv)
    {"futex_waitv", {SYS_futex_waitv}, nullptr},
#endif
#if defined(SYS_poll)
    {"poll", {SYS_poll, SYS_ppoll}, nullptr},
#else
    {"poll", {SYS_ppoll}, nullptr},
#endif
    {"madvise", {SYS_madvise}, nullptr},
    {"eventfd", {SYS_eventfd2}, nullptr},
    {"getrlimit", {SYS_prlimit64}, nullptr},
    {"pidfd_send_signal", {SYS_pidfd_send_signal}, nullptr},
    {"pidfd_open", {SYS_pidfd_open}, "by pidfd_open"},
    {"memfd_create", {SYS_memfd_create}, "cannot make a shared memory file"},
    {"ftruncate", {SYS_ftruncate}, "cannot size a shared memory file"},
    {"socket", {SYS_socket}, "cannot make a socket"},
    {"bind", {SYS_bind}, "cannot bind a local socket"},
    {"listen", {SYS_listen}, "cannot listen on a socket"},
    {"connect", {SYS_connect}, "cannot connect to the rank that leads the meeting"},
    {"accept4", {SYS_accept4}, "cannot accept the others"},
    {"sendmsg", {SYS_sendmsg}, "cannot send the others what it brings"},
    {"recvmsg", {SYS_recvmsg}, "cannot receive what the others bring"},
};

int run_rank(const std::string &name, int64_t rank, int64_t size, int out_fd) {
  zero_config *config = nullptr;
  zero_config_create(&config);
  zero_config_set_i64(config, ZERO_KEY_RENDEZVOUS_MS, 1500);
  zero_config_set_i64(config, ZERO_KEY_DEADLINE_MS, 3000);
  zero_group *group = nullptr;
  std::string text;
  if (zero_group_create_local(name.c_str(), rank, size, config, &group) != ZERO_OK) {
    text = failed_call("zero_group_create_local");
  } else {
    text = trained_values(group);
  }
  zero_group_release(group);
  zero_config_release(config);
  write_text(out_fd, text);
  return text.starts_with("trained ") ? 0 : 1;
}

/// Two groups of two ranks each, to one of which the calls are unknown, to the other forbidden.
ProcessResults run_refused(const Refusal &refusal) {
  const std::string name = std::string("refused.") + std::to_string(::getpid()) + "." + refusal.name;
  const auto run = [&](int64_t process, int out_fd) {
    const int reason = process < 2 ? ENOSYS : EPERM;
    limit_cpu_seconds(1);
    if (!refuse_calls(refusal.calls, reason)) return kNoSeccomp;
    return run_rank(name + std::to_string(reason), process % 2, 2, out_fd);
  };
  return run_process_ranks(4, run, kRefusedCallsTimeoutMs);
}

/// The rank that found out, or its peer, says why.
bool explained(const std::vector<std::string> &texts, const char *error) {
  const auto names = [&](size_t process) { return texts[process].find(error) != std::string::npos; };
  return (names(0) || names(1)) && (names(2) || names(3));
}

TEST(RefusedCalls, RanksOfProcessesFallBackOrFailSoon) {
  for (const Refusal &refusal : kRefusals) {
    const ProcessResults results = run_refused(refusal);
    if (results.exit_codes[0] == kNoSeccomp) GTEST_SKIP() << "this system has no seccomp filters";
    EXPECT_TRUE(results.all_exited_with(refusal.error == nullptr ? 0 : 1)) << refusal.name << "\n" << results.describe();
    EXPECT_TRUE(refusal.error == nullptr || explained(results.texts, refusal.error)) << refusal.name << "\n" << results.describe();
  }
}

}  // namespace
}  // namespace zero::test
