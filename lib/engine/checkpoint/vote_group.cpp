/// @file Making the group of votes, once and after failures.
#include "engine/checkpoint/vote_group.h"

#include "group/collectives.h"

#include <utility>

namespace zero {

void VoteGroup::ask(Group &whole) {
  if (making_ != nullptr) return;  // by a call that then failed on this rank
  if (!is_usable()) split_from(whole);
}

void VoteGroup::split_from(Group &whole) {
  if (group_ != nullptr) failed_.push_back(std::move(group_));
  making_ = whole.queue()->submit(split(whole, 0, whole.rank(), &made_));
}

Task VoteGroup::open(Group &whole, Caller caller) {
  // A save or load that was in progress when this one was called has failed since.
  if (making_ == nullptr && !is_usable()) split_from(whole);
  if (const std::shared_ptr<Operation> made = std::exchange(making_, nullptr); made != nullptr) {
    OperationEnd end(*whole.queue(), *made);
    ZERO_CO_AWAIT(end);
    ZERO_CO_TRY(made->status());
    group_ = std::move(made_);
  }
  group_->set_caller(caller);
  group_->set_deadline_ms(whole.deadline_ms());
  co_return Status();
}

}  // namespace zero
