/// @file Splitting the groups of an optimizer, and the settings and errors that they share.
#include "engine/ranks/optimizer_groups.h"

#include "group/collectives.h"

#include <vector>

namespace zero {

Task OptimizerGroups::open(const std::shared_ptr<const Reducer> &reducer, const std::shared_ptr<const Reducer> &on_host,
                           int64_t most_round_nbytes, int64_t replica_ranks) {
  const int64_t replica = whole_->rank() / replica_ranks;
  ZERO_CO_AWAIT(split(*whole_, replica, whole_->rank(), &reduce_, reducer, most_round_nbytes));
  ZERO_CO_AWAIT(split(*whole_, replica, whole_->rank(), &gather_, reducer, most_round_nbytes));
  reduce_->set_caller(Caller::gradients);
  gather_->set_caller(Caller::seal);
  if (replica_ranks < whole_->size()) {
    ZERO_CO_AWAIT(split(*whole_, whole_->rank() % replica_ranks, replica, &across_, on_host, most_round_nbytes));
    name_ranks(replica_ranks);
    // The ranks with the same shard are the first to detect a lost rank of another replica.
    gather_->heed(across_);
    reduce_->heed(across_);
    across_->heed(gather_);
  }
  if (model_parent_ == nullptr) co_return Status();
  ZERO_CO_AWAIT(split(*model_parent_, 0, model_parent_->rank(), &model_, on_host));
  // A rank that waits in one of these groups fails at once if the other group has failed or was
  // aborted.
  model_->heed(gather_);
  gather_->heed(model_);
  reduce_->heed(model_);
  co_return Status();
}

/// Error texts name ranks of the whole group, which callers know.
void OptimizerGroups::name_ranks(int64_t replica_ranks) {
  std::vector<int64_t> within;
  std::vector<int64_t> across;
  for (int64_t rank = 0; rank < whole_->size(); ++rank) {
    if (rank / replica_ranks == whole_->rank() / replica_ranks) within.push_back(rank);
    if (rank % replica_ranks == whole_->rank() % replica_ranks) across.push_back(rank);
  }
  reduce_->name_ranks(within);
  gather_->name_ranks(within);
  across_->name_ranks(across);
}

void OptimizerGroups::close() {
  reduce_.reset();
  gather_.reset();
  across_.reset();
  model_.reset();
}

void OptimizerGroups::take_deadline() {
  for (Group *group : {reduce_.get(), gather_.get(), across_.get()}) {
    if (group != nullptr) group->set_deadline_ms(whole_->deadline_ms());
  }
  if (model_ != nullptr) model_->set_deadline_ms(model_parent_->deadline_ms());
}

void OptimizerGroups::name_caller(Caller caller) {
  for (Group *group : {gather_.get(), model_.get()}) {
    if (group != nullptr) group->set_caller(caller);
  }
}

/// Every rank of both groups already knows ZERO_E_CORRUPT, and every rank of the whole group knows
/// ZERO_E_REPLICAS_DIFFER.
void OptimizerGroups::fail(const Status &cause) {
  if (cause.code() == ZERO_E_CORRUPT) return;
  if (model_ != nullptr) model_->fail(cause);
  if (across_ != nullptr) across_->fail(cause);
  if (cause.code() == ZERO_E_REPLICAS_DIFFER) return;
  for (Group *group : {reduce_.get(), gather_.get()}) {
    if (group != nullptr) group->fail(cause);
  }
}

}  // namespace zero
