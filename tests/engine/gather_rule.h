/// @file What parameters must be that follow their masters by coded differences: a plain program of the rule in replicas.h. Knows whole
/// tensors; no ranks, shards or buckets.
#pragma once

#include "tests/engine/training.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero::test {

/// Tensors of more and of fewer elements than a line has.
Model gather_model(int64_t ranks, int64_t code);
Manner in_stage(int64_t stage);
/// Of a whole tensor; zeros of one that has none. A collective.
std::vector<float> read_masters(Optimizer &optimizer, const Model &model, int64_t id);
/// The parameter as this rank holds it.
std::vector<std::byte> acquired_bytes(Optimizer &optimizer, const Model &model, int64_t id);

/// What a line of differences decodes to.
std::vector<float> decoded_line(const std::vector<float> &line, int64_t code);
/// The largest error of an element of the line, by the bounds of zero_code.
double half_quantum(const std::vector<float> &line, float element, int64_t code);

class GatherRule {
 public:
  /// Parameters as a training of the model begins.
  explicit GatherRule(const Model &model);

  /// `masters`: of all tensors; those of frozen and tied ones do not matter.
  void follow(const std::vector<std::vector<float>> &masters, bool in_full);
  /// As they are stored.
  std::vector<std::byte> stored(int64_t id) const;
  const std::vector<float> &values(int64_t id) const { return values_[static_cast<size_t>(id)]; }
  /// Elements of a tensor, from its beginning, that are coded; those behind them travel in full.
  int64_t coded_count(int64_t id) const { return coded_[static_cast<size_t>(id)]; }

 private:
  void lay_out();

  const Model model_;
  std::vector<std::vector<float>> values_;
  std::vector<int64_t> coded_;
};

}  // namespace zero::test
