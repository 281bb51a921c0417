/// @file Hyper-parameters of a parameter set by key, and which of them go together. Knows no arithmetic of the algorithms.
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

/// Of the outer step of replicas: no hyper-parameter of a set.
constexpr bool is_outer_key(int32_t key) { return key == ZERO_KEY_OUTER_LR || key == ZERO_KEY_OUTER_MOMENTUM; }

class HyperSet {
 public:
  /// Reads the config; `algorithm` nullptr stands for the caller's own, which may use every key. What the config does not set comes from
  /// `base` where that has the same algorithm, otherwise from the algorithm's defaults.
  Status read(const kernels::Algorithm *algorithm, const Config &config, const HyperSet *base);

  Status set(int32_t key, double value);
  Status get(int32_t key, double *out) const;

  /// All that the algorithm reads, by key.
  std::vector<std::pair<int32_t, double>> all() const;
  /// A value that set() would take together with the others that are put.
  void put(int32_t key, double value);

  const kernels::Algorithm *algorithm() const { return algorithm_; }
  const kernels::HyperParameters &values() const { return values_; }
  /// A line for the algorithm and one for every value that it reads, exactly. `number`: of the set.
  std::string text(size_t number) const;

 private:
  Status check_key(int32_t key) const;

  const kernels::Algorithm *algorithm_ = nullptr;
  kernels::HyperParameters values_{};
};

}  // namespace zero
