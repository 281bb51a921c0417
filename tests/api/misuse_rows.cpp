/// @file The rows of configs, groups, buffers, statistics and of functions without handles.
#include "misuse.h"

#include <cmath>

namespace zero::test {
namespace {

/// Functions that return no status: called with whatever is bad for them.
void add_special(Rows &rows, const char *name, std::function<void(Bench &)> run) { rows.push_back({name, std::move(run)}); }

/// A release: NULL is silent; whatever is no live handle of the kind leaves an error and takes
/// nothing away.
template <class Handle>
void add_release(Rows &rows, const char *name, void (*release)(Handle *), Arg handles) {
  rows.push_back({name, [=, row = std::string(name)](Bench &bench) {
                    for (const Bad &bad : handles(bench)) {
                      EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_config_create(nullptr));
                      release(from_bad<Handle *>(bad));
                      const bool null = bad.word == 0;
                      ++bench.calls;
                      EXPECT_TRUE(failed_with(zero_last_error_copy(nullptr, 0), null ? ZERO_E_INVALID_ARGUMENT : ZERO_E_BAD_HANDLE,
                                              null ? "out is NULL" : bad.named))
                          << row;
                    }
                  }});
}

}  // namespace

void add_config_rows(Rows &rows) {
  add(rows, "zero_config_create", zero_config_create,
      [](Bench &b) { return std::tuple(reinterpret_cast<zero_config **>(&b.outputs.memory.pointers[0])); }, {address("out")});
  add(rows, "zero_config_set_i64", zero_config_set_i64, [](Bench &b) { return std::tuple(b.world.config, 300, int64_t{1}); },
      {config_handle(), values({0, 99, 999}, ZERO_E_UNSUPPORTED), values({-1, 4, INT64_MIN, INT64_MAX})});
  add(rows, "zero_config_set_f64", zero_config_set_f64, [](Bench &b) { return std::tuple(b.world.config, 400, 1.0); },
      {config_handle(), values({0, 99, 999}, ZERO_E_UNSUPPORTED), [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "-1", -1.0},
                                 {0, ZERO_E_INVALID_ARGUMENT, "nan", NAN},
                                 {0, ZERO_E_INVALID_ARGUMENT, "inf", INFINITY}};
       }});
  static const std::string too_long(4096, 'x');
  add(rows, "zero_config_set_str", zero_config_set_str, [](Bench &b) { return std::tuple(b.world.config, 301, "sgd"); },
      {config_handle(), values({0, 99, 999}, ZERO_E_UNSUPPORTED), [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "NULL"},
                                 {reinterpret_cast<uintptr_t>(too_long.c_str()), ZERO_E_INVALID_ARGUMENT, "4095"}};
       }});
  add(rows, "zero_key_bounds_init", zero_key_bounds_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.bounds, sizeof(zero_key_bounds)); }, {address("out"), struct_size(64)});
  add(rows, "zero_config_bounds", zero_config_bounds, [](Bench &b) { return std::tuple(300, &b.outputs.memory.bounds); },
      {values({0, 99, 999}, ZERO_E_UNSUPPORTED), result_struct("out")});
  add(rows, "zero_config_set_allocator", zero_config_set_allocator,
      [](Bench &b) {
        const zero_alloc_fn alloc = [](uint64_t, uint64_t, void *) -> void * { return nullptr; };
        const zero_free_fn free_fn = [](void *, uint64_t, void *) {};
        return std::tuple<zero_config *, zero_alloc_fn, zero_free_fn, zero_shared_fn, void *>(b.world.config, alloc, free_fn, nullptr,
                                                                                              nullptr);
      },
      {config_handle(),
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "alloc is NULL"}};
       },
       [](Bench &) {
         return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "free_fn is NULL"}};
       },
       anything(), anything()});
  add_release(rows, "zero_config_release", zero_config_release, config_handle());
}

void add_buffer_rows(Rows &rows) {
  add(rows, "zero_buffer_create", zero_buffer_create,
      [](Bench &b) {
        return std::tuple<zero_group *, const zero_config *, int32_t, int64_t, zero_buffer **>(
            b.world.group, nullptr, ZERO_DTYPE_F32, 4, reinterpret_cast<zero_buffer **>(&b.outputs.memory.pointers[0]));
      },
      {group_handle(), optional_config(), dtype(), count("count"), address("out")});
  add(rows, "zero_buffer_create_async", zero_buffer_create_async,
      [](Bench &b) {
        return std::tuple<zero_group *, const zero_config *, int32_t, int64_t, zero_request **>(b.world.group, nullptr, ZERO_DTYPE_F32, 4,
                                                                                                &b.outputs.request);
      },
      {group_handle(), optional_config(), dtype(), count("count"), address("out")});
  add(rows, "zero_buffer_shard", zero_buffer_shard,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<const zero_buffer *, void **, int64_t *, int64_t *>(b.world.buffer, &out.pointers[0], &out.integers[0],
                                                                              &out.integers[1]);
      },
      {buffer_handle(), address("out_data"), address("out_offset"), address("out_count")});
  add_pair(rows, "zero_buffer_whole_acquire", zero_buffer_whole_acquire, zero_buffer_whole_acquire_async,
           [](Bench &b) { return std::tuple<zero_buffer *, void *, void **>(b.world.buffer, nullptr, &b.outputs.memory.pointers[0]); },
           {buffer_handle(), stream(), address("out_data")});
  add(rows, "zero_buffer_whole_release", zero_buffer_whole_release, [](Bench &b) { return std::tuple(b.world.buffer); }, {buffer_handle()});
  add_pair(rows, "zero_buffer_reduce_scatter", zero_buffer_reduce_scatter, zero_buffer_reduce_scatter_async,
           [](Bench &b) {
             return std::tuple<zero_buffer *, const void *, int64_t, int32_t, void *>(b.world.buffer, b.data, kCount, ZERO_REDUCE_SUM,
                                                                                      nullptr);
           },
           {buffer_handle(), address("data"), count("count"), op(), stream()});
  add_pair(rows, "zero_buffer_read", zero_buffer_read, zero_buffer_read_async,
           [](Bench &b) {
             return std::tuple<zero_buffer *, int64_t, void *, int64_t, void *>(b.world.buffer, 2, b.outputs.memory.data, 4, nullptr);
           },
           {buffer_handle(), values({-1, 5, kCount + 1, INT64_MAX, INT64_MIN}), address("data"), values({-1, 7, INT64_MAX, INT64_MIN}),
            stream()});
  add_pair(
      rows, "zero_buffer_write", zero_buffer_write, zero_buffer_write_async,
      [](Bench &b) { return std::tuple<zero_buffer *, int64_t, const void *, int64_t, void *>(b.world.buffer, 2, b.data, 4, nullptr); },
      {buffer_handle(), values({-1, 5, kCount + 1, INT64_MAX, INT64_MIN}), address("data"), values({-1, 7, INT64_MAX, INT64_MIN}),
       stream()});
  add_release(rows, "zero_buffer_release", zero_buffer_release, buffer_handle());
}

void add_stats_rows(Rows &rows) {
  add(rows, "zero_memory_stats_init", zero_memory_stats_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.memory, sizeof(zero_memory_stats)); }, {address("out"), struct_size(40)});
  add(rows, "zero_traffic_stats_init", zero_traffic_stats_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.traffic, sizeof(zero_traffic_stats)); }, {address("out"), struct_size(32)});
  add(rows, "zero_step_stats_init", zero_step_stats_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.steps, sizeof(zero_step_stats)); }, {address("out"), struct_size(64)});
  add(rows, "zero_stats_optimizer_memory", zero_stats_optimizer_memory,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, int32_t, zero_memory_stats *>(b.world.running, 0, &b.outputs.memory.memory);
      },
      {optimizer_handle(), values({-1, 11, INT32_MAX, INT32_MIN}), result_struct("out")});
  add(rows, "zero_stats_buffer_memory", zero_stats_buffer_memory,
      [](Bench &b) { return std::tuple<const zero_buffer *, int32_t, zero_memory_stats *>(b.world.buffer, 0, &b.outputs.memory.memory); },
      {buffer_handle(), values({-1, 11, INT32_MAX, INT32_MIN}), result_struct("out")});
  add(rows, "zero_stats_group_traffic", zero_stats_group_traffic,
      [](Bench &b) { return std::tuple<const zero_group *, int32_t, zero_traffic_stats *>(b.world.group, 1, &b.outputs.memory.traffic); },
      {group_handle(), values({-1, 0, 12, INT32_MAX, INT32_MIN}), result_struct("out")});
  add(rows, "zero_stats_optimizer_traffic", zero_stats_optimizer_traffic,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, int32_t, zero_traffic_stats *>(b.world.running, 1, &b.outputs.memory.traffic);
      },
      {optimizer_handle(), values({-1, 0, 12, INT32_MAX, INT32_MIN}), result_struct("out")});
  add(rows, "zero_stats_optimizer_step", zero_stats_optimizer_step,
      [](Bench &b) { return std::tuple<const zero_optimizer *, zero_step_stats *>(b.world.running, &b.outputs.memory.steps); },
      {optimizer_handle(), result_struct("out")});
  add(rows, "zero_stats_optimizer_trace", zero_stats_optimizer_trace,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, char *, int64_t, int64_t *>(b.world.running, b.outputs.memory.text, 16,
                                                                              &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(), address("out"), values({-1, INT64_MIN}), anything()});
  add(rows, "zero_describe_library", zero_describe_library,
      [](Bench &b) { return std::tuple<char *, int64_t, int64_t *>(b.outputs.memory.text, 16, &b.outputs.memory.integers[0]); },
      {address("out"), values({-1, INT64_MIN}), anything()});
  add(rows, "zero_describe_group", zero_describe_group,
      [](Bench &b) {
        return std::tuple<const zero_group *, char *, int64_t, int64_t *>(b.world.group, b.outputs.memory.text, 16,
                                                                          &b.outputs.memory.integers[0]);
      },
      {group_handle(), address("out"), values({-1, INT64_MIN}), anything()});
  add(rows, "zero_describe_optimizer", zero_describe_optimizer,
      [](Bench &b) {
        return std::tuple<const zero_optimizer *, char *, int64_t, int64_t *>(b.world.running, b.outputs.memory.text, 16,
                                                                              &b.outputs.memory.integers[0]);
      },
      {optimizer_handle(), address("out"), values({-1, INT64_MIN}), anything()});
}

void add_other_rows(Rows &rows) {
  add(rows, "zero_dtype_nbytes", zero_dtype_nbytes, [](Bench &b) { return std::tuple(1, &b.outputs.memory.integers[0]); },
      {values({0, -1, 5, 19, 42, INT32_MAX, INT32_MIN}), address("out_nbytes")});
  add_special(rows, "zero_last_error_copy", [](Bench &bench) {
    EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(nullptr, 1));
    EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_last_error_copy(bench.outputs.memory.text, -1));
    bench.calls += 2;
  });
  add_special(rows, "zero_status_name", [](Bench &bench) {
    EXPECT_STREQ("ZERO_E_UNKNOWN", zero_status_name(INT32_MIN));
    ++bench.calls;
  });
  add_special(rows, "zero_has_feature", [](Bench &bench) {
    EXPECT_EQ(0, zero_has_feature(INT32_MIN));
    ++bench.calls;
  });
  // Without arguments there is nothing to misuse.
  add_special(rows, "zero_version", [](Bench &) { EXPECT_NE(nullptr, zero_version()); });
  add_special(rows, "zero_abi_version", [](Bench &) { EXPECT_GE(zero_abi_version(), 1); });

  add(rows, "zero_request_test", zero_request_test, [](Bench &b) { return std::tuple(b.world.request, &b.outputs.memory.integers[0]); },
      {request_handle(), address("out_done")});
  add(rows, "zero_request_wait", zero_request_wait, [](Bench &b) { return std::tuple(b.world.request); }, {request_handle()});
  add(rows, "zero_request_group", zero_request_group,
      [](Bench &b) { return std::tuple(b.world.split_request, reinterpret_cast<zero_group **>(&b.outputs.memory.pointers[0])); },
      {request_handle(), address("out")});
  add(rows, "zero_request_buffer", zero_request_buffer,
      [](Bench &b) { return std::tuple(b.world.buffer_request, reinterpret_cast<zero_buffer **>(&b.outputs.memory.pointers[0])); },
      {request_handle(), address("out")});
  add_release(rows, "zero_request_release", zero_request_release, request_handle());
  add_release(rows, "zero_group_release", zero_group_release, group_handle());
  add_release(rows, "zero_checkpoint_release", zero_checkpoint_release, checkpoint_handle());
  add_release(rows, "zero_save_release", zero_save_release, save_handle());
  add_release(rows, "zero_server_release", zero_server_release, server_handle());
  add_release(rows, "zero_optimizer_release", zero_optimizer_release, optimizer_handle());
}

}  // namespace zero::test
