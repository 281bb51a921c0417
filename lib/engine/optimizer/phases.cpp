/// @file The order of an optimizer's calls, and what becomes of it after an error.
#include "engine/optimizer/optimizer.h"

#include <cstring>

namespace zero {
namespace {

/// Codes of errors that every rank meets alike or that were found before any other rank was involved.
bool leaves_usable(int32_t code) { return code == ZERO_E_STATE || code == ZERO_E_INVALID_ARGUMENT || code == ZERO_E_UNSUPPORTED; }

}  // namespace

/// ZERO_OK, or why the optimizer can no longer be used.
Status Optimizer::standing() const {
  if (failure_.ok()) return {};
  return Status::error(failure_.code(), "this optimizer has failed before and can only be released: %s", failure_.text());
}

Status Optimizer::check_phase(const char *call, Phase first, Phase last) const {
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

Status Optimizer::check_idle(const char *call) const {
  ZERO_CHECK(under_way_.load(std::memory_order_acquire) == 0, ZERO_E_STATE, "%s must wait until the operation under way has ended", call);
  return {};
}

Status Optimizer::check_call(const char *call, Phase first, Phase last) const {
  ZERO_TRY(check_idle(call));
  return check_phase(call, first, last);
}

Status Optimizer::check_range(int64_t id, int64_t offset, int64_t count) const {
  ZERO_TRY(params_.check_id(id));
  const int64_t whole = params_[id].count;
  ZERO_CHECK(offset >= 0 && count >= 0 && offset <= whole && count <= whole - offset, ZERO_E_INVALID_ARGUMENT,
             "offset %lld and count %lld are given, but the elements of %s are %lld", lld(offset), lld(count), params_[id].name.c_str(),
             lld(whole));
  return {};
}

void Optimizer::lose(const Status &cause) {
  if (!failure_.ok()) return;
  failure_ = cause;
  groups_.fail(cause);
  close_memory();
}

/// What memory was short for, or an argument was wrong for, can be asked for again.
Status Optimizer::lasting(Status status) {
  if (status.code() <= ZERO_E_REPLICAS_DIFFER) lose(status);
  return status;
}

/// Before seal the device has no stream; the body says that it comes too early.
Task Optimizer::in_order(Task body, void *stream) {
  if (!settings_.on_device || phase_ == Phase::building) co_return co_await body;
  ZERO_CO_TRY(device_->follow(stream));
  Status status = co_await body;
  Status led = device_->lead(stream);
  co_return status.ok() ? led : status;
}

/// Whether the optimizer may go on. Ranks that wait inside it for one whose group has failed are told.
Status Optimizer::usable() {
  ZERO_TRY(standing());
  const Status status = group_->look();
  if (!status.ok() && phase_ != Phase::building) lose(status);
  return status;
}

Task Optimizer::run_counted(Task body, Caller caller, Uses uses, Counted queued) {
  const Counted counted(std::move(queued));
  ZERO_CO_TRY(usable());
  groups_.take_deadline();
  Status status;
  try {
    if (uses == Uses::parameters) status = co_await gathers_.end();
    if (uses == Uses::parameters) groups_.name_caller(caller);
    if (status.ok()) status = co_await body;
  } catch (...) {
    status = exception_status();  // there was no memory for a task
  }
  if (!status.ok() && !leaves_usable(status.code()) && phase_ != Phase::building) lose(status);
  co_return status;
}

}  // namespace zero
