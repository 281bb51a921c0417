/// @file zero/optimizer.h and zero/replicas.h: the calls that may wait for other ranks.
#include "api/optimizer_work.h"
#include "api/structs.h"
#include "core/choice.h"
#include "engine/optimizer/optimizer.h"

#include <zero/replicas.h>

namespace zero::api {

Status find_optimizer(Work &work, const zero_optimizer *handle, void *stream, std::shared_ptr<Optimizer> *out) {
  ZERO_TRY(find(handle, "optimizer", out));
  ZERO_TRY((*out)->check_stream(stream));
  work.queue = (*out)->queue();
  work.owner = *out;
  return {};
}

namespace {

constexpr Choice kMicroSteps[] = {{ZERO_MICRO_STEP_LAST, "ZERO_MICRO_STEP_LAST"},
                                  {ZERO_MICRO_STEP_LOCAL, "ZERO_MICRO_STEP_LOCAL"},
                                  {ZERO_MICRO_STEP_REDUCE, "ZERO_MICRO_STEP_REDUCE"}};

Status describe_seal(Work &work, zero_optimizer *handle) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, nullptr, &optimizer));
  work.queue = optimizer->seal_queue();
  work.task.emplace(optimizer->seal());
  return {};
}

Status describe_begin(Work &work, zero_optimizer *handle, int32_t source) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, nullptr, &optimizer));
  ZERO_TRY(check_choice(kSources, source, "source"));
  work.task.emplace(optimizer->begin(source));
  return {};
}

Status describe_param_acquire(Work &work, zero_optimizer *handle, int64_t id, void *dst, int64_t dst_count, void *stream, void **out_data) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_elements(dst, dst_count, ZERO_DTYPE_F32, "dst", "dst_count"));
  ZERO_TRY(check_pointer(out_data, "out_data"));
  work.task.emplace(optimizer->param_acquire(id, dst, dst_count, out_data, stream));
  return {};
}

using StepTask = Task (Optimizer::*)(zero_step_result *out, void *stream);

Status describe_step(Work &work, zero_optimizer *handle, StepTask step, void *stream, zero_step_result *out) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  if (out == nullptr) {
    work.task.emplace((optimizer.get()->*step)(nullptr, stream));
    return {};
  }
  ZERO_TRY(check_struct(out, "out_result"));
  work.step.struct_size = sizeof work.step;
  work.task.emplace(write_after((optimizer.get()->*step)(&work.step, stream), work.step, out));
  return {};
}

using PartTask = Task (Optimizer::*)(void *stream);

Status describe_part(Work &work, zero_optimizer *handle, PartTask part, void *stream) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  work.task.emplace((optimizer.get()->*part)(stream));
  return {};
}

/// Module buffers are in host memory, so the stream does not matter.
Status describe_sync(Work &work, zero_optimizer *handle, void *stream) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  work.task.emplace(optimizer->sync_module_buffers());
  return {};
}

Status describe_micro_step(Work &work, zero_optimizer *handle, int32_t kind, void *stream) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_choice(kMicroSteps, kind, "kind"));
  work.task.emplace(optimizer->micro_step(kind));
  return {};
}

Status describe_verify(Work &work, zero_optimizer *handle, void *stream, zero_verify_result *out) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_struct(out, "out_result"));
  work.task.emplace(write_after(optimizer->verify(&work.verified, stream), work.verified, out));
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_optimizer_seal(zero_optimizer *optimizer) {
  return api::run_work([&](Work &work) { return api::describe_seal(work, optimizer); });
}

int32_t zero_optimizer_seal_async(zero_optimizer *optimizer, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_seal(work, optimizer); });
}

int32_t zero_optimizer_begin(zero_optimizer *optimizer, int32_t source) {
  return api::run_work([&](Work &work) { return api::describe_begin(work, optimizer, source); });
}

int32_t zero_optimizer_begin_async(zero_optimizer *optimizer, int32_t source, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_begin(work, optimizer, source); });
}

int32_t zero_optimizer_param_acquire(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream, void **out_data) {
  return api::run_work([&](Work &work) { return api::describe_param_acquire(work, optimizer, id, dst, dst_count, stream, out_data); });
}

int32_t zero_optimizer_param_acquire_async(zero_optimizer *optimizer, int64_t id, void *dst, int64_t dst_count, void *stream,
                                           void **out_data, zero_request **out) {
  return api::begin_work(out,
                         [&](Work &work) { return api::describe_param_acquire(work, optimizer, id, dst, dst_count, stream, out_data); });
}

int32_t zero_optimizer_step(zero_optimizer *optimizer, void *stream, zero_step_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::step, stream, out_result); });
}

int32_t zero_optimizer_step_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::step, stream, out_result); });
}

int32_t zero_optimizer_sync(zero_optimizer *optimizer, void *stream, zero_step_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::sync, stream, out_result); });
}

int32_t zero_optimizer_sync_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::sync, stream, out_result); });
}

int32_t zero_optimizer_reduce(zero_optimizer *optimizer, void *stream, zero_step_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::reduce, stream, out_result); });
}

int32_t zero_optimizer_reduce_async(zero_optimizer *optimizer, void *stream, zero_step_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_step(work, optimizer, &Optimizer::reduce, stream, out_result); });
}

int32_t zero_optimizer_micro_step(zero_optimizer *optimizer, int32_t kind, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_micro_step(work, optimizer, kind, stream); });
}

int32_t zero_optimizer_micro_step_async(zero_optimizer *optimizer, int32_t kind, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_micro_step(work, optimizer, kind, stream); });
}

int32_t zero_optimizer_apply(zero_optimizer *optimizer, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_part(work, optimizer, &Optimizer::apply, stream); });
}

int32_t zero_optimizer_apply_async(zero_optimizer *optimizer, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_part(work, optimizer, &Optimizer::apply, stream); });
}

int32_t zero_optimizer_gather(zero_optimizer *optimizer, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_part(work, optimizer, &Optimizer::gather, stream); });
}

int32_t zero_optimizer_gather_async(zero_optimizer *optimizer, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_part(work, optimizer, &Optimizer::gather, stream); });
}

int32_t zero_optimizer_sync_module_buffers(zero_optimizer *optimizer, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_sync(work, optimizer, stream); });
}

int32_t zero_optimizer_sync_module_buffers_async(zero_optimizer *optimizer, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_sync(work, optimizer, stream); });
}

int32_t zero_optimizer_verify(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_verify(work, optimizer, stream, out_result); });
}

int32_t zero_optimizer_verify_async(zero_optimizer *optimizer, void *stream, zero_verify_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_verify(work, optimizer, stream, out_result); });
}
