/// @file ranks: ranks as threads of this process that meet by a name no other run has, or as processes of a launcher.
#include "ranks.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace embedding {
namespace {

int64_t rank_of(const GroupHandle &group) {
  int64_t rank = 0;
  check(zero_group_rank(group.get(), &rank));
  return rank;
}

int64_t size_of(const GroupHandle &group) {
  int64_t size = 0;
  check(zero_group_size(group.get(), &size));
  return size;
}

int64_t all_reduce(zero_group *group, int64_t value, int32_t op) {
  check(zero_group_all_reduce(group, &value, 1, &value, 1, ZERO_DTYPE_I64, op, nullptr));
  return value;
}

/// A model this small needs little memory for what ranks cannot read in place.
ConfigHandle group_config() {
  ConfigHandle config = make_config();
  check(zero_config_set_i64(config.get(), ZERO_KEY_STAGING_BYTES, 16384));
  return config;
}

/// Empty where no launcher started this process.
std::string launcher_variable() {
  char name[64];
  check(zero_group_launcher(name, sizeof name, nullptr));
  return name;
}

GroupHandle join(const Options &options, int64_t number) {
  const ConfigHandle config = group_config();
  const std::string name = "embedding." + std::to_string(getpid());
  zero_group *group = nullptr;
  check(launcher_variable().empty() ? zero_group_create_local(name.c_str(), number, options.ranks, config.get(), &group)
                                    : zero_group_create_env(config.get(), &group));
  return GroupHandle(group);
}

/// What the first rank to fail threw. Others then throw an echo: the group's error, which a failure replaces when it comes later.
class FirstFailure {
 public:
  void keep(std::exception_ptr failure, bool is_echo) {
    const std::lock_guard lock(mutex_);
    if (failure_ && (is_echo || !holds_echo_)) return;
    failure_ = failure;
    holds_echo_ = is_echo;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool holds_echo_ = false;
};

using Train = std::function<void(Rank &)>;

void run_rank(const Options &options, const Data &data, int64_t number, const Train &train, FirstFailure *failure) {
  try {
    Rank rank(options, data, join(options, number));
    const AbortOnThrow guard(rank.group());
    train(rank);
  } catch (const Error &error) {
    failure->keep(std::current_exception(), error.status() == ZERO_E_ABORTED);
  } catch (...) {
    failure->keep(std::current_exception(), false);
  }
}

void run_threads(const Options &options, const Data &data, const Train &train) {
  FirstFailure failure;
  std::vector<std::thread> others;
  for (int64_t number = 1; number < options.ranks; number++) {
    others.emplace_back([&, number] { run_rank(options, data, number, train, &failure); });
  }
  run_rank(options, data, 0, train, &failure);
  for (std::thread &other : others) other.join();
  failure.rethrow();
}

}  // namespace

Rank::Rank(const Options &options, const Data &data, GroupHandle group)
    : Run(options, data, rank_of(group), size_of(group)), group_(std::move(group)) {}

/// Smaller buckets and less gathered ahead than by default, which would be the whole model.
ConfigHandle Rank::sharding() const {
  ConfigHandle config = make_config();
  check(zero_config_set_i64(config.get(), ZERO_KEY_STAGE, options().stage));
  check(zero_config_set_i64(config.get(), ZERO_KEY_BUCKET_BYTES, 65536));
  check(zero_config_set_i64(config.get(), ZERO_KEY_PREFETCH_BYTES, 65536));
  return config;
}

double Rank::mean(double value, int64_t samples) {
  double sums[2] = {samples == 0 ? 0 : value * static_cast<double>(samples), static_cast<double>(samples)};
  check(zero_group_all_reduce(group(), sums, 2, sums, 2, ZERO_DTYPE_F64, ZERO_REDUCE_SUM, nullptr));
  return sums[0] / sums[1];
}

int64_t Rank::sum(int64_t value) { return all_reduce(group(), value, ZERO_REDUCE_SUM); }
int64_t Rank::largest(int64_t value) { return all_reduce(group(), value, ZERO_REDUCE_MAX); }

int run_ranks(int argc, char **argv, const Train &train) {
  try {
    const Program program = {.sharded = true, .launcher = launcher_variable()};
    return run_program(argc, argv, program, [&train](const Options &options, const Data &data) { run_threads(options, data, train); });
  } catch (const Error &failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}

}  // namespace embedding
