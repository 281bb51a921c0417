/// @file The rows of parameter servers.
#include "misuse.h"

namespace zero::test {
namespace {

Arg elements() { return values({-1, kCount + 1, INT64_MAX, INT64_MIN}); }

void add_serving_rows(Rows &rows) {
  static const uint16_t record[2] = {0x8000, 0};
  static const uint16_t bad_record[2] = {0, 5};
  add(rows, "zero_server_shard", zero_server_shard,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<const zero_server *, void **, int64_t *, int64_t *>(server_rank(0), &out.pointers[0], &out.integers[0],
                                                                              &out.integers[1]);
      },
      {server_handle(), address("out_data"), address("out_offset"), address("out_count")});
  add(rows, "zero_server_replay", zero_server_replay,
      [](Bench &) { return std::tuple<zero_server *, const void *, int64_t>(server_rank(0), record, 2); },
      {server_handle(),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "data is NULL"),
              text(reinterpret_cast<const char *>(bad_record), ZERO_E_INVALID_ARGUMENT, "worker 5")}),
       values({-1, INT64_MAX, INT64_MIN})});
  add(rows, "zero_server_record", zero_server_record,
      [](Bench &b) {
        return std::tuple<const zero_server *, void *, int64_t, int64_t *>(server_rank(0), b.outputs.memory.text, 2,
                                                                           &b.outputs.memory.integers[0]);
      },
      {server_handle(), address("data"), values({-1, INT64_MAX, INT64_MIN}), address("out_count")});
  add_pair(rows, "zero_server_run", zero_server_run, zero_server_run_async,
           [](Bench &b) { return std::tuple(server_rank(0), &b.outputs.memory.served); },
           {server_handle(), result_struct("out_result", true)});
}

void add_working_rows(Rows &rows) {
  add_pair(rows, "zero_server_push", zero_server_push, zero_server_push_async,
           [](Bench &b) { return std::tuple<zero_server *, const void *, int64_t>(server_rank(1), b.data, kCount); },
           {server_handle(), address("data"), elements()});
  add_pair(rows, "zero_server_pull", zero_server_pull, zero_server_pull_async,
           [](Bench &b) { return std::tuple<zero_server *, void *, int64_t>(server_rank(1), b.outputs.memory.data, kCount); },
           {server_handle(), address("data"), elements()});
  add_pair(rows, "zero_server_leave", zero_server_leave, zero_server_leave_async, [](Bench &) { return std::tuple(server_rank(1)); },
           {server_handle()});
}

}  // namespace

zero_server *server_rank(int64_t rank) {
  static const TwoRanks pair(("libzero-misuse-server-" + std::to_string(::getpid())).c_str());
  static const std::array<zero_server *, 2> servers = [] {
    std::array<zero_server *, 2> made{};
    std::array<zero_request *, 2> requests{};
    zero_config *config = nullptr;
    ZERO_EXPECT_OK(zero_config_create(&config));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ARRIVAL));
    for (size_t i = 0; i < 2; ++i) {
      ZERO_EXPECT_OK(zero_server_create(pair.rank[i], config, kCount, &made[i]));
      ZERO_EXPECT_OK(zero_server_seal_async(made[i], &requests[i]));
    }
    for (int64_t done = 0; done < 2;) {
      done = 0;
      for (zero_request *request : requests) {
        int64_t one = 0;
        ZERO_EXPECT_OK(zero_request_test(request, &one));
        done += one;
      }
    }
    for (zero_request *request : requests) zero_request_release(request);
    zero_config_release(config);
    return made;
  }();
  return servers[static_cast<size_t>(rank)];
}

void add_server_rows(Rows &rows) {
  add(rows, "zero_server_result_init", zero_server_result_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.served, sizeof(zero_server_result)); }, {address("out"), struct_size(128)});
  add(rows, "zero_server_create", zero_server_create,
      [](Bench &b) {
        return std::tuple<zero_group *, const zero_config *, int64_t, zero_server **>(
            b.pair.rank[0], nullptr, kCount, reinterpret_cast<zero_server **>(&b.outputs.memory.pointers[0]));
      },
      {group_handle(), optional_config(), values({-1, INT64_MAX, INT64_MIN}), address("out")});
  add_pair(rows, "zero_server_seal", zero_server_seal, zero_server_seal_async, [](Bench &) { return std::tuple(server_rank(0)); },
           {server_handle()});
  add_serving_rows(rows);
  add_working_rows(rows);
}

}  // namespace zero::test
