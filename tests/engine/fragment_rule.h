/// @file FragmentRule: what fragments, a delay and a mix make of replicas: a plain program of the equations in replicas.h. Knows whole
/// tensors; no ranks, shards or buckets.
#pragma once

#include "tests/engine/plain_replicas.h"
#include "tests/engine/training.h"

#include <cstdint>
#include <vector>

namespace zero::test {

class FragmentRule {
 public:
  /// The model must outlive it. Its algorithm is sgd without momentum and decay, in fp32.
  explicit FragmentRule(const Model &model);

  void step(int64_t step, const Skip &skip);
  /// As zero_optimizer_sync() brings replicas together.
  void sync();

  /// Of the newest step, or of sync().
  bool synced() const { return synced_; }
  double spread() const { return spread_; }

  const std::vector<float> &values(int64_t replica, int64_t id) const { return tensors_[static_cast<size_t>(id)].values(replica); }
  const std::vector<float> &anchor(int64_t id) const { return anchors_[static_cast<size_t>(id)]; }
  /// -1: the tensor has no elements, or is frozen.
  int64_t fragment(int64_t id) const { return fragments_[static_cast<size_t>(id)]; }

 private:
  using Values = std::vector<float>;
  static constexpr int64_t kAll = -1;

  /// The mean changes of a fragment, and the steps until they are used.
  struct Exchange {
    int64_t fragment = 0;
    int64_t left = 0;
    std::vector<Values> changes;  ///< by tensor
    double spread = 0;
  };

  void cut();
  bool belongs(int64_t id, int64_t fragment) const {
    return this->fragment(id) >= 0 && (fragment == kAll || this->fragment(id) == fragment);
  }
  Exchange exchange(int64_t fragment) const;
  void use(const Exchange &made, double mix);

  const Model &model_;
  std::vector<PlainReplicas> tensors_;
  std::vector<int64_t> fragments_;
  std::vector<Values> anchors_;
  std::vector<Values> moments_;
  Exchange under_way_;
  bool synced_ = false;
  double spread_ = 0;
};

/// Trains with the rule and with an optimizer side by side, then brings both together. The bits are the same after each step.
void follow_fragments(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, const Skip &skip = {});

}  // namespace zero::test
