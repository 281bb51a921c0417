/// @file The rows of optimizers.
#include "misuse.h"

#include <cmath>

namespace zero::test {
namespace {

Arg id() { return values({-1, 1, INT64_MAX, INT64_MIN}); }
Arg offset() { return values({-1, 5, kCount + 1, INT64_MAX, INT64_MIN}); }
Arg elements() { return values({-1, 7, INT64_MAX, INT64_MIN}); }
Arg slot() {
  return [](Bench &) {
    std::vector<Bad> bad;
    for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{20}, int64_t{99}}) {
      bad.push_back({static_cast<uint64_t>(value), ZERO_E_UNSUPPORTED, std::to_string(value)});
    }
    return bad;
  };
}

void add_building_rows(Rows &rows) {
  add(rows, "zero_step_result_init", zero_step_result_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.result, sizeof(zero_step_result)); }, {address("out"), struct_size(48)});
  add(rows, "zero_optimizer_create", zero_optimizer_create,
      [](Bench &b) {
        return std::tuple<zero_group *, const zero_config *, zero_optimizer **>(
            b.world.group, nullptr, reinterpret_cast<zero_optimizer **>(&b.outputs.memory.pointers[0]));
      },
      {group_handle(), optional_config(), address("out")});
  static const int64_t shape[2] = {2, 3};
  static const int64_t bad_shapes[3][2] = {{2, -1}, {INT64_MAX, 2}, {int64_t{1} << 32, int64_t{1} << 32}};
  static const std::string too_long(256, 'p');
  add(rows, "zero_optimizer_add_param", zero_optimizer_add_param,
      [](Bench &b) {
        return std::tuple<zero_optimizer *, const zero_config *, const char *, int32_t, const int64_t *, int64_t, int64_t *>(
            b.world.building, nullptr, "bias", ZERO_DTYPE_F32, shape, 2, &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(), optional_config(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "NULL"},
                                 {reinterpret_cast<uintptr_t>(""), ZERO_E_INVALID_ARGUMENT, ""},
                                 {reinterpret_cast<uintptr_t>("weight"), ZERO_E_INVALID_ARGUMENT, "weight"},
                                 {reinterpret_cast<uintptr_t>(too_long.c_str()), ZERO_E_INVALID_ARGUMENT, "255"},
                                 {reinterpret_cast<uintptr_t>("caf\xe9.weight"), ZERO_E_INVALID_ARGUMENT, "is not UTF-8: byte 3 is 0xe9"}};
       },
       [](Bench &) {
         return std::vector<Bad>{
             {ZERO_DTYPE_F64, ZERO_E_UNSUPPORTED, "f64"}, {99, ZERO_E_INVALID_ARGUMENT, "99"}, {0, ZERO_E_INVALID_ARGUMENT, "0"}};
       },
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "shape"},
                                 {reinterpret_cast<uintptr_t>(bad_shapes[0]), ZERO_E_INVALID_ARGUMENT, "-1"},
                                 {reinterpret_cast<uintptr_t>(bad_shapes[1]), ZERO_E_INVALID_ARGUMENT, ""},
                                 {reinterpret_cast<uintptr_t>(bad_shapes[2]), ZERO_E_INVALID_ARGUMENT, ""}};
       },
       values({-1, 17, INT64_MAX, INT64_MIN}), address("out_id")});
  static const int64_t order[1] = {0};
  static const int64_t bad_order[1] = {7};
  add(rows, "zero_optimizer_set_order", zero_optimizer_set_order,
      [](Bench &b) { return std::tuple<zero_optimizer *, const int64_t *, int64_t>(b.world.building, order, 1); },
      {optimizer_handle(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "ids is NULL"},
                                 {reinterpret_cast<uintptr_t>(bad_order), ZERO_E_INVALID_ARGUMENT, "7"}};
       },
       values({-1, 0, INT64_MAX, INT64_MIN})});
  add_pair(rows, "zero_optimizer_seal", zero_optimizer_seal, zero_optimizer_seal_async,
           [](Bench &b) { return std::tuple(b.world.building); }, {optimizer_handle()});
  add_pair(rows, "zero_optimizer_begin", zero_optimizer_begin, zero_optimizer_begin_async,
           [](Bench &b) { return std::tuple(b.world.running, int32_t{ZERO_SOURCE_LOCAL}); },
           {optimizer_handle(), values({-1, 3, INT32_MAX, INT32_MIN})});
}

void add_value_rows(Rows &rows) {
  add_pair(rows, "zero_optimizer_param_acquire", zero_optimizer_param_acquire, zero_optimizer_param_acquire_async,
           [](Bench &b) {
             return std::tuple<zero_optimizer *, int64_t, void *, int64_t, void *, void **>(b.world.running, 0, b.outputs.memory.data,
                                                                                            kCount, nullptr, &b.outputs.memory.pointers[0]);
           },
           {optimizer_handle(), id(), address("dst"), values({-1, 0, 7, 9, INT64_MAX, INT64_MIN}), stream(), address("out_data")});
  add(rows, "zero_optimizer_param_release", zero_optimizer_param_release, [](Bench &b) { return std::tuple(b.world.running, int64_t{0}); },
      {optimizer_handle(), id()});
  add(rows, "zero_optimizer_grad_acquire", zero_optimizer_grad_acquire,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<zero_optimizer *, int64_t, void *, void **, int64_t *>(b.world.running, 0, nullptr, &out.pointers[0],
                                                                                 &out.integers[0]);
      },
      {optimizer_handle(), id(), stream(), address("out_data"), address("out_accumulate")});
  add(rows, "zero_optimizer_grad_ready", zero_optimizer_grad_ready,
      [](Bench &b) {
        return std::tuple<zero_optimizer *, int64_t, const void *, int64_t, int64_t, void *>(b.world.running, 0, b.data, 2, 4, nullptr);
      },
      {optimizer_handle(), id(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_STATE, "acquire"}};
       },
       offset(), elements(), stream()});
  // The bench's parameter is not given by rows, so that a call with good arguments is refused too.
  static const int64_t row[1] = {0};
  add(rows, "zero_optimizer_grad_ready_rows", zero_optimizer_grad_ready_rows,
      [](Bench &b) {
        return std::tuple<zero_optimizer *, int64_t, const int64_t *, const void *, int64_t, void *>(b.world.running, 0, row, b.data, 1,
                                                                                                     nullptr);
      },
      {optimizer_handle(), id(), address("rows"), address("values"), values({-1, INT64_MAX, INT64_MIN}), stream()});
  static const int64_t first_and_only[1] = {0};
  static const int64_t unknown[2] = {1, 0};
  static const void *const not_acquired[1] = {nullptr};
  add(rows, "zero_optimizer_grads_ready", zero_optimizer_grads_ready,
      [](Bench &b) {
        static const void *grads[1];
        grads[0] = b.data;
        return std::tuple<zero_optimizer *, const int64_t *, int64_t, const void *const *, void *>(b.world.running, first_and_only, 1,
                                                                                                   grads, nullptr);
      },
      {optimizer_handle(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "ids is NULL"},
                                 {reinterpret_cast<uintptr_t>(unknown), ZERO_E_INVALID_ARGUMENT, "ids[0] is 1"}};
       },
       values({-1, INT64_MAX, INT64_MIN}),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_STATE, "acquire"}, {reinterpret_cast<uintptr_t>(not_acquired), ZERO_E_STATE, "acquire"}};
       },
       stream()});
  add(rows, "zero_optimizer_view_count", zero_optimizer_view_count,
      [](Bench &b) { return std::tuple<const zero_optimizer *, int64_t *>(b.world.running, &b.outputs.memory.integers[0]); },
      {optimizer_handle(), address("out_count")});
  add(rows, "zero_optimizer_view", zero_optimizer_view,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<zero_optimizer *, int64_t, int32_t, int64_t *, int64_t *, int64_t *, void **>(
            b.world.running, 0, ZERO_SLOT_PARAM, &out.integers[0], &out.integers[1], &out.integers[2], &out.pointers[0]);
      },
      {optimizer_handle(), values({-1, 1, INT64_MAX, INT64_MIN}), slot(), address("out_param"), address("out_offset"), address("out_count"),
       address("out_data")});
  add_pair(rows, "zero_optimizer_read", zero_optimizer_read, zero_optimizer_read_async,
           [](Bench &b) {
             return std::tuple<zero_optimizer *, int64_t, int32_t, int64_t, void *, int64_t, void *>(b.world.running, 0, ZERO_SLOT_PARAM, 2,
                                                                                                     b.outputs.memory.data, 4, nullptr);
           },
           {optimizer_handle(), id(), slot(), offset(), address("data"), elements(), stream()});
  add_pair(rows, "zero_optimizer_write", zero_optimizer_write, zero_optimizer_write_async,
           [](Bench &b) {
             return std::tuple<zero_optimizer *, int64_t, int32_t, int64_t, const void *, int64_t, void *>(
                 b.world.running, 0, ZERO_SLOT_PARAM, 2, b.data, 4, nullptr);
           },
           {optimizer_handle(), id(), slot(), offset(), address("data"), elements(), stream()});
}

void add_step_rows(Rows &rows) {
  const auto stepping = [](Bench &b) {
    return std::tuple<zero_optimizer *, void *, zero_step_result *>(b.world.running, nullptr, &b.outputs.memory.result);
  };
  const std::vector<Arg> step = {optimizer_handle(), stream(), result_struct("out_result", true)};
  add_pair(rows, "zero_optimizer_step", zero_optimizer_step, zero_optimizer_step_async, stepping, step);
  add_pair(rows, "zero_optimizer_reduce", zero_optimizer_reduce, zero_optimizer_reduce_async, stepping, step);
  const auto streaming = [](Bench &b) { return std::tuple<zero_optimizer *, void *>(b.world.running, nullptr); };
  add_pair(rows, "zero_optimizer_sync", zero_optimizer_sync, zero_optimizer_sync_async, stepping, step);
  add_pair(rows, "zero_optimizer_apply", zero_optimizer_apply, zero_optimizer_apply_async, streaming, {optimizer_handle(), stream()});
  add_pair(rows, "zero_optimizer_gather", zero_optimizer_gather, zero_optimizer_gather_async, streaming, {optimizer_handle(), stream()});
  add(rows, "zero_optimizer_result", zero_optimizer_result, stepping, {optimizer_handle(), stream(), result_struct("out_result")});
  add(rows, "zero_optimizer_refresh", zero_optimizer_refresh, streaming, {optimizer_handle(), stream()});
  add(rows, "zero_optimizer_loss_scale_address", zero_optimizer_loss_scale_address,
      [](Bench &b) { return std::tuple<zero_optimizer *, void *, void **>(b.world.running, nullptr, &b.outputs.memory.pointers[0]); },
      {optimizer_handle(), stream(), address("out_address")});
  // A weight needs ZERO_DIVISOR_WEIGHTS; its bounds are tested where optimizers are.
  add(rows, "zero_optimizer_set_weight", zero_optimizer_set_weight, [](Bench &b) { return std::tuple(b.world.running, 1.0); },
      {optimizer_handle(), [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_STATE, "ZERO_DIVISOR_WEIGHTS", 1.0}};
       }});
}

/// Keys that are no hyper-parameter, or none of AdamW.
Arg hyper_key() {
  return [](Bench &bench) {
    std::vector<Bad> bad = values({0, 300, 999}, ZERO_E_UNSUPPORTED)(bench);
    bad.push_back({ZERO_KEY_MOMENTUM, ZERO_E_UNSUPPORTED, "ZERO_KEY_MOMENTUM"});
    return bad;
  };
}

void add_scalar_rows(Rows &rows) {
  const Arg set = values({-1, 1, INT64_MAX, INT64_MIN});
  add(rows, "zero_optimizer_set_f64", zero_optimizer_set_f64,
      [](Bench &b) { return std::tuple(b.world.running, int64_t{0}, int32_t{ZERO_KEY_LR}, 0.5); },
      {optimizer_handle(), set, hyper_key(), [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "-1", -1.0}, {0, ZERO_E_INVALID_ARGUMENT, "nan", NAN}};
       }});
  add(rows, "zero_optimizer_get_f64", zero_optimizer_get_f64,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, int64_t, int32_t, double *>(b.world.running, 0, ZERO_KEY_LR, &b.outputs.memory.number);
      },
      {optimizer_handle(), set, hyper_key(), address("out")});
  add(rows, "zero_optimizer_set_i64", zero_optimizer_set_i64,
      [](Bench &b) { return std::tuple(b.world.running, int32_t{ZERO_KEY_STEP_COUNT}, int64_t{0}); },
      {optimizer_handle(), values({0, 300, 400, 999}, ZERO_E_UNSUPPORTED), values({-1, INT64_MAX, INT64_MIN})});
  add(rows, "zero_optimizer_get_i64", zero_optimizer_get_i64,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, int32_t, int64_t *>(b.world.running, ZERO_KEY_STEP_COUNT, &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(), values({0, 300, 400, 999}, ZERO_E_UNSUPPORTED), address("out")});
}

}  // namespace

void add_optimizer_rows(Rows &rows) {
  add_building_rows(rows);
  add_value_rows(rows);
  add_step_rows(rows);
  add_scalar_rows(rows);
}

}  // namespace zero::test
