/// @file HyperSet: the hyper-parameters of a parameter set by key, and checks of their
/// combinations. Knows no arithmetic of the algorithms.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// True for keys of the outer step of replicas, which are not hyper-parameters of a set.
constexpr bool is_outer_key(int32_t key) { return key == ZERO_KEY_OUTER_LR || key == ZERO_KEY_OUTER_MOMENTUM || key == ZERO_KEY_SYNC_MIX; }

/// True for keys of the code of gradients, which stay as the config of the optimizer says.
constexpr bool is_code_key(int32_t key) { return key == ZERO_KEY_CODE_MOMENTUM || key == ZERO_KEY_CODE_FREEZE; }

class HyperSet {
 public:
  /// Reads the config. `algorithm` nullptr: the caller updates the parameters itself, and may use
  /// every key. Values that the config does not set are those of `base` if it has the same
  /// algorithm, otherwise the algorithm's defaults.
  Status read(const kernels::Algorithm *algorithm, const Config &config, const HyperSet *base);

  Status set(int32_t key, double value);
  Status get(int32_t key, double *out) const;

  /// All values that the algorithm reads, by key.
  std::vector<std::pair<int32_t, double>> all() const;
  /// Sets a value that need not fit the others, which may be set next.
  void put(int32_t key, double value);

  const kernels::Algorithm *algorithm() const { return algorithm_; }
  const kernels::HyperParameters &values() const { return values_; }
  /// One line for the algorithm and one for each value that it reads, in exact form. `number`: the
  /// number of the set.
  std::string text(size_t number) const;

 private:
  Status check_key(int32_t key) const;

  const kernels::Algorithm *algorithm_ = nullptr;
  kernels::HyperParameters values_{};
};

}  // namespace zero
