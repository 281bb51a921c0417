/// @file Splitting the groups of an optimizer, and the settings and errors that they share.
#include "engine/ranks/optimizer_groups.h"

#include "group/collectives.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace zero {
namespace {

/// Bytes of a round between replicas, which are far from one another. Larger rounds leave a slow
/// link idle between one round and the next.
constexpr int64_t kMostFarRoundNbytes = 256 << 10;

}  // namespace

Task OptimizerGroups::open(const std::shared_ptr<const Reducer> &reducer, const std::shared_ptr<const Reducer> &on_host,
                           int64_t most_round_nbytes, int64_t replica_ranks, int64_t param_ranks, bool exchanges) {
  const int64_t replica = whole_->rank() / replica_ranks;
  ZERO_CO_AWAIT(split(*whole_, replica, whole_->rank(), &reduce_, reducer, most_round_nbytes));
  ZERO_CO_AWAIT(split(*whole_, replica, whole_->rank(), &gather_, reducer, most_round_nbytes));
  reduce_->set_caller(Caller::gradients);
  gather_->set_caller(Caller::seal);
  if (param_ranks > 0) ZERO_CO_AWAIT(split_blocks(reducer, most_round_nbytes, replica_ranks, param_ranks));
  if (replica_ranks < whole_->size()) {
    const int64_t far_nbytes = std::min(most_round_nbytes, kMostFarRoundNbytes);
    ZERO_CO_AWAIT(split(*whole_, whole_->rank() % replica_ranks, replica, &across_, on_host, far_nbytes));
    if (exchanges) ZERO_CO_AWAIT(split(*whole_, whole_->rank() % replica_ranks, replica, &exchange_, on_host, far_nbytes));
    name_ranks(replica_ranks);
    if (exchanges) exchange_->heed(gather_);
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

/// Blocks do not cross replicas, so that a rank of the whole group has one number for its block.
Task OptimizerGroups::split_blocks(const std::shared_ptr<const Reducer> &reducer, int64_t most_round_nbytes, int64_t replica_ranks,
                                   int64_t param_ranks) {
  const auto block_of = [&](int64_t rank) { return rank / param_ranks; };
  const auto twins_of = [&](int64_t rank) { return rank / replica_ranks * param_ranks + rank % param_ranks; };
  const int64_t self = whole_->rank();
  ZERO_CO_AWAIT(split(*whole_, block_of(self), self, &holders_, reducer, most_round_nbytes));
  ZERO_CO_AWAIT(split(*whole_, twins_of(self), self, &copies_, reducer, most_round_nbytes));
  std::vector<int64_t> block;
  std::vector<int64_t> twins;
  for (int64_t rank = 0; rank < whole_->size(); ++rank) {
    if (block_of(rank) == block_of(self)) block.push_back(rank);
    if (twins_of(rank) == twins_of(self)) twins.push_back(rank);
  }
  holders_->name_ranks(block);
  copies_->name_ranks(twins);
  // The other ranks of the replica may be the first to detect a lost rank.
  holders_->heed(gather_);
  copies_->heed(gather_);
  holders_->set_caller(Caller::seal);
  copies_->set_caller(Caller::seal);
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
  if (exchange_ != nullptr) exchange_->name_ranks(across);
}

/// A rank that acquires a parameter meanwhile waits for the ranks of its block only.
Task OptimizerGroups::around_gathers(Task meanwhile, uint64_t what) {
  if (copies_ == nullptr) return around(*gather_, std::move(meanwhile), what);
  return around(*gather_, around(*holders_, std::move(meanwhile), what), what);
}

void OptimizerGroups::close() {
  reduce_.reset();
  gather_.reset();
  holders_.reset();
  copies_.reset();
  across_.reset();
  exchange_.reset();
  model_.reset();
}

void OptimizerGroups::take_deadline() {
  for (Group *group : {reduce_.get(), gather_.get(), holders_.get(), copies_.get(), across_.get(), exchange_.get()}) {
    if (group != nullptr) group->set_deadline_ms(whole_->deadline_ms());
  }
  if (model_ != nullptr) model_->set_deadline_ms(model_parent_->deadline_ms());
}

void OptimizerGroups::name_caller(Caller caller) {
  for (Group *group : {gather_.get(), holders_.get(), copies_.get(), model_.get()}) {
    if (group != nullptr) group->set_caller(caller);
  }
}

/// Every rank of both groups already knows ZERO_E_CORRUPT, and every rank of the whole group knows
/// ZERO_E_REPLICAS_DIFFER.
void OptimizerGroups::fail(const Status &cause) {
  if (cause.code() == ZERO_E_CORRUPT) return;
  if (model_ != nullptr) model_->fail(cause);
  if (across_ != nullptr) across_->fail(cause);
  if (exchange_ != nullptr) exchange_->fail(cause);
  if (cause.code() == ZERO_E_REPLICAS_DIFFER) return;
  for (Group *group : sharing()) {
    if (group != nullptr) group->fail(cause);
  }
}

}  // namespace zero
