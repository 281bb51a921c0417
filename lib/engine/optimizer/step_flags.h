/// @file StepFlags: the words with which ranks vote on a step, and their sums over ranks. Knows no
/// group; StepFlagsExchange sums them.
#pragma once

#include "kernels/exact_sum.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

class StepFlags {
 public:
  /// The first words. Then come those of the norm, limbs of a kernels::ExactSum, and one for each
  /// parameter, which is 1 if the rank filled its gradient.
  enum Word : size_t { nonfinite, hyper_hash, corrupt, weightless, edited, splits, stops, kFirstWords };

  /// `params`: number of parameters that have a word; 0: ranks do not vote on filled gradients.
  void open(int64_t params);

  int64_t &mine(Word word) { return mine_[word]; }
  int64_t sum(Word word) const { return sums_[word]; }
  /// The words of the norm.
  int64_t *mine_limbs() { return &mine_[kFirstWords]; }
  const int64_t *sum_limbs() const { return &sums_[kFirstWords]; }
  /// By parameter: number of ranks that filled it; empty without words of parameters.
  std::span<const int64_t> filled() const { return std::span(sums_).subspan(kShared); }
  template <class Filled>
  void set_filled(const Filled &filled) {
    for (size_t word = kShared; word < mine_.size(); ++word) mine_[word] = filled(static_cast<int64_t>(word - kShared)) ? 1 : 0;
  }
  /// The sums become this rank's words, if no other rank votes.
  void count_alone() { sums_ = mine_; }

  /// @name Words that are summed, and the places of their sums
  /// @{
  std::span<const int64_t> words(bool with_norm) const;
  std::span<const int64_t> shared_words() const { return std::span(mine_).first(kShared); }
  std::span<int64_t> sums(std::span<const int64_t> words) { return std::span(sums_).first(words.size()); }
  /// @}
  /// The shared sums become this rank's words. They are then summed over ranks that stand for
  /// groups.
  void pass_on();
  /// All sums become this rank's words.
  void pass_all_on() { mine_ = sums_; }

  /// True if all ranks have the same word, a hash: the sum is `ranks` times this rank's word.
  bool alike(Word word, int64_t ranks) const {
    return static_cast<uint64_t>(sums_[word]) == static_cast<uint64_t>(mine_[word]) * static_cast<uint64_t>(ranks);
  }

 private:
  /// Words that a model's other groups have too: all but those of parameters.
  static constexpr size_t kShared = kFirstWords + kernels::ExactSum::kExported;

  std::vector<int64_t> mine_;
  std::vector<int64_t> sums_;
};

}  // namespace zero
