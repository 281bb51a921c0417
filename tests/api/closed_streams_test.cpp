/// @file Programs that were started with standard input, output or error closed: no descriptor of
/// the library takes their place, so that what such a program prints goes nowhere. Ranks are
/// processes of their own, which are forked before any of them uses the library.
#include "api_world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace zero::test {
namespace {

constexpr int kRanks = 2;

/// Bit n of the parameter: the program has closed descriptor n.
class ClosedStreams : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ways, ClosedStreams, testing::Range(1, 8));

/// True if exactly the descriptors that the program closed are closed.
bool streams_are_as_the_program_left_them(int closed) {
  for (int fd = 0; fd < 3; ++fd) {
    const bool is_closed = ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    if (is_closed != ((closed >> fd & 1) != 0)) return false;
  }
  return true;
}

/// A step of SGD with rate 1: weights of 0 lose the mean of the gradients.
bool trains(zero_group *group, int rank) {
  const std::array<float, 4> gradient = {static_cast<float>(rank), static_cast<float>(rank), 1, 2};
  const std::array<float, 4> expected = {-0.5F, -0.5F, -1, -2};
  const int64_t count = 4;
  int64_t id = -1;
  void *values = nullptr;
  zero_config *config = nullptr;
  zero_optimizer *optimizer = nullptr;
  const bool done = zero_config_create(&config) == ZERO_OK && zero_config_set_i64(config, ZERO_KEY_STAGE, 3) == ZERO_OK &&
                    zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd") == ZERO_OK &&
                    zero_config_set_f64(config, ZERO_KEY_LR, 1) == ZERO_OK && zero_optimizer_create(group, config, &optimizer) == ZERO_OK &&
                    zero_optimizer_add_param(optimizer, nullptr, "weight", ZERO_DTYPE_F32, &count, 1, &id) == ZERO_OK &&
                    zero_optimizer_seal(optimizer) == ZERO_OK && zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL) == ZERO_OK &&
                    zero_optimizer_grad_ready(optimizer, id, gradient.data(), 0, count, nullptr) == ZERO_OK &&
                    zero_optimizer_step(optimizer, nullptr, nullptr) == ZERO_OK &&
                    zero_optimizer_param_acquire(optimizer, id, nullptr, 0, nullptr, &values) == ZERO_OK;
  const bool right = done && std::memcmp(values, expected.data(), sizeof expected) == 0;
  if (done) zero_optimizer_param_release(optimizer, id);
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  return right;
}

/// Returns 0, or the number of the check that failed.
int run_rank(int closed, int rank) {
  for (int fd = 0; fd < 3; ++fd) {
    if ((closed >> fd & 1) != 0) ::close(fd);
  }
  const std::string name = "closed_streams." + std::to_string(::getppid()) + "." + std::to_string(closed);
  zero_group *group = nullptr;
  if (zero_group_create_local(name.c_str(), rank, kRanks, nullptr, &group) != ZERO_OK) return 1;
  if (!streams_are_as_the_program_left_them(closed)) return 2;
  // If the output reached memory that ranks share, the step would fail.
  const std::string noise(4096, 'x');
  if ((closed & 2) != 0 && ::write(1, noise.data(), noise.size()) >= 0) return 3;
  if (!trains(group, rank)) return 4;
  if (!streams_are_as_the_program_left_them(closed)) return 5;
  zero_group_release(group);
  return streams_are_as_the_program_left_them(closed) ? 0 : 6;
}

TEST_P(ClosedStreams, AreNotTakenByTheLibrary) {
  std::array<pid_t, kRanks> ranks{};
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks[static_cast<size_t>(rank)] = ::fork();
    if (ranks[static_cast<size_t>(rank)] == 0) ::_exit(run_rank(GetParam(), rank));
  }
  for (const pid_t rank : ranks) {
    int status = -1;
    ASSERT_EQ(::waitpid(rank, &status, 0), rank);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

}  // namespace
}  // namespace zero::test
