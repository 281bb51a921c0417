/// @file The rows of what trainings ask of optimizers beyond the plain step: parameter sets,
/// micro-steps, first values, module buffers, slots, verification.
#include "misuse.h"

#include <cmath>

namespace zero::test {
namespace {

Arg id(const char *argument) {
  return [=](Bench &bench) {
    std::vector<Bad> bad = values({-1, 1, INT64_MAX, INT64_MIN})(bench);
    for (Bad &one : bad) one.named = std::string(argument) + " is " + one.named;
    return bad;
  };
}

/// Numbers that are no finite value, and `more`.
Arg number(const char *argument, std::vector<double> more = {}) {
  return [=](Bench &) {
    std::vector<Bad> bad = {{0, ZERO_E_INVALID_ARGUMENT, argument, NAN},
                            {0, ZERO_E_INVALID_ARGUMENT, argument, INFINITY},
                            {0, ZERO_E_INVALID_ARGUMENT, argument, -INFINITY}};
    for (const double value : more) bad.push_back({0, ZERO_E_INVALID_ARGUMENT, argument, value});
    return bad;
  };
}

void add_model_rows(Rows &rows) {
  add(rows, "zero_optimizer_add_set", zero_optimizer_add_set,
      [](Bench &b) {
        return std::tuple<zero_optimizer *, const zero_config *, int64_t *>(b.world.building, nullptr, &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(), optional_config(), address("out_set")});
  add(rows, "zero_optimizer_set_model_group", zero_optimizer_set_model_group,
      [](Bench &b) { return std::tuple(b.world.building, b.world.group); }, {optimizer_handle(), group_handle()});
  static const int64_t order[1] = {0};
  static const int64_t bad_order[1] = {7};
  add(rows, "zero_optimizer_set_gather_order", zero_optimizer_set_gather_order,
      [](Bench &b) { return std::tuple<zero_optimizer *, const int64_t *, int64_t>(b.world.building, order, 1); },
      {optimizer_handle(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "ids is NULL"},
                                 {reinterpret_cast<uintptr_t>(bad_order), ZERO_E_INVALID_ARGUMENT, "7"}};
       },
       count("count")});
  add_pair(rows, "zero_optimizer_micro_step", zero_optimizer_micro_step, zero_optimizer_micro_step_async,
           [](Bench &b) { return std::tuple<zero_optimizer *, int32_t, void *>(b.world.running, ZERO_MICRO_STEP_LAST, nullptr); },
           {optimizer_handle(), values({-1, 3, INT32_MAX, INT32_MIN}), stream()});
  add(rows, "zero_optimizer_init_param", zero_optimizer_init_param,
      [](Bench &b) { return std::tuple(b.world.running, int64_t{0}, int32_t{ZERO_INITIALISER_UNIFORM}, -1.0, 1.0, int64_t{3}); },
      {optimizer_handle(), id("id"), values({-1, 3, INT32_MAX, INT32_MIN}), number("a is ", {1.5, -1e39}), number("and b ", {-1.5, 1e39}),
       anything()});
}

void add_module_buffer_rows(Rows &rows) {
  static const int64_t shape[2] = {2, 3};
  static const int64_t bad_shape[2] = {2, -1};
  static const std::string too_long(256, 'b');
  add(rows, "zero_optimizer_add_module_buffer", zero_optimizer_add_module_buffer,
      [](Bench &b) {
        return std::tuple<zero_optimizer *, const char *, int32_t, const int64_t *, int64_t, int32_t, int64_t *>(
            b.world.building, "variance", ZERO_DTYPE_F32, shape, 2, ZERO_SYNC_AVERAGE, &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "NULL"},
                                 {reinterpret_cast<uintptr_t>(""), ZERO_E_INVALID_ARGUMENT, ""},
                                 {reinterpret_cast<uintptr_t>("weight"), ZERO_E_INVALID_ARGUMENT, "weight"},
                                 {reinterpret_cast<uintptr_t>(too_long.c_str()), ZERO_E_INVALID_ARGUMENT, "255"},
                                 {reinterpret_cast<uintptr_t>("caf\xe9.weight"), ZERO_E_INVALID_ARGUMENT, "is not UTF-8: byte 3 is 0xe9"}};
       },
       [](Bench &bench) {
         std::vector<Bad> bad = dtype()(bench);
         bad.push_back({ZERO_DTYPE_I64, ZERO_E_UNSUPPORTED, "i64"});
         return bad;
       },
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "shape"},
                                 {reinterpret_cast<uintptr_t>(bad_shape), ZERO_E_INVALID_ARGUMENT, "-1"}};
       },
       values({-1, 17, INT64_MAX, INT64_MIN}), values({-1, 3, INT32_MAX, INT32_MIN}), address("out_id")});
  add(rows, "zero_optimizer_module_buffer", zero_optimizer_module_buffer,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<zero_optimizer *, int64_t, void **, int64_t *>(b.world.running, 0, &out.pointers[0], &out.integers[0]);
      },
      {optimizer_handle(), id("id"), address("out_data"), address("out_count")});
  add_pair(rows, "zero_optimizer_sync_module_buffers", zero_optimizer_sync_module_buffers, zero_optimizer_sync_module_buffers_async,
           [](Bench &b) { return std::tuple<zero_optimizer *, void *>(b.world.running, nullptr); }, {optimizer_handle(), stream()});
}

/// Signal handlers call it, so its errors have codes but no texts. The text of zero_last_error_copy
/// must stay unchanged.
void add_stop_row(Rows &rows) {
  rows.push_back({"zero_optimizer_request_stop", [](Bench &b) {
                    const auto judge_code = [&](zero_optimizer *optimizer, int64_t reason, int32_t code) {
                      const std::string before = last_text();
                      const int32_t status = zero_optimizer_request_stop(optimizer, reason);
                      EXPECT_EQ(status, code);
                      EXPECT_EQ(last_text(), before);
                      ++b.calls;
                      b.failures += status == code ? 0 : 1;
                    };
                    for (const Bad &bad : optimizer_handle()(b)) judge_code(from_bad<zero_optimizer *>(bad), 1, bad.code);
                    for (const int64_t reason : {int64_t{0}, int64_t{-1}, INT64_MIN}) judge_code(b.world.running, reason, ZERO_E_INVALID_ARGUMENT);
                  }});
}

void add_slot_rows(Rows &rows) {
  add(rows, "zero_optimizer_slot_count", zero_optimizer_slot_count,
      [](Bench &b) { return std::tuple<const zero_optimizer *, int64_t, int64_t *>(b.world.running, 0, &b.outputs.memory.integers[0]); },
      {optimizer_handle(), id("id"), address("out_count")});
  add(rows, "zero_optimizer_slot", zero_optimizer_slot,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<const zero_optimizer *, int64_t, int64_t, int64_t *, int64_t *, int64_t *>(
            b.world.running, 0, 2, &out.integers[0], &out.integers[1], &out.integers[2]);
      },
      {optimizer_handle(), id("id"), values({-1, 3, INT64_MAX, INT64_MIN}), address("out_slot"), address("out_dtype"),
       address("out_count")});
  add(rows, "zero_verify_result_init", zero_verify_result_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.verification, sizeof(zero_verify_result)); }, {address("out"), struct_size(88)});
  add_pair(rows, "zero_optimizer_verify", zero_optimizer_verify, zero_optimizer_verify_async,
           [](Bench &b) {
             return std::tuple<zero_optimizer *, void *, zero_verify_result *>(b.world.running, nullptr, &b.outputs.memory.verification);
           },
           {optimizer_handle(), stream(), result_struct("out_result")});
}

}  // namespace

void add_training_rows(Rows &rows) {
  add_model_rows(rows);
  add_module_buffer_rows(rows);
  add_slot_rows(rows);
  add_stop_row(rows);
}

}  // namespace zero::test
