/// @file Checks phases, and handles errors and lost ranks.
#include "engine/optimizer/call_guard.h"

#include <cstring>

namespace zero {
namespace {

/// Errors that all ranks return alike, or that were found before any other rank took part.
bool leaves_usable(int32_t code) { return code == ZERO_E_STATE || code == ZERO_E_INVALID_ARGUMENT || code == ZERO_E_UNSUPPORTED; }

}  // namespace

/// Returns ZERO_OK, or an error with the reason why the optimizer is unusable.
Status CallGuard::standing() const {
  if (failure_.ok()) return {};
  return Status::error(failure_.code(), "this optimizer has failed before and can only be released: %s", failure_.text());
}

Status CallGuard::check_phase(const char *call, Phase first, Phase last) const {
  ZERO_TRY(standing());
  if (phase_ >= first && phase_ <= last) return {};
  const bool seals = std::strcmp(call, "zero_optimizer_seal") == 0;
  const char *before_seal = seals ? "was called already" : "must come before zero_optimizer_seal";
  const char *missing = "";
  switch (phase_) {
    case Phase::building:
      missing = "comes after zero_optimizer_seal";
      break;
    case Phase::sealed:
      missing = last == Phase::building ? before_seal : "comes after zero_optimizer_begin";
      break;
    case Phase::running:
      missing = last < Phase::running ? before_seal : "comes after zero_optimizer_reduce";
      break;
    case Phase::reduced:
      missing = last < Phase::running ? before_seal : "must wait until zero_optimizer_gather has ended the step";
      break;
  }
  return Status::error(ZERO_E_STATE, "%s %s", call, missing);
}

Status CallGuard::check_idle(const char *call) const {
  ZERO_CHECK(!busy(), ZERO_E_STATE, "%s must wait until the operation under way has ended", call);
  return {};
}

Status CallGuard::check_call(const char *call, Phase first, Phase last) const {
  ZERO_TRY(check_idle(call));
  return check_phase(call, first, last);
}

void CallGuard::lose(const Status &cause) {
  if (!failure_.ok()) return;
  failure_ = cause;
  groups_.fail(cause);
  close_memory();
}

/// Calls that failed for lack of memory or with an invalid argument can be repeated.
Status CallGuard::lasting(Status status) {
  if (status.code() <= ZERO_E_REPLICAS_DIFFER) lose(status);
  return status;
}

Status CallGuard::usable() {
  ZERO_TRY(standing());
  const Status status = group_->look();
  if (!status.ok() && phase_ != Phase::building) lose(status);
  return status;
}

Task CallGuard::run_counted(Task body, Caller caller, Uses uses, Counted queued) {
  const Counted counted(std::move(queued));
  ZERO_CO_TRY(usable());
  groups_.take_deadline();
  Status status;
  try {
    if (uses == Uses::parameters) status = co_await gathers_.end();
    if (uses == Uses::parameters && status.ok() && gradients_.delays()) status = co_await gradients_.settle();
    if (uses == Uses::parameters) groups_.name_caller(caller);
    if (status.ok()) status = co_await body;
  } catch (...) {
    status = exception_status();  // no memory for a task
  }
  if (!status.ok() && !leaves_usable(status.code()) && phase_ != Phase::building) lose(status);
  co_return status;
}

void CallGuard::enter(Phase phase) {
  phase_ = phase;
  if (phase != Phase::building) sealed_.store(true, std::memory_order_release);
}

/// True if ranks were lost: this rank's memory is still intact. Different calls on ranks are a
/// defect of the program, which every call must report.
bool CallGuard::salvages() const { return poisons_group(failure_.code()) && failure_.code() != ZERO_E_MISMATCH; }

Status CallGuard::half_applied(const char *what) const {
  return Status::error(ZERO_E_CORRUPT,
                       "%s was half applied when ranks were lost, so the values on this rank mix those before and after it; create a new "
                       "optimizer and load a save (zero_optimizer_resume); the loss was: %s",
                       what, failure_.text());
}

/// After a loss of ranks only the first phase is checked. The arguments of the call are checked as
/// usual.
Status CallGuard::check_reads(const char *call, Phase first, Phase last) const {
  if (!salvages() || phase_ < first) return check_phase(call, first, last);
  return half_done_ == nullptr ? Status() : half_applied(half_done_);
}

/// A rank must enter its peers' memory before it writes there. If the group fails, a peer may read
/// its own memory unless another rank has entered it.
Status CallGuard::begin_change(bool enters) {
  if (enters) ZERO_TRY(groups_.gather()->transport().enter_memory());
  half_done_ = kStep;
  return {};
}

/// Peers enter during a step, after all ranks have voted, and have left when the step ends.
void CallGuard::end_change() {
  half_done_ = nullptr;
  if (!alone_) entries_ = groups_.gather()->transport().entries();
}

/// Called after the group has failed. A peer that has passed the vote in which this rank failed may
/// have begun to write here. No other peer writes here from now on.
void CallGuard::close_memory() {
  if (alone_ || groups_.gather() == nullptr) return;
  if (groups_.gather()->transport().close_memory() != entries_) half_done_ = kStep;
}

}  // namespace zero
