/// @file The table of misuse: one row per exported function. A row has good arguments and, for each
/// argument, bad values with the code and text that they must cause. Knows only the public API.
#pragma once

#include "api_world.h"

#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace zero::test {

constexpr int64_t kCount = World::kCount;

/// One bad value of an argument.
struct Bad {
  uint64_t word;
  int32_t code;
  std::string named;  ///< the error text must contain it
  double number = 0;  ///< used instead of word for double arguments
};

/// The outputs of calls, which a failing call must not change. Structs have their right size.
struct Outputs {
  Outputs();
  void reset();

  struct Memory {
    void *pointers[2];
    int64_t integers[4];
    double number;
    float data[World::kCount];
    char text[256];
    zero_key_bounds bounds;
    zero_step_result result;
    zero_memory_stats memory;
    zero_traffic_stats traffic;
    zero_step_stats steps;
    zero_verify_result verification;
    zero_checkpoint_result saved;
    zero_server_result served;
  } memory;
  zero_request *request;  ///< separate, because an _async call may succeed and its request fail
};

/// A config that names a device. No call here gets far enough to use it.
struct DeviceConfig {
  DeviceConfig();
  DeviceConfig(const DeviceConfig &) = delete;
  ~DeviceConfig() { zero_config_release(handle); }
  zero_config *handle = nullptr;
};

struct Bench {
  World world;
  DeviceConfig on_device;
  TwoRanks pair{("libzero-misuse-" + std::to_string(::getpid())).c_str(), 2000};
  Outputs outputs;
  float data[World::kCount] = {};
  int64_t calls = 0;
  int64_t failures = 0;
};

/// A folder without saves. Calls must not change it.
const char *empty_folder();
/// A folder with one save of the bench's optimizer.
const char *saved_folder(Bench &bench);
/// That save. Do not release it.
zero_save *open_save(Bench &bench);

/// A rank of a sealed world of one server (rank 0) and one worker, with kCount elements. Do not
/// release it.
zero_server *server_rank(int64_t rank);

/// Makes bad values of one argument, for each row.
using Arg = std::function<std::vector<Bad>(Bench &)>;

/// One function: runs all its misuses.
struct Row {
  std::string name;
  std::function<void(Bench &)> run;
};
using Rows = std::vector<Row>;

/// @name Arguments
/// @{
Arg config_handle();
Arg optional_config();
Arg group_handle();
Arg buffer_handle();
Arg optimizer_handle();
Arg request_handle();
Arg checkpoint_handle();
Arg save_handle();
Arg server_handle();
/// An address that must not be NULL.
Arg address(const char *argument);
/// A struct whose size is checked; `field` gives its struct_size in the outputs.
Arg result_struct(const char *argument, bool may_be_null = false);
/// The sizes that an init function must reject; `first` is the size of the first version of the
/// struct.
Arg struct_size(uint64_t first);
Arg count(const char *argument);
Arg stream();
/// The dtype of an array; slots have more dtypes.
Arg dtype();
Arg op();
/// Listed values, all ZERO_E_INVALID_ARGUMENT or another code. The error text must contain each
/// number.
Arg values(std::vector<int64_t> bad, int32_t code = ZERO_E_INVALID_ARGUMENT);
/// Listed texts.
Arg texts(std::vector<Bad> bad);
Bad text(const char *value, int32_t code, const char *named);
/// Every value is valid, or the value matters only with another argument's.
Arg anything();
/// @}

/// Sizes a result struct cannot have; used by result_struct through a copy of the good struct.
inline constexpr uint64_t kBadStructSizes[] = {0, 8, 4104, 65, ~uint64_t{0}};

template <class T>
T from_bad(const Bad &bad) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(static_cast<uintptr_t>(bad.word));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(bad.number);
  } else {
    return static_cast<T>(bad.word);
  }
}

/// Makes the call. If an _async call was accepted, waits for its result.
template <class... A>
int32_t call_to_the_end(Bench &bench, int32_t (*function)(A...), const std::tuple<A...> &arguments) {
  bench.outputs.request = nullptr;
  const int32_t status = std::apply(function, arguments);
  if (status != ZERO_OK || bench.outputs.request == nullptr) return status;
  const int32_t outcome = zero_request_wait(bench.outputs.request);
  zero_request_release(bench.outputs.request);
  bench.outputs.request = nullptr;
  return outcome;
}

/// Counts and reports one misuse.
void judge(Bench &bench, const std::string &name, size_t argument, const Bad &bad, int32_t status, const Outputs::Memory &before);

template <size_t I, class... A>
void misuse_argument(Bench &bench, const std::string &name, int32_t (*function)(A...), const std::function<std::tuple<A...>(Bench &)> &good,
                     const Arg &arg) {
  for (const Bad &bad : arg(bench)) {
    bench.outputs.reset();
    std::tuple<A...> arguments = good(bench);
    using T = std::tuple_element_t<I, std::tuple<A...>>;
    std::get<I>(arguments) = from_bad<T>(bad);
    const Outputs::Memory before = bench.outputs.memory;
    judge(bench, name, I, bad, call_to_the_end(bench, function, arguments), before);
  }
}

template <class... A, size_t... I>
void misuse_all(Bench &bench, const std::string &name, int32_t (*function)(A...), const std::function<std::tuple<A...>(Bench &)> &good,
                const std::vector<Arg> &args, std::index_sequence<I...>) {
  ASSERT_EQ(sizeof...(A), args.size()) << name;
  (misuse_argument<I>(bench, name, function, good, args[I]), ...);
}

/// Adds a function. good(bench) gives valid arguments, each of which is then replaced by bad
/// values.
template <class... A>
void add(Rows &rows, const char *name, int32_t (*function)(A...), std::type_identity_t<std::function<std::tuple<A...>(Bench &)>> good,
         std::vector<Arg> args) {
  rows.push_back({name, [=](Bench &bench) { misuse_all(bench, name, function, good, args, std::index_sequence_for<A...>()); }});
}

/// Adds a blocking function and its _async twin, which takes a request as well.
template <class... A>
void add_pair(Rows &rows, const char *name, int32_t (*function)(A...), std::type_identity_t<int32_t (*)(A..., zero_request **)> twin,
              std::type_identity_t<std::function<std::tuple<A...>(Bench &)>> good, std::vector<Arg> args) {
  add(rows, name, function, good, args);
  args.push_back(address("out"));
  rows.push_back({std::string(name) + "_async", [=, twin_name = std::string(name) + "_async"](Bench &bench) {
                    const std::function<std::tuple<A..., zero_request **>(Bench &)> twin_good = [&](Bench &b) {
                      return std::tuple_cat(good(b), std::tuple<zero_request **>(&b.outputs.request));
                    };
                    misuse_all(bench, twin_name, twin, twin_good, args, std::index_sequence_for<A..., zero_request **>());
                  }});
}

void add_config_rows(Rows &rows);
void add_group_rows(Rows &rows);
void add_buffer_rows(Rows &rows);
void add_optimizer_rows(Rows &rows);
void add_training_rows(Rows &rows);
void add_checkpoint_rows(Rows &rows);
void add_save_rows(Rows &rows);
void add_server_rows(Rows &rows);
void add_stats_rows(Rows &rows);
void add_other_rows(Rows &rows);

}  // namespace zero::test
