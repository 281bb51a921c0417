/// @file StepFlags: the words of all ranks that a step is voted on with, and their sums. Knows no group: who adds them up is another's affair.
#pragma once

#include "kernels/exact_sum.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

class StepFlags {
 public:
  /// Words before those of the norm, which are limbs of a kernels::ExactSum, and those of parameters, which ranks filled.
  enum Word : size_t { nonfinite, hyper_hash, corrupt, weightless, edited, splits, stops, kFirstWords };

  /// `params`: how many have a word; 0: nobody asks who filled them.
  void open(int64_t params);

  int64_t &mine(Word word) { return mine_[word]; }
  int64_t sum(Word word) const { return sums_[word]; }
  /// Of the norm.
  int64_t *mine_limbs() { return &mine_[kFirstWords]; }
  const int64_t *sum_limbs() const { return &sums_[kFirstWords]; }
  /// By parameter: ranks that filled it; empty where nobody asks.
  std::span<const int64_t> filled() const { return std::span(sums_).subspan(kShared); }
  template <class Filled>
  void set_filled(const Filled &filled) {
    for (size_t word = kShared; word < mine_.size(); ++word) mine_[word] = filled(static_cast<int64_t>(word - kShared)) ? 1 : 0;
  }
  /// Of this rank alone, which is the sum where nobody else votes.
  void count_alone() { sums_ = mine_; }

  /// @name What is added up, and where the sums of that go
  /// @{
  std::span<const int64_t> words(bool with_norm) const;
  std::span<const int64_t> shared_words() const { return std::span(mine_).first(kShared); }
  std::span<int64_t> sums(std::span<const int64_t> words) { return std::span(sums_).first(words.size()); }
  /// @}
  /// The shared sums become this rank's words, to be added up among ranks that stand for groups.
  void pass_on();
  /// All sums do.
  void pass_all_on() { mine_ = sums_; }

  /// Every rank has the same word: the sum is as many times this rank's. Of hashes.
  bool alike(Word word, int64_t ranks) const {
    return static_cast<uint64_t>(sums_[word]) == static_cast<uint64_t>(mine_[word]) * static_cast<uint64_t>(ranks);
  }

 private:
  /// What the ranks of a model's other groups have too: all but the words of parameters.
  static constexpr size_t kShared = kFirstWords + kernels::ExactSum::kExported;

  std::vector<int64_t> mine_;
  std::vector<int64_t> sums_;
};

}  // namespace zero
