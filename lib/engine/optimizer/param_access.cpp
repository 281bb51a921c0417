/// @file ParamAccess: whole parameters, read in place in stages 0 to 2, gathered from shards in
/// stage 3, decoded in any stage.
#include "engine/optimizer/param_access.h"

#include <algorithm>
#include <utility>

namespace zero {

Task ParamAccess::acquire(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream) {
  return acquire_counted(acquire_body(id, dst, dst_count, out_data, stream), id, parts_.guard.count_acquire());
}

Task ParamAccess::acquire_counted(Task body, int64_t id, CallGuard::Counted queued) {
  const CallGuard::Counted counted(std::move(queued));
  const Status stands = parts_.guard.usable();
  if (!stands.ok() && !(parts_.guard.salvages() && holds_param(id))) co_return stands;
  parts_.groups.take_deadline();
  Status status;
  try {
    status = co_await body;
  } catch (...) {
    status = exception_status();  // there was no memory for the task
  }
  // A rank that could not take part leaves the others waiting.
  if (!status.ok() && parts_.shards_params() && parts_.guard.phase() == CallGuard::Phase::running && status.code() == ZERO_E_OUT_OF_MEMORY)
    parts_.guard.lose(status);
  co_return parts_.guard.lasting(std::move(status));
}

Task ParamAccess::acquire_body(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream) {
  ZERO_CO_TRY(parts_.guard.check_reads("zero_optimizer_param_acquire", CallGuard::Phase::sealed, CallGuard::Phase::running));
  ZERO_CO_TRY(parts_.registry.params.check_id(id));
  const TraceSpan span(parts_.trace, "param_acquire", Trace::Track::operations, Trace::About::param, id);
  const int64_t count = parts_.registry.params[id].count;
  ZERO_CO_CHECK(dst == nullptr ? dst_count == 0 : dst_count == count, ZERO_E_INVALID_ARGUMENT, "dst_count is %lld, but must be %lld: %s",
                lld(dst_count), lld(dst == nullptr ? 0 : count),
                dst == nullptr ? "dst is NULL" : parts_.registry.params[id].text().c_str());
  bool dst_on_device = false;
  ZERO_CO_TRY(parts_.memory->find(dst, "dst", &dst_on_device));
  // A graph would copy data between host and device when it runs.
  if (dst != nullptr && dst_on_device != parts_.settings.on_device) {
    ZERO_CO_TRY(parts_.memory->check_not_captured("zero_optimizer_param_acquire with a copy between host and device", stream));
  }
  // A graph would keep using memory of the pool, which may be given back.
  if (parts_.state.tensors.coded(id) && !dst_on_device)
    ZERO_CO_TRY(
        parts_.memory->check_not_captured("zero_optimizer_param_acquire of an 8-bit parameter, without dst on the device,", stream));
  ZERO_CO_TRY(parts_.memory->wait_for(stream));
  if (count > 0) {
    const Status arrived = co_await parts_.gathers.arrived(parts_.state.plan.param(parts_.registry.params.holder(id)).bucket);
    if (!arrived.ok() && parts_.guard.salvages()) co_return parts_.guard.half_applied(CallGuard::kStep);
    if (!arrived.ok()) parts_.guard.lose(arrived);
    ZERO_CO_TRY(arrived);
  }
  Access &access = access_[static_cast<size_t>(parts_.registry.params.holder(id))];
  std::byte *data = access.data;
  if (count > 0 && access.count == 0) {
    if (!parts_.state.tensors.buffered(id)) {
      data = parts_.state.tensors.whole_param(id);
    } else if (parts_.guard.phase() == CallGuard::Phase::sealed) {
      ZERO_CO_TRY(parts_.first_values.whole_copy(parts_.registry.params.holder(id), &data));
    } else {
      data = dst_on_device != parts_.settings.on_device ? nullptr : static_cast<std::byte *>(dst);
      ZERO_CO_AWAIT(parts_.gathers.whole(parts_.registry.params.holder(id), &data, &access.pooled));
    }
    access.data = data;
  }
  if (dst != nullptr && dst != data && count > 0) {
    ZERO_CO_TRY(parts_.memory->copy_out(dst, data, count * dtype_nbytes(parts_.registry.params[id].dtype), dst_on_device, stream));
    data = static_cast<std::byte *>(dst);
  }
  if (parts_.settings.on_device) {
    ZERO_CO_TRY(parts_.memory->signal(stream));
    if (std::find(access.streams.begin(), access.streams.end(), stream) == access.streams.end()) access.streams.push_back(stream);
  }
  ++access.count;
  ++parts_.acquired_count;
  ZERO_CO_TRY(parts_.memory->kernels().status());
  *out_data = data;
  co_return Status();
}

/// Earlier work in the user's stream may still use memory of this library. A captured graph
/// ends where its first stream ends, so the work is joined to that stream again.
Status ParamAccess::follow_user(void *stream) const {
  bool captured = false;
  ZERO_TRY(parts_.memory->wait_for(stream));
  ZERO_TRY(parts_.memory->device->captures(parts_.memory->device->stream(), &captured));
  return captured ? parts_.memory->signal(stream) : Status();
}

/// The latest acquire may have used another stream than the acquires still held. Inside a capture
/// only work that belongs to it counts.
Status ParamAccess::follow_one_of_users(void *stream) const {
  bool captured = false;
  bool theirs = false;
  ZERO_TRY(parts_.memory->device->captures(parts_.memory->device->stream(), &captured));
  ZERO_TRY(parts_.memory->device->captures(stream, &theirs));
  return theirs == captured ? follow_user(stream) : Status();
}

Status ParamAccess::release(int64_t id) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_param_release", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_TRY(parts_.registry.params.check_id(id));
  Access &access = access_[static_cast<size_t>(parts_.registry.params.holder(id))];
  ZERO_CHECK(access.count > 0, ZERO_E_STATE, "%s is not acquired; zero_optimizer_param_acquire comes first",
             parts_.registry.params[id].name.c_str());
  for (void *stream : access.streams) {
    const Status followed = access.count == 1 ? follow_user(stream) : follow_one_of_users(stream);
    if (!followed.ok()) parts_.guard.lose(followed);
    ZERO_TRY(followed);
  }
  if (access.count == 1) access.streams.clear();
  --parts_.acquired_count;
  if (--access.count == 0) {
    if (access.pooled) parts_.gathers.give_back(access.data);
    access.pooled = false;
    access.data = nullptr;
  }
  return {};
}

/// True if param_acquire needs no other rank for this parameter. Also true if `id` is no parameter,
/// so that the call reports it.
bool ParamAccess::holds_param(int64_t id) const {
  if (parts_.guard.phase() == CallGuard::Phase::building) return false;
  if (parts_.guard.phase() == CallGuard::Phase::sealed || !parts_.registry.params.check_id(id).ok()) return true;
  const int64_t holder = parts_.registry.params.holder(id);
  return !parts_.state.tensors.sharded(holder) || access_[static_cast<size_t>(holder)].count > 0;
}

}  // namespace zero
