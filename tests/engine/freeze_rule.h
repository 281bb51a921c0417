/// @file What training by 1-bit Adam must end with: a plain program of the rules in replicas.h, in fp32. Knows whole tensors; no shards,
/// buckets or collectives.
#pragma once

#include "tests/engine/sparse_rule.h"

#include <cstdint>
#include <vector>

namespace zero::test {

/// AdamW whose second moment stays once codes have begun: after code.after steps.
Model freeze_model(const CodedWorld &world, const SparseCode &code);

class FreezeRule {
 public:
  /// As a training of the model begins. `code`: that of freeze_model.
  FreezeRule(const Model &model, const SparseCode &code);

  /// All ranks give the gradients of that step, and the next step is made.
  void step(int64_t gradients);
  /// The next step is skipped.
  void skip();
  /// For the tensors of a set, from the next step on.
  void set_beta1(int64_t set, double beta1) { beta1_[static_cast<size_t>(set)] = beta1; }
  /// From now on codes begin after so many steps, and the second moment goes on until then.
  void begin_after(int64_t steps);

  struct Ends {
    std::vector<float> params, first, second;
  };
  Ends ends() const;
  /// Elements whose gradients were not used in the newest step.
  int64_t still_count() const { return still_count_; }
  /// Updates of the second moment.
  int64_t second_updates() const { return second_updates_; }

 private:
  using Values = SparseRule::Values;
  struct Element {
    float param = 0, first = 0, second = 0;
  };

  size_t set_of(size_t id) const { return id % beta1_.size(); }
  float carried_by(size_t id, size_t k, double factor) const;
  std::vector<bool> still_in(size_t id, bool stays) const;
  void update(Element &element, float gradient, size_t set, bool stays) const;

  const Model model_;
  SparseRule sums_;
  int64_t after_;
  int64_t calls_ = 0;
  int64_t applied_ = 0;
  int64_t second_updates_ = 0;
  int64_t still_count_ = 0;
  std::vector<double> beta1_;                   ///< by set
  std::vector<std::vector<Element>> elements_;  ///< by tensor
};

}  // namespace zero::test
