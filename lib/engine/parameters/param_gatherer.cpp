/// @file ParamGatherer: gathers of buckets and of tensors.
#include "engine/parameters/param_gatherer.h"

#include "group/collectives.h"

namespace zero {

/// Without a thread that advances them, gathers ahead of the caller or behind a step would only
/// come at another time. Checksums are taken at the end of a step, when the differences must have
/// been added.
Status ParamGatherer::open(const OptimizerGroups &groups, const MemorySource &source, bool one_copy) {
  group_ = groups.gather();
  holders_ = groups.holders();
  copies_ = groups.copies();
  stale_.assign(static_cast<size_t>(layout_.plan().bucket_count()), false);
  one_copy_ = one_copy;
  pool_.open(source);
  const bool overlaps = settings_.overlaps_in(*group_);
  const bool checks = usual_.changes_own() && settings_.monitoring.verify_every > 0;
  const bool trails = (settings_.stage == 1 || settings_.stage == 2) && !one_copy_ && !checks;
  trailing_.open(group_, layout_.plan().bucket_count(), overlaps && trails);
  std::vector<int64_t> nbytes;
  for (int64_t id = 0; id < params_.size(); ++id) {
    nbytes.push_back(tensors_.sharded(id) && !params_[id].tied() ? params_[id].count * dtype_nbytes(params_[id].dtype) : 0);
  }
  const bool ahead = overlaps && settings_.stage == 3;
  prefetch_.open(group_, &pool_, ahead ? layout_.prefetch_nbytes() : 0, std::move(nbytes),
                 [this](int64_t id, std::byte *whole) { return gather_ahead(id, whole); });
  return usual_.open(source);
}

void ParamGatherer::close() {
  prefetch_.stop();
  trailing_.stop();
  group_.reset();
  holders_.reset();
  copies_.reset();
}

bool ParamGatherer::is_among(int64_t bucket, Buckets which) const {
  const Format &format = layout_.format_in(layout_.plan().bucket(bucket));
  const bool whole = is_whole(bucket);
  const bool wanted = which == Buckets::all || (which == Buckets::buffered ? format.coded() || !whole : format.trains);
  return wanted && (whole || copies_ != nullptr);
}

void ParamGatherer::note_write(int64_t id) {
  const int64_t bucket = layout_.plan().param(id).bucket;
  if (bucket >= 0 && copies_ != nullptr) stale_[static_cast<size_t>(bucket)] = true;
}

Task ParamGatherer::refresh() {
  for (int64_t index = 0; copies_ != nullptr && index < layout_.plan().bucket_count(); ++index) {
    if (!stale_[static_cast<size_t>(index)] || is_whole(index)) continue;
    copies_->set_caller(Caller::param_acquire);
    ZERO_CO_AWAIT(gather_bucket(index, Trace::Track::operations, values_));
  }
  co_return Status();
}

Task ParamGatherer::gather(Buckets which) { co_return co_await gather_all(which, values_); }

Task ParamGatherer::gather_all(Buckets which, GatherStrategy &strategy) {
  if (alone()) co_return Status();
  if (one_copy_) co_return co_await barrier(*group_);
  for (int64_t index = 0; index < layout_.plan().bucket_count(); ++index) {
    if (is_among(index, which)) ZERO_CO_AWAIT(gather_bucket(index, Trace::Track::operations, strategy));
  }
  co_return Status();
}

Task ParamGatherer::gather_updated(bool behind, bool in_full) {
  GatherStrategy &strategy = in_full ? in_full_ : usual_;
  if (!behind || !may_trail()) co_return co_await gather_all(Buckets::trained, strategy);
  for (int64_t index = 0; index < layout_.plan().bucket_count(); ++index) {
    if (is_among(index, Buckets::trained)) trailing_.submit(index, gather_bucket(index, Trace::Track::gathers, strategy));
  }
  // Unwatched gathers would make no progress while the caller waits for other ranks elsewhere.
  if (!trailing_.watched()) ZERO_CO_AWAIT(trailing_.drain());
  co_return Status();
}

Task ParamGatherer::gather_bucket(int64_t index, Trace::Track track, GatherStrategy &strategy) {
  const TraceSpan span(trace_, "gather bucket", track, Trace::About::bucket, index);
  if (track == Trace::Track::gathers) group_->set_caller(Caller::gather_behind);
  if (is_whole(index)) co_return co_await strategy.bucket(*group_, index);
  ZERO_CO_AWAIT(strategy.bucket(*copies_, index));
  stale_[static_cast<size_t>(index)] = false;
  co_return Status();
}

/// A parameter that was gathered ahead is copied if it is wanted elsewhere.
Task ParamGatherer::whole(int64_t id, std::byte **data, bool *out_pooled) {
  const int64_t nbytes = params_[id].count * dtype_nbytes(params_[id].dtype);
  std::byte *ahead = nullptr;
  if (tensors_.sharded(id)) ZERO_CO_AWAIT(prefetch_.take(id, &ahead));
  *out_pooled = *data == nullptr;
  if (ahead == nullptr) {
    if (*out_pooled) ZERO_CO_TRY(pool_.take(nbytes, data));
    // Parameters that are whole on this rank are decoded beside gathers in progress; for sharded
    // ones those gathers have ended.
    if (tensors_.sharded(id)) {
      ZERO_CO_AWAIT(refresh());
      holders_->set_caller(Caller::param_acquire);
    }
    ZERO_CO_AWAIT(usual_.tensor(*holders_, id, *data));
  } else if (*out_pooled) {
    *data = ahead;
  } else {
    kernels_.copy(*data, ahead, DType::u8, nbytes);
    pool_.give_back(ahead);
  }
  co_return tensors_.sharded(id) ? prefetch_.run_ahead() : Status();
}

/// Runs on the progress thread, or on a waiting caller's.
Task ParamGatherer::gather_ahead(int64_t id, std::byte *whole) {
  const TraceSpan span(trace_, "gather", Trace::Track::gathers, Trace::About::param, id);
  holders_->set_caller(Caller::gather_ahead);
  co_return co_await usual_.tensor(*holders_, id, whole);
}

Task ParamGatherer::end() {
  ZERO_CO_AWAIT(prefetch_.drop());
  co_return co_await trailing_.drain();
}

}  // namespace zero
