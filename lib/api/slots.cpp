/// @file zero/slots.h: slots of tensors, and scalars.
#include "api/checks.h"
#include "api/nouns.h"
#include "api/optimizer_work.h"
#include "engine/optimizer/optimizer.h"

#include <zero/slots.h>

namespace zero::api {
namespace {

Status describe_read(Work &work, zero_optimizer *handle, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count,
                     void *stream) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_elements(data, count, ZERO_DTYPE_F32, "data", "count"));
  work.task.emplace(optimizer->read(id, slot, offset, data, count, stream));
  return {};
}

Status describe_write(Work &work, zero_optimizer *handle, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
                      void *stream) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_elements(data, count, ZERO_DTYPE_F32, "data", "count"));
  work.task.emplace(optimizer->write(id, slot, offset, data, count, stream));
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_optimizer_set_f64(zero_optimizer *optimizer, int64_t set, int32_t key, double value) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) { return object.set_f64(set, key, value); });
}

int32_t zero_optimizer_get_f64(const zero_optimizer *optimizer, int64_t set, int32_t key, double *out) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out, "out"));
    return object.get_f64(set, key, out);
  });
}

int32_t zero_optimizer_set_i64(zero_optimizer *optimizer, int32_t key, int64_t value) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) { return object.set_i64(key, value); });
}

int32_t zero_optimizer_get_i64(const zero_optimizer *optimizer, int32_t key, int64_t *out) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out, "out"));
    return object.get_i64(key, out);
  });
}

int32_t zero_optimizer_slot_count(const zero_optimizer *optimizer, int64_t id, int64_t *out_count) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    return object.slot_count(id, out_count);
  });
}

int32_t zero_optimizer_slot(const zero_optimizer *optimizer, int64_t id, int64_t index, int64_t *out_slot, int64_t *out_dtype,
                            int64_t *out_count) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_slot, "out_slot"));
    ZERO_TRY(api::check_pointer(out_dtype, "out_dtype"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    SlotInfo slot = {};
    ZERO_TRY(object.slot(id, index, &slot));
    *out_slot = slot.number;
    *out_dtype = static_cast<int64_t>(slot.dtype);
    *out_count = slot.count;
    return {};
  });
}

int32_t zero_optimizer_read(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_read(work, optimizer, id, slot, offset, data, count, stream); });
}

int32_t zero_optimizer_read_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count,
                                  void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_read(work, optimizer, id, slot, offset, data, count, stream); });
}

int32_t zero_optimizer_write(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
                             void *stream) {
  return api::run_work([&](Work &work) { return api::describe_write(work, optimizer, id, slot, offset, data, count, stream); });
}

int32_t zero_optimizer_write_async(zero_optimizer *optimizer, int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count,
                                   void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_write(work, optimizer, id, slot, offset, data, count, stream); });
}
