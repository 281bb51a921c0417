/// @file How costs grow: ranks of this process as threads, 8 to 1,024 with 1,000 tensors, and 4 ranks with 1,000 to 200,000 tensors: seconds
/// to meet, to add the tensors, to seal and for a step, and the most memory that the process has held (VmHWM) once ranks have met, once they
/// have sealed and at the end, each row in a process of its own.
/// usage: growth_benchmark [--ranks=8,64,256] [--tensors=1000]
#include "must.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace zero::bench;
using Clock = std::chrono::steady_clock;

constexpr int64_t kElements = 24;  ///< of a tensor: what grows is not the model
constexpr int64_t kSteps = 3;

struct Times {
  double meet = 0;
  double add = 0;
  double seal = 0;
  double step = 0;
  double met_gib = 0;
  double sealed_gib = 0;
};

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double peak_gib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / (1 << 20);
  }
  return 0;
}

/// The calls of one rank; rank 0 says how long they took between moments when all ranks were ready.
void run_rank(int64_t rank, int64_t size, int64_t tensors, std::barrier<> &all, Times &times) {
  const auto timed = [&](double &seconds, auto &&work) {
    all.arrive_and_wait();
    const auto begin = Clock::now();
    work();
    all.arrive_and_wait();
    if (rank == 0) seconds = since(begin);
  };
  zero_group *group = nullptr;
  zero_optimizer *optimizer = nullptr;
  timed(times.meet, [&] { must(zero_group_create_local("growth", rank, size, nullptr, &group)); });
  if (rank == 0) times.met_gib = peak_gib();
  timed(times.add, [&] {
    must(zero_optimizer_create(group, nullptr, &optimizer));
    for (int64_t i = 0; i < tensors; ++i) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer, nullptr, std::to_string(i).c_str(), ZERO_DTYPE_F32, &kElements, 1, &id));
    }
  });
  timed(times.seal, [&] { must(zero_optimizer_seal(optimizer)); });
  if (rank == 0) times.sealed_gib = peak_gib();
  all.arrive_and_wait();
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  const std::vector<float> grad(kElements, 0.5F);
  timed(times.step, [&] {
    for (int64_t step = 0; step < kSteps; ++step) {
      for (int64_t id = 0; id < tensors; ++id) must(zero_optimizer_grad_ready(optimizer, id, grad.data(), 0, kElements, nullptr));
      must(zero_optimizer_step(optimizer, nullptr, nullptr));
    }
  });
  if (rank == 0) times.step /= kSteps;
  zero_optimizer_release(optimizer);
  zero_group_release(group);
}

void run_world(int64_t size, int64_t tensors) {
  Times times;
  std::barrier<> all(size);
  {
    std::vector<std::jthread> ranks;
    for (int64_t rank = 0; rank < size; ++rank) ranks.emplace_back([&, rank] { run_rank(rank, size, tensors, all, times); });
  }
  std::printf("%8lld %9lld %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", static_cast<long long>(size), static_cast<long long>(tensors),
              times.meet, times.add, times.seal, times.step, times.met_gib, times.sealed_gib, peak_gib());
  std::fflush(stdout);
}

/// In a child, so that its memory is its own, and what fails ends only this row.
void run_row(int64_t size, int64_t tensors) {
  const pid_t child = ::fork();
  if (child < 0) fail("fork", std::strerror(errno));
  if (child == 0) {
    run_world(size, tensors);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::printf("%8lld %9lld failed\n", static_cast<long long>(size), static_cast<long long>(tensors));
}

std::vector<int64_t> list_of(const char *text) {
  std::vector<int64_t> list;
  for (char *end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    list.push_back(std::max(1LL, std::strtoll(text, &end, 10)));
    if (end == text || (*end != ',' && *end != '\0')) fail(text, "is no list of numbers, such as 8,64,256");
  }
  return list;
}

bool take(const char *argument, const char *name, std::vector<int64_t> &out) {
  const size_t length = std::strlen(name);
  if (std::strncmp(argument, name, length) != 0) return false;
  out = list_of(argument + length);
  return true;
}

}  // namespace

int main(int count, char **arguments) {
  std::vector<int64_t> ranks = {8, 16, 32, 64, 128, 256, 384, 512, 768, 1024};
  std::vector<int64_t> tensors = {1000, 2000, 5000, 10'000, 20'000, 50'000, 100'000, 200'000};
  for (int i = 1; i < count; ++i) {
    const bool taken = take(arguments[i], "--ranks=", ranks) || take(arguments[i], "--tensors=", tensors);
    if (!taken) fail(arguments[i], "is no option; give --ranks= or --tensors=");
  }
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  std::printf("%8s %9s %9s %9s %9s %9s %9s %9s %9s\n", "ranks", "tensors", "meet s", "add s", "seal s", "step s", "met GiB",
              "sealed", "peak");
  std::fflush(stdout);
  for (const int64_t size : ranks) {
    run_row(size, 1000);
  }
  for (const int64_t number : tensors) {
    run_row(4, number);
  }
  return 0;
}
