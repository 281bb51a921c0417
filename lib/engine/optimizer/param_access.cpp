/// @file Whole parameters: where they lie in stages 0 to 2, gathered from shards in stage 3, decoded in any.
#include "engine/optimizer/optimizer.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace zero {

Task Optimizer::param_acquire(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream) {
  return acquire_counted(acquire_body(id, dst, dst_count, out_data, stream), id, guard_.count_acquire());
}

Task Optimizer::acquire_counted(Task body, int64_t id, Counted queued) {
  const Counted counted(std::move(queued));
  const Status stands = guard_.usable();
  if (!stands.ok() && !(guard_.salvages() && holds_param(id))) co_return stands;
  groups_.take_deadline();
  Status status;
  try {
    status = co_await body;
  } catch (...) {
    status = exception_status();  // there was no memory for the task
  }
  // A rank that could not take part leaves the others waiting.
  if (!status.ok() && shards_params() && guard_.phase() == Phase::running && status.code() == ZERO_E_OUT_OF_MEMORY) guard_.lose(status);
  co_return guard_.lasting(std::move(status));
}

Task Optimizer::acquire_body(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream) {
  ZERO_CO_TRY(guard_.check_reads("zero_optimizer_param_acquire", Phase::sealed, Phase::running));
  ZERO_CO_TRY(params_.check_id(id));
  const TraceSpan span(trace_, "param_acquire", Trace::Track::operations, Trace::About::param, id);
  const int64_t count = params_[id].count;
  ZERO_CO_CHECK(dst == nullptr ? dst_count == 0 : dst_count == count, ZERO_E_INVALID_ARGUMENT, "dst_count is %lld, but must be %lld: %s",
                lld(dst_count), lld(dst == nullptr ? 0 : count), dst == nullptr ? "dst is NULL" : params_[id].text().c_str());
  bool dst_on_device = false;
  ZERO_CO_TRY(find_memory(dst, "dst", &dst_on_device));
  // A graph would copy what lies in the memory between host and device when it is run.
  if (dst != nullptr && dst_on_device != settings_.on_device) {
    ZERO_CO_TRY(check_not_captured("zero_optimizer_param_acquire with a copy between host and device", stream));
  }
  // A graph would go on to use memory of the pool, which may be given back.
  if (tensors_.coded(id) && !dst_on_device)
    ZERO_CO_TRY(check_not_captured("zero_optimizer_param_acquire of an 8-bit parameter, without dst on the device,", stream));
  if (settings_.on_device) ZERO_CO_TRY(device_->follow(stream));
  if (count > 0) {
    const Status arrived = co_await gathers_.arrived(plan_.param(params_.holder(id)).bucket);
    if (!arrived.ok() && guard_.salvages()) co_return guard_.half_applied(CallGuard::kStep);
    if (!arrived.ok()) guard_.lose(arrived);
    ZERO_CO_TRY(arrived);
  }
  Access &access = access_[static_cast<size_t>(params_.holder(id))];
  std::byte *data = access.data;
  if (count > 0 && access.count == 0) {
    if (!tensors_.buffered(id)) {
      data = tensors_.whole_param(id);
    } else if (guard_.phase() == Phase::sealed) {
      ZERO_CO_TRY(first_values_.whole_copy(params_.holder(id), &data));
    } else {
      data = dst_on_device != settings_.on_device ? nullptr : static_cast<std::byte *>(dst);
      ZERO_CO_AWAIT(gathers_.whole(params_.holder(id), &data, &access.pooled));
    }
    access.data = data;
  }
  if (dst != nullptr && dst != data && count > 0) {
    ZERO_CO_TRY(copy_param(dst, data, count * dtype_nbytes(params_[id].dtype), dst_on_device, stream));
    data = static_cast<std::byte *>(dst);
  }
  if (settings_.on_device) {
    ZERO_CO_TRY(device_->lead(stream));
    if (std::find(access.streams.begin(), access.streams.end(), stream) == access.streams.end()) access.streams.push_back(stream);
  }
  ++access.count;
  ++acquired_count_;
  ZERO_CO_TRY(kernels_.status());
  *out_data = data;
  co_return Status();
}

Status Optimizer::find_memory(const void *memory, const char *argument, bool *out_on_device) const {
  *out_on_device = false;
  return memory != nullptr && device_ != nullptr ? device_->find(memory, argument, out_on_device) : Status();
}

Status Optimizer::check_host_memory(const void *memory, const char *argument) const {
  bool on_device = false;
  ZERO_TRY(find_memory(memory, argument, &on_device));
  ZERO_CHECK(!on_device, ZERO_E_UNSUPPORTED, "%s is memory of device %lld, but must be memory of the host here", argument,
             lld(device_->index()));
  return {};
}

Status Optimizer::copy_param(void *dst, const std::byte *data, int64_t nbytes, bool dst_on_device, void *stream) {
  if (dst_on_device == settings_.on_device) {
    kernels_.copy(dst, data, DType::u8, nbytes);
    return {};
  }
  if (settings_.on_device) {
    const auto use = [dst](const std::byte *part, int64_t begin, int64_t part_nbytes) {
      std::memcpy(static_cast<std::byte *>(dst) + begin, part, static_cast<size_t>(part_nbytes));
    };
    return device_->fetch(data, nbytes, stream, std::cref(use));
  }
  const auto fill = [&](std::byte *part, int64_t begin, int64_t part_nbytes) { kernels_.copy(part, data + begin, DType::u8, part_nbytes); };
  return device_->store(dst, nbytes, stream, std::cref(fill));
}

/// What a stream was given before may still use memory of ours. A graph that it is captured into ends where its own stream does.
Status Optimizer::follow_user(void *stream) const {
  bool captured = false;
  ZERO_TRY(device_->follow(stream));
  ZERO_TRY(device_->captures(device_->stream(), &captured));
  return captured ? device_->lead(stream) : Status();
}

/// Who acquired the parameter again may have used another stream than who still holds it. Inside a capture only what is part of it counts.
Status Optimizer::follow_one_of_users(void *stream) const {
  bool captured = false;
  bool theirs = false;
  ZERO_TRY(device_->captures(device_->stream(), &captured));
  ZERO_TRY(device_->captures(stream, &theirs));
  return theirs == captured ? follow_user(stream) : Status();
}

Status Optimizer::param_release(int64_t id) {
  ZERO_TRY(guard_.check_call("zero_optimizer_param_release", Phase::sealed, Phase::reduced));
  ZERO_TRY(params_.check_id(id));
  Access &access = access_[static_cast<size_t>(params_.holder(id))];
  ZERO_CHECK(access.count > 0, ZERO_E_STATE, "%s is not acquired; zero_optimizer_param_acquire comes first", params_[id].name.c_str());
  for (void *stream : access.streams) {
    const Status followed = access.count == 1 ? follow_user(stream) : follow_one_of_users(stream);
    if (!followed.ok()) guard_.lose(followed);
    ZERO_TRY(followed);
  }
  if (access.count == 1) access.streams.clear();
  --acquired_count_;
  if (--access.count == 0) {
    if (access.pooled) gathers_.give_back(access.data);
    access.pooled = false;
    access.data = nullptr;
  }
  return {};
}

}  // namespace zero
