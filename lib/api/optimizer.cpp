/// @file zero/optimizer.h: building an optimizer, gradients and views. These calls never wait for a
/// task; those that may are in optimizer_steps.cpp.
#include "engine/optimizer/optimizer.h"

#include "api/checks.h"
#include "api/nouns.h"
#include "api/structs.h"
#include "core/choice.h"

using namespace zero;

namespace {

constexpr Choice kRules[] = {
    {ZERO_SYNC_NONE, "ZERO_SYNC_NONE"}, {ZERO_SYNC_AVERAGE, "ZERO_SYNC_AVERAGE"}, {ZERO_SYNC_BROADCAST, "ZERO_SYNC_BROADCAST"}};

}  // namespace

int32_t zero_step_result_init(zero_step_result *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_verify_result_init(zero_verify_result *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_optimizer_create(zero_group *group, const zero_config *config, zero_optimizer **out) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<Group> parent;
    std::shared_ptr<Config> options;
    std::shared_ptr<Optimizer> optimizer;
    ZERO_TRY(api::find(group, "group", &parent));
    ZERO_TRY(api::find_config(config, &options));
    ZERO_TRY(api::check_pointer(out, "out"));
    ZERO_TRY(Optimizer::create(std::move(parent), *options, &optimizer));
    *out = api::make_handle<zero_optimizer>(std::move(optimizer));
    return {};
  });
}

int32_t zero_optimizer_add_param(zero_optimizer *optimizer, const zero_config *config, const char *name, int32_t dtype,
                                 const int64_t *shape, int64_t ndim, int64_t *out_id) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    std::shared_ptr<Config> options;
    if (config != nullptr) ZERO_TRY(api::find(config, "config", &options));
    ZERO_TRY(api::check_pointer(name, "name"));
    ZERO_TRY(api::check_pointer(out_id, "out_id"));
    return object.add_param(options.get(), name, dtype, shape, ndim, out_id);
  });
}

int32_t zero_optimizer_add_set(zero_optimizer *optimizer, const zero_config *config, int64_t *out_set) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    std::shared_ptr<Config> options;
    ZERO_TRY(api::find_config(config, &options));
    ZERO_TRY(api::check_pointer(out_set, "out_set"));
    return object.add_set(*options, out_set);
  });
}

int32_t zero_optimizer_set_model_group(zero_optimizer *optimizer, zero_group *group) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    std::shared_ptr<Group> model;
    ZERO_TRY(api::find(group, "group", &model));
    return object.set_model_group(std::move(model));
  });
}

int32_t zero_optimizer_set_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_elements(ids, count, ZERO_DTYPE_I64, "ids", "count"));
    return object.set_order(ids, count);
  });
}

int32_t zero_optimizer_add_module_buffer(zero_optimizer *optimizer, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim,
                                         int32_t rule, int64_t *out_id) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(name, "name"));
    ZERO_TRY(api::check_dtype(dtype));
    ZERO_TRY(check_choice(kRules, rule, "rule"));
    ZERO_TRY(api::check_pointer(out_id, "out_id"));
    return object.add_module_buffer(name, dtype, shape, ndim, rule, out_id);
  });
}

int32_t zero_optimizer_init_param(zero_optimizer *optimizer, int64_t id, int32_t initialiser, double a, double b, int64_t seed) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) { return object.init_param(id, initialiser, a, b, seed); });
}

int32_t zero_optimizer_module_buffer(zero_optimizer *optimizer, int64_t id, void **out_data, int64_t *out_count) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_data, "out_data"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    return object.module_buffer(id, out_data, out_count);
  });
}

int32_t zero_optimizer_set_gather_order(zero_optimizer *optimizer, const int64_t *ids, int64_t count) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_elements(ids, count, ZERO_DTYPE_I64, "ids", "count"));
    return object.set_gather_order(ids, count);
  });
}

int32_t zero_optimizer_param_release(zero_optimizer *optimizer, int64_t id) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) { return object.param_release(id); });
}

int32_t zero_optimizer_grad_acquire(zero_optimizer *optimizer, int64_t id, void *stream, void **out_data, int64_t *out_accumulate) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    ZERO_TRY(api::check_pointer(out_data, "out_data"));
    ZERO_TRY(api::check_pointer(out_accumulate, "out_accumulate"));
    return object.grad_acquire(id, out_data, out_accumulate, stream);
  });
}

int32_t zero_optimizer_grad_ready(zero_optimizer *optimizer, int64_t id, const void *grad, int64_t offset, int64_t count, void *stream) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    return object.grad_ready(id, grad, offset, count, stream);
  });
}

int32_t zero_optimizer_grad_ready_rows(zero_optimizer *optimizer, int64_t id, const int64_t *rows, const void *values, int64_t count,
                                       void *stream) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    ZERO_TRY(api::check_elements(rows, count, ZERO_DTYPE_I64, "rows", "count"));
    if (count > 0) ZERO_TRY(api::check_pointer(values, "values"));
    return object.grad_ready_rows(id, rows, values, count);
  });
}

int32_t zero_optimizer_grads_ready(zero_optimizer *optimizer, const int64_t *ids, int64_t count, const void *const *grads, void *stream) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(object.check_stream(stream));
    ZERO_TRY(api::check_elements(ids, count, ZERO_DTYPE_I64, "ids", "count"));
    return object.grads_ready(ids, count, grads, stream);
  });
}

int32_t zero_optimizer_set_weight(zero_optimizer *optimizer, double weight) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) { return object.set_weight(weight); });
}

int32_t zero_optimizer_view_count(const zero_optimizer *optimizer, int64_t *out_count) {
  return api::call(optimizer, "optimizer", [&](const Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    return object.view_count(out_count);
  });
}

int32_t zero_optimizer_view(zero_optimizer *optimizer, int64_t index, int32_t slot, int64_t *out_param, int64_t *out_offset,
                            int64_t *out_count, void **out_data) {
  return api::call(optimizer, "optimizer", [&](Optimizer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_param, "out_param"));
    ZERO_TRY(api::check_pointer(out_offset, "out_offset"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    ZERO_TRY(api::check_pointer(out_data, "out_data"));
    View view = {};
    ZERO_TRY(object.view(index, slot, &view));
    *out_param = view.param;
    *out_offset = view.offset;
    *out_count = view.count;
    *out_data = view.data;
    return {};
  });
}

void zero_optimizer_release(zero_optimizer *optimizer) { api::release(optimizer, "optimizer"); }
