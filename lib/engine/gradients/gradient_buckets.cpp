/// @file The library's side of a step's gradients: bucket buffers, micro-steps, and bringing buckets to their reductions in the agreed
/// order.
#include "engine/gradients/gradients.h"

#include "core/default_floats.h"

#include <new>
#include <utility>

namespace zero {
namespace {

/// How long a free buffer is waited for while a reduction is under way. Longer only where the pool must not grow: a rank that brings its
/// gradients in another order may be waiting for this one.
constexpr int64_t kWaitMs = 1000;

}  // namespace

int64_t Gradients::nbytes_of(int64_t index) const {
  return plan_.bucket(index).flat.count() * dtype_nbytes(buckets_[static_cast<size_t>(index)].dtype);
}

void Gradients::clear_gaps(const Bucket &bucket, int64_t index) {
  const int64_t element = dtype_nbytes(bucket.dtype);
  for (const Range &gap : plan_.bucket(index).gaps) {
    kernels_.clear(bucket.data + gap.begin * element, gap.count() * element);
  }
}

Status Gradients::give_back_ended() {
  return reductions_.reap([this](int64_t index) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    if (!pooled() || bucket.data == nullptr) return;
    if (bucket.data != bucket.local) pool_.give_back(bucket.data);
    bucket.data = nullptr;
  });
}

/// Sums of micro-steps that are kept where gradients arrive need no other buffer.
bool Gradients::take_free(Bucket &bucket, int64_t index) {
  if (bucket.data != nullptr) return true;
  if (accumulating_ && !apart(bucket)) {
    bucket.data = bucket.local;
    return true;
  }
  bucket.data = pool_.take(nbytes_of(index));
  if (bucket.data == nullptr) return false;
  clear_gaps(bucket, index);
  return true;
}

/// Waits only for a reduction that is under way: its end does not depend on what this rank does next.
Status Gradients::need_buffer(Bucket &bucket, int64_t index) {
  if (bucket.data != nullptr) return {};
  const Deadline wait = Deadline::after_ms(kWaitMs);
  Pacing pacing;
  for (;;) {
    ZERO_TRY(give_back_ended());
    if (take_free(bucket, index)) return {};
    if (!reductions_.under_way() || (wait.passed() && !pool_.at_limit())) {
      ZERO_TRY(pool_.grow(nbytes_of(index), &bucket.data));
      return {};
    }
    OperationQueue &queue = reductions_.queue();
    const Listening listening(queue.doorbell());
    const Look look = queue.progress(&reductions_.oldest());
    if (!reductions_.oldest().done() && queue.hears(look, listening.bell())) pacing.pause(listening);
  }
}

Task Gradients::await_buffer(Bucket &bucket, int64_t index) {
  for (;;) {
    ZERO_CO_TRY(give_back_ended());
    if (take_free(bucket, index)) co_return Status();
    if (!reductions_.under_way()) co_return pool_.grow(nbytes_of(index), &bucket.data);
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_AWAIT(end);
  }
}

/// Memory for what micro-steps add up to: none where that is the gradient slot itself.
Status Gradients::keep_local_sums() {
  if (local_.data() != nullptr) return {};
  const auto sums_nbytes = [this](int64_t index) {
    const Bucket &bucket = buckets_[static_cast<size_t>(index)];
    const int64_t elements = pooled() || apart(bucket) ? plan_.bucket(index).flat.count() : 0;
    return Arena::view_nbytes(elements * dtype_nbytes(sum_dtype(bucket)));
  };
  int64_t nbytes = 0;
  for (const int64_t index : plan_.order()) nbytes += sums_nbytes(index);
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_ACCUMULATED, nbytes, &local_));
  for (const int64_t index : plan_.order()) {
    if (sums_nbytes(index) > 0) buckets_[static_cast<size_t>(index)].local = local_.take(sums_nbytes(index));
  }
  local_nbytes_.store(local_.nbytes(), std::memory_order_relaxed);
  return {};
}

void Gradients::clear_unwritten(int64_t id) {
  Bucket &bucket = home(id);
  const bool apart = lands(bucket);
  const DType dtype = apart ? sum_dtype(bucket) : bucket.dtype;
  std::byte *memory = apart ? bucket.local : bucket.data;
  holder(id).written.for_each_missing(
      params_[id].count, [&](Range range) { kernels_.clear(within(memory, id, range.begin, dtype), range.count() * dtype_nbytes(dtype)); });
}

/// What landed was added up: the buffer it landed in is free again.
void Gradients::leave_landing(Bucket &bucket) {
  if (kind_ != MicroStep::local || !pooled() || !lands(bucket) || bucket.data == nullptr) return;
  pool_.give_back(bucket.data);
  bucket.data = nullptr;
}

/// 16-bit gradients contribute their weighted mean, which they have room for; the reduction multiplies it by the sum of their weights.
void Gradients::contribute_sums(const Bucket &bucket, int64_t count) const {
  const DefaultFloats floats;
  const int64_t nbytes = count * dtype_nbytes(bucket.dtype);
  const double weight = contribution_weight();
  if (!weighted() || bucket.dtype == DType::f32 || weight == 0) {
    kernels_.convert(bucket.data, bucket.dtype, bucket.local, sum_dtype(bucket), count, nbytes);
    return;
  }
  const void *sums = bucket.local;
  const auto divisor = static_cast<double>(static_cast<float>(weight));
  group_->reducer()->reduce({bucket.data, &sums, 1, count, DType::f32, ReduceOp::sum, divisor, bucket.dtype, nbytes});
}

/// All of a bucket was given in this micro-step: what landed becomes the contribution.
void Gradients::close_bucket(int64_t index) {
  Bucket &bucket = buckets_[static_cast<size_t>(index)];
  if (kind_ == MicroStep::local) return;
  if (lands(bucket)) {
    for (const int64_t id : plan_.bucket(index).params) clear_unwritten(id);
    contribute_sums(bucket, plan_.bucket(index).flat.count());
  }
  if (std::exchange(bucket.unseen, false)) {
    const int64_t count = plan_.bucket(index).flat.count();
    finite_ = kernels_.all_within(bucket.data, bucket.dtype, count, scan_limit(bucket.dtype)) && finite_;
  }
  const bool reduces = !alone_ && (!late() || reducing_);
  if (reduces && next_submitted_ < plan_.order().size() && plan_.order()[next_submitted_] != index) {
    stalled_nbytes_.fetch_add(plan_.bucket(index).flat.count() * dtype_nbytes(bucket.dtype), std::memory_order_relaxed);
  }
}

void Gradients::start_reductions() {
  if (!weighted() || weight_sent_) return;
  const DefaultFloats floats;
  reductions_.submit_weight(contribution_weight());
  weight_sent_ = true;
}

void Gradients::add_weight() {
  const DefaultFloats floats;
  local_weight_ += weight_;
}

Reductions::Goal Gradients::goal() const {
  if (kind_ == MicroStep::reduce) return Reductions::Goal::sum;
  return reduced_micro_steps_ > 0 ? Reductions::Goal::sum_slot : Reductions::Goal::slot;
}

/// Memory for an operation may be short; the next call tries again.
void Gradients::submit_complete() {
  if (alone_ || kind_ == MicroStep::local || (late() && !reducing_)) return;
  try {
    start_reductions();
    for (; next_submitted_ < plan_.order().size(); ++next_submitted_) {
      const int64_t index = plan_.order()[next_submitted_];
      const Bucket &bucket = buckets_[static_cast<size_t>(index)];
      if (bucket.missing > 0) return;
      reductions_.submit(index, {bucket.data, tensors_[static_cast<size_t>(plan_.bucket(index).params.front())].rows}, goal());
    }
  } catch (const std::bad_alloc &) {
    return;
  }
}

/// What was not given counts as zero.
Task Gradients::fill_rest() {
  submit_complete();
  for (const int64_t index : plan_.order()) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    if (bucket.missing == 0) continue;
    if (bucket.data == nullptr) ZERO_CO_AWAIT(await_buffer(bucket, index));
    for (const int64_t id : plan_.bucket(index).params) clear_unwritten(id);
    bucket.missing = 0;
    close_bucket(index);
    submit_complete();
  }
  co_return Status();
}

/// Waits until every bucket is reduced.
Task Gradients::reduce_rest() {
  ZERO_CO_AWAIT(fill_rest());
  if (alone_) co_return Status();
  ZERO_CO_CHECK(next_submitted_ == plan_.order().size(), ZERO_E_OUT_OF_MEMORY, "out of memory for the operations of a step");
  while (reductions_.under_way()) {
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_AWAIT(end);
    ZERO_CO_TRY(give_back_ended());
  }
  co_return Status();
}

Task Gradients::end_micro_step() {
  if (!started_) co_return Status();
  if (kind_ == MicroStep::local || alone_) {
    add_weight();
    co_return Status();
  }
  ZERO_CO_AWAIT(reduce_rest());
  reductions_.end_micro_step();
  for (Tensor &tensor : tensors_) {
    tensor.written.clear();
    unmark_rows(tensor);
  }
  ++reduced_micro_steps_;
  accumulating_ = false;
  local_weight_ = 0;
  co_return Status();
}

Status Gradients::check_between_steps(const char *call) const {
  ZERO_CHECK(!weight_set_, ZERO_E_STATE, "zero_optimizer_set_weight was called for the next step; call %s before it", call);
  return {};
}

Status Gradients::check_micro_step() {
  ZERO_CHECK(acquired_count_ == 0, ZERO_E_STATE,
             "acquired gradients that are not all ready: %lld; give them to zero_optimizer_grad_ready before the next micro-step",
             lld(acquired_count_));
  ZERO_CHECK(!started_ || kind_ != MicroStep::last, ZERO_E_STATE,
             "the last micro-step of the step has begun (gradients were given without zero_optimizer_micro_step, or its kind was "
             "ZERO_MICRO_STEP_LAST); zero_optimizer_step comes next");
  if (started_ || !std::exchange(weight_set_, false)) return {};
  weight_ = 1;
  return Status::error(ZERO_E_STATE,
                       "the weight was set before zero_optimizer_micro_step, which begins the micro-step that it is to be of; it is 1 "
                       "again: call zero_optimizer_micro_step, then set it");
}

Status Gradients::begin_micro_step(MicroStep kind) {
  // A world of one has nothing to reduce.
  if (alone_ && kind == MicroStep::reduce) kind = MicroStep::local;
  if (kind == MicroStep::local) {
    ZERO_TRY(keep_local_sums());
    accumulating_ = true;
    scans_late_ = true;
  }
  if (kind == MicroStep::reduce) ZERO_TRY(reductions_.keep_sums());
  started_ = true;
  open_micro_step(kind);
  return {};
}

void Gradients::open_micro_step(MicroStep kind) {
  kind_ = kind;
  for (Tensor &tensor : tensors_) {
    tensor.ready.clear();
    tensor.acquired = false;
  }
  for (const int64_t index : plan_.order()) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    bucket.missing = 0;
    bucket.acquired = 0;
    for (const int64_t id : plan_.bucket(index).params) {
      bucket.missing += params_[id].count * static_cast<int64_t>(holder(id).names.size());
    }
  }
  next_submitted_ = 0;
  acquired_count_ = 0;
  weight_ = 1;
  weight_set_ = false;
  given_ = false;
  weight_sent_ = false;
}

/// A micro-step of any kind may be the last of its step: local sums are then reduced, and reduced sums divided.
Task Gradients::finish() {
  for (const int64_t index : plan_.order()) {
    for (const int64_t id : plan_.bucket(index).params) unfilled_count_ += params_[id].count - holder(id).filled.count();
  }
  if (kind_ == MicroStep::local) {
    add_weight();
    weight_ = 0;
    kind_ = MicroStep::last;
    for (const int64_t index : plan_.order()) buckets_[static_cast<size_t>(index)].missing = 1;
  }
  if (late()) {
    ZERO_CO_AWAIT(fill_rest());
    scan_late();
    co_return Status();
  }
  ZERO_CO_AWAIT(reduce_rest());
  if (alone_) {
    finish_alone();
    co_return Status();
  }
  if (kind_ != MicroStep::reduce) co_return Status();
  reductions_.end_micro_step();
  next_submitted_ = 0;
  for (const int64_t index : plan_.order()) reductions_.submit(index, {}, Reductions::Goal::finish);
  next_submitted_ = plan_.order().size();
  ZERO_CO_AWAIT(reduce_rest());
  co_return Status();
}

Task Gradients::reduce_late() {
  reducing_ = true;
  co_return co_await reduce_rest();
}

Task Gradients::give_sums(bool whole) {
  if (whole && reductions_.keeps_sharded_sums()) ZERO_CO_AWAIT(reductions_.gather());
  reductions_.keep_sharded_sums(!whole);
  co_return Status();
}

/// Looks at what was not looked at when it came.
void Gradients::scan_late() {
  for (const int64_t index : plan_.order()) look_at(index);
}

void Gradients::look_at(int64_t index) {
  if (!scans_late_ || !scans()) return;
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  const int64_t count = plan_.bucket(index).flat.count();
  finite_ = finite_ && kernels_.all_within(place.at(0), place.dtype, count, scan_limit(place.dtype));
}

/// Divides f32 by the weights, and looks at what was not looked at when it came. 16-bit gradients are their weighted mean already.
void Gradients::finish_alone() {
  const DefaultFloats floats;
  weight_sum_ = contribution_weight();
  const bool divides = weighted() && weight_sum_ > 0 && static_cast<float>(weight_sum_) != 1;
  const auto divisor = static_cast<double>(static_cast<float>(weight_sum_));
  for (const int64_t index : plan_.order()) {
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    if (!divides || place.dtype != DType::f32) {
      look_at(index);
      continue;
    }
    const void *source = place.at(0);
    const bool finite =
        group_->reducer()->reduce({place.at(0), &source, 1, plan_.bucket(index).flat.count(), place.dtype, ReduceOp::sum, divisor});
    finite_ = finite_ && finite;
  }
}

void Gradients::reset() {
  reductions_.end_step();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const SlotPlace &slot = slots_.place(slots_.grad(), static_cast<int64_t>(i));
    buckets_[i].data = pooled() || !slot.kept ? nullptr : slot.at(0);
  }
  for (Tensor &tensor : tensors_) {
    tensor.written.clear();
    tensor.filled.clear();
    unmark_rows(tensor);
  }
  started_ = false;
  accumulating_ = false;
  reduced_micro_steps_ = 0;
  scans_late_ = false;
  reducing_ = false;
  finite_ = true;
  unfilled_count_ = 0;
  local_weight_ = 0;
  weight_sum_ = 0;
  open_micro_step(MicroStep::last);
}

}  // namespace zero
