/// @file Seal: from registered tensors to a plan, memory and groups that all ranks agree on.
#include "engine/optimizer.h"

#include "engine/agreement.h"
#include "engine/sealed_text.h"

#include <new>

namespace zero {

Task Optimizer::seal() { return run(seal_body()); }

Task Optimizer::seal_body() {
  ZERO_CO_RETURN_IF_ERROR(check_phase("zero_optimizer_seal", Phase::building, Phase::building));
  const std::string text = sealed_text(settings_, hyper_, params_);
  ZERO_CO_TRY(compare_texts(*group_, text));
  ZERO_CO_TRY(split(*group_, 0, group_->rank(), &reduce_group_));
  ZERO_CO_TRY(split(*group_, 0, group_->rank(), &gather_group_));
  Status made = co_await agree_on(*group_, allocate(), "zero_optimizer_seal");
  if (made.ok()) made = co_await share_memory();
  if (!made.ok()) {
    unseal();
    co_return made;
  }
  phase_ = Phase::sealed;
  sealed_.store(true, std::memory_order_release);
  co_return Status();
}

void Optimizer::make_plan() {
  std::vector<int64_t> counts;
  for (int64_t id = 0; id < params_.size(); ++id) counts.push_back(params_[id].count);
  const Weights weights(settings_.shard_weights);
  plan_ = Plan({counts, params_.order(), settings_.bucket_nbytes / dtype_nbytes(DType::f32), weights, group_->rank()});
}

Status Optimizer::allocate() {
  try {
    make_plan();
    const std::vector<int32_t> states = state_slots(settings_, hyper_.values().momentum);
    ZERO_TRY(slots_.allocate(plan_, settings_.stage, states, alone(), memory_source()));
    ZERO_TRY(gradients_.open(reduce_group_, memory_source()));
    param_pool_.open(memory_source());
    accounting_.add(ZERO_MEMORY_STAGING, reduce_group_->transport().staging_nbytes() + gather_group_->transport().staging_nbytes());
    access_.resize(plan_.params().size());
    if (shards_params()) first_copies_.resize(plan_.params().size());
    make_views();
    make_updates();
    constexpr size_t kVoteWords = 2 + kernels::ExactSum::kExported;
    votes_.resize(kVoteWords);
    vote_sums_.resize(kVoteWords);
    return {};
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "out of memory for the plan of %lld parameters", static_cast<long long>(params_.size()));
  }
}

/// What other ranks read lies in one mapping per group: contributions in the group of reductions, parameters in that of gathers.
Task Optimizer::share_memory() {
  if (alone()) co_return Status();
  std::vector<PeerMemory> peers;
  const std::shared_ptr<Mapping> &contributions = settings_.stage < 2 ? slots_.grad_mapping() : gradients_.pool().mapping();
  ZERO_CO_TRY(reduce_group_->transport().share(contributions, &peers, group_->deadline_ms()));
  ZERO_CO_TRY(gather_group_->transport().share(slots_.param_mapping(), &peers, group_->deadline_ms()));
  co_return Status();
}

void Optimizer::make_views() {
  if (!alone() && settings_.stage > 0) {
    for (const PlannedView &view : plan_.views()) views_.push_back({view.param, view.offset, view.count, nullptr});
    return;
  }
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].count > 0) views_.push_back({id, 0, params_[id].count, nullptr});
  }
}

/// One piece per bucket; pieces that follow one another in every slot become one.
void Optimizer::make_updates() {
  const std::span<const Slot> states = slots_.states();
  for (const PlannedBucket &bucket : plan_.buckets()) {
    const Range range = slots_.grad().whole && (alone() || settings_.stage == 0) ? Range{0, bucket.flat.count()} : bucket.own;
    if (range.empty()) continue;
    kernels::Slots piece{};
    piece.param = slots_.f32(slots_.param(), bucket, range.begin);
    piece.grad = slots_.f32(slots_.grad(), bucket, range.begin);
    for (size_t i = 0; i < states.size(); ++i) piece.state[i] = slots_.f32(states[i], bucket, range.begin);
    piece.count = range.count();
    if (!updates_.empty()) {
      kernels::Slots &last = updates_.back();
      const int64_t distance = round_up(last.count, kLine);
      bool follows = last.param + distance == piece.param && last.grad + distance == piece.grad;
      for (size_t i = 0; i < states.size(); ++i) follows = follows && last.state[i] + distance == piece.state[i];
      if (follows) {
        last.count = distance + piece.count;
        continue;
      }
    }
    updates_.push_back(piece);
  }
}

/// Gives everything back that seal made.
void Optimizer::unseal() {
  gradients_.close();
  if (gather_group_ != nullptr) {
    accounting_.add(ZERO_MEMORY_STAGING, -accounting_.now(ZERO_MEMORY_STAGING));
    if (slots_.param_mapping() != nullptr) gather_group_->transport().unshare(*slots_.param_mapping());
  }
  if (reduce_group_ != nullptr && slots_.grad_mapping() != nullptr) reduce_group_->transport().unshare(*slots_.grad_mapping());
  slots_.release();
  param_pool_.release();
  first_copies_.clear();
  access_.clear();
  views_.clear();
  updates_.clear();
  reduce_group_.reset();
  gather_group_.reset();
}

}  // namespace zero
