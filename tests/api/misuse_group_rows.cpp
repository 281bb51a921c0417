/// @file The rows of groups and collectives.
#include "misuse.h"

namespace zero::test {
namespace {

/// Arguments of a collective on the world of one: everything may be sent and received.
template <class... Rest>
std::tuple<zero_group *, const void *, int64_t, void *, int64_t, Rest...> moving(Bench &b, Rest... rest) {
  return {b.world.group, b.data, kCount, b.outputs.memory.data, kCount, rest...};
}

void *no_stream() { return nullptr; }

Arg wrong_count(const char *argument) {
  return [=](Bench &bench) {
    std::vector<Bad> bad = count(argument)(bench);
    bad.push_back({3, ZERO_E_INVALID_ARGUMENT, std::string(argument) + " is 3"});
    return bad;
  };
}

Arg own_rank_or_outside() { return values({-1, 0, 2, INT64_MAX, INT64_MIN}); }
Arg root() { return values({-1, 1, INT64_MAX, INT64_MIN}); }
/// Numbers that are no measured time.
std::vector<Bad> seconds(Bench &) {
  std::vector<Bad> bad;
  for (const double value : {-1.0, 2e9, double{NAN}, double{INFINITY}}) bad.push_back({0, ZERO_E_INVALID_ARGUMENT, "seconds", value});
  return bad;
}

Arg deadline() { return values({0, -1, (int64_t{1} << 40) + 1, INT64_MIN}); }

template <int32_t (*Read)(const zero_group *, int64_t *)>
void add_number(Rows &rows, const char *name) {
  add(rows, name, Read, [](Bench &b) { return std::tuple<const zero_group *, int64_t *>(b.world.group, &b.outputs.memory.integers[0]); },
      {group_handle(), address("out")});
}

zero_group **out_group(Bench &b) { return reinterpret_cast<zero_group **>(&b.outputs.memory.pointers[0]); }

void add_creation_rows(Rows &rows) {
  static const std::string too_long(65, 'n');
  const Arg name = [](Bench &) {
    return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "name is NULL"},
                            {reinterpret_cast<uintptr_t>(""), ZERO_E_INVALID_ARGUMENT, "name \"\""},
                            {reinterpret_cast<uintptr_t>(too_long.c_str()), ZERO_E_INVALID_ARGUMENT, too_long},
                            {reinterpret_cast<uintptr_t>("n\xff"), ZERO_E_INVALID_ARGUMENT, "is not UTF-8: byte 1 is 0xff"}};
  };
  const std::vector<Arg> local = {name, values({-1, 2, INT64_MAX, INT64_MIN}), values({0, -1, 1025, INT64_MAX, INT64_MIN}),
                                  optional_config(), address("out")};
  add(
      rows, "zero_group_create_local", zero_group_create_local,
      [](Bench &b) {
        return std::tuple<const char *, int64_t, int64_t, const zero_config *, zero_group **>("libzero-misuse-none", 0, 2, nullptr,
                                                                                              out_group(b));
      },
      local);
  add(
      rows, "zero_group_create_local_async", zero_group_create_local_async,
      [](Bench &b) {
        return std::tuple<const char *, int64_t, int64_t, const zero_config *, zero_request **>("libzero-misuse-none", 0, 2, nullptr,
                                                                                                &b.outputs.request);
      },
      local);
  const std::vector<Arg> mpi = {values({-2, int64_t{1} << 31, INT64_MAX, INT64_MIN}), optional_config(), address("out")};
  add(
      rows, "zero_group_create_mpi", zero_group_create_mpi,
      [](Bench &b) { return std::tuple<int64_t, const zero_config *, zero_group **>(ZERO_MPI_WORLD, nullptr, out_group(b)); }, mpi);
  add(
      rows, "zero_group_create_mpi_async", zero_group_create_mpi_async,
      [](Bench &b) { return std::tuple<int64_t, const zero_config *, zero_request **>(ZERO_MPI_WORLD, nullptr, &b.outputs.request); }, mpi);
  static const std::string endless(300, 'x');
  const Arg id = [](Bench &) {
    return std::vector<Bad>{{0, ZERO_E_INVALID_ARGUMENT, "id"},
                            {reinterpret_cast<uintptr_t>(""), ZERO_E_INVALID_ARGUMENT, "id"},
                            {reinterpret_cast<uintptr_t>("host/token"), ZERO_E_INVALID_ARGUMENT, "host/token"},
                            {reinterpret_cast<uintptr_t>(endless.c_str()), ZERO_E_INVALID_ARGUMENT, "id"}};
  };
  const std::vector<Arg> nccl = {id, values({-1, 2, INT64_MAX, INT64_MIN}), values({0, -1, 65, INT64_MAX, INT64_MIN}), optional_config(),
                                 address("out")};
  add(
      rows, "zero_group_create_nccl", zero_group_create_nccl,
      [](Bench &b) {
        return std::tuple<const char *, int64_t, int64_t, const zero_config *, zero_group **>("127.0.0.1:9/misuse", 0, 2,
                                                                                              b.on_device.handle, out_group(b));
      },
      nccl);
  add(
      rows, "zero_group_create_nccl_async", zero_group_create_nccl_async,
      [](Bench &b) {
        return std::tuple<const char *, int64_t, int64_t, const zero_config *, zero_request **>("127.0.0.1:9/misuse", 0, 2,
                                                                                                b.on_device.handle, &b.outputs.request);
      },
      nccl);
  add(rows, "zero_group_unique_id", zero_group_unique_id,
      [](Bench &b) {
        return std::tuple<const zero_config *, char *, int64_t, int64_t *>(nullptr, b.outputs.memory.text, 256,
                                                                           &b.outputs.memory.integers[0]);
      },
      {optional_config(), address("out"), values({-1, 1, 255, INT64_MIN}), anything()});
  add(rows, "zero_group_create_env", zero_group_create_env,
      [](Bench &b) { return std::tuple<const zero_config *, zero_group **>(nullptr, out_group(b)); }, {optional_config(), address("out")});
  add(rows, "zero_group_create_env_async", zero_group_create_env_async,
      [](Bench &b) { return std::tuple<const zero_config *, zero_request **>(nullptr, &b.outputs.request); },
      {optional_config(), address("out")});
  add(rows, "zero_group_launcher", zero_group_launcher,
      [](Bench &b) { return std::tuple<char *, int64_t, int64_t *>(b.outputs.memory.text, 16, &b.outputs.memory.integers[0]); },
      {address("out"), values({-1, INT64_MIN}), anything()});
  const std::vector<Arg> split = {group_handle(), anything(), anything(), address("out")};
  add(
      rows, "zero_group_split", zero_group_split,
      [](Bench &b) { return std::tuple<zero_group *, int64_t, int64_t, zero_group **>(b.world.group, 0, 0, out_group(b)); }, split);
  add(
      rows, "zero_group_split_async", zero_group_split_async,
      [](Bench &b) { return std::tuple<zero_group *, int64_t, int64_t, zero_request **>(b.world.group, 0, 0, &b.outputs.request); }, split);
}

void add_query_rows(Rows &rows) {
  add_number<zero_group_rank>(rows, "zero_group_rank");
  add_number<zero_group_size>(rows, "zero_group_size");
  add_number<zero_group_local_rank>(rows, "zero_group_local_rank");
  add_number<zero_group_local_size>(rows, "zero_group_local_size");
  add_number<zero_group_host_count>(rows, "zero_group_host_count");
  add(rows, "zero_group_share", zero_group_share,
      [](Bench &b) {
        Outputs::Memory &out = b.outputs.memory;
        return std::tuple<const zero_group *, int64_t, int64_t, int64_t *, int64_t *>(b.world.group, 5, 0, &out.integers[0],
                                                                                      &out.integers[1]);
      },
      {group_handle(), values({-1, INT64_MIN}), root(), address("out_offset"), address("out_count")});
  add(rows, "zero_group_status", zero_group_status, [](Bench &b) { return std::tuple(b.world.group); }, {group_handle()});
  add(rows, "zero_group_abort", zero_group_abort, [](Bench &b) { return std::tuple<zero_group *, const char *>(b.world.group, nullptr); },
      {group_handle(), anything()});
  add(rows, "zero_group_set_deadline", zero_group_set_deadline, [](Bench &b) { return std::tuple(b.world.group, int64_t{1000}); },
      {group_handle(), deadline()});
  add_number<zero_group_quiet>(rows, "zero_group_quiet");
}

void add_collective_rows(Rows &rows) {
  const Arg send = address("send");
  const Arg recv = address("recv");
  const Arg send_count = wrong_count("send_count");
  const Arg recv_count = wrong_count("recv_count");
  const int32_t f32 = ZERO_DTYPE_F32;
  const int32_t sum = ZERO_REDUCE_SUM;
  add_pair(rows, "zero_group_all_reduce", zero_group_all_reduce, zero_group_all_reduce_async,
           [=](Bench &b) { return moving(b, f32, sum, no_stream()); },
           {group_handle(), send, count("send_count"), recv, count("recv_count"), dtype(), op(), stream()});
  add_pair(rows, "zero_group_reduce_scatter", zero_group_reduce_scatter, zero_group_reduce_scatter_async,
           [=](Bench &b) { return moving(b, f32, sum, no_stream()); },
           {group_handle(), send, count("send_count"), recv, recv_count, dtype(), op(), stream()});
  add_pair(rows, "zero_group_all_gather", zero_group_all_gather, zero_group_all_gather_async,
           [=](Bench &b) { return moving(b, f32, no_stream()); },
           {group_handle(), send, send_count, recv, count("recv_count"), dtype(), stream()});
  add_pair(rows, "zero_group_broadcast", zero_group_broadcast, zero_group_broadcast_async,
           [=](Bench &b) {
             return std::tuple<zero_group *, void *, int64_t, int32_t, int64_t, void *>(b.world.group, b.outputs.memory.data, kCount, f32,
                                                                                        0, nullptr);
           },
           {group_handle(), address("data"), count("count"), dtype(), root(), stream()});
  add_pair(rows, "zero_group_reduce", zero_group_reduce, zero_group_reduce_async,
           [=](Bench &b) { return moving(b, f32, sum, int64_t{0}, no_stream()); },
           {group_handle(), send, count("send_count"), recv, recv_count, dtype(), op(), root(), stream()});
  add_pair(rows, "zero_group_gather", zero_group_gather, zero_group_gather_async,
           [=](Bench &b) { return moving(b, kCount, f32, int64_t{0}, no_stream()); },
           {group_handle(), send, send_count, recv, recv_count, count("total"), dtype(), root(), stream()});
  add_pair(rows, "zero_group_scatter", zero_group_scatter, zero_group_scatter_async,
           [=](Bench &b) { return moving(b, kCount, f32, int64_t{0}, no_stream()); },
           {group_handle(), send, send_count, recv, recv_count, count("total"), dtype(), root(), stream()});
  add_pair(rows, "zero_group_all_to_all", zero_group_all_to_all, zero_group_all_to_all_async,
           [=](Bench &b) { return moving(b, f32, no_stream()); }, {group_handle(), send, send_count, recv, recv_count, dtype(), stream()});
  add_pair(rows, "zero_group_balance", zero_group_balance, zero_group_balance_async,
           [=](Bench &b) {
             return std::tuple<zero_group *, double, int64_t, int64_t, int64_t, int64_t *>(b.world.group, 1.0, 8, 64, 8,
                                                                                           &b.outputs.memory.integers[0]);
           },
           {group_handle(), seconds, values({-1, (int64_t{1} << 40) + 1, INT64_MIN}), values({-1, 63, (int64_t{1} << 40) + 1, INT64_MIN}),
            values({0, -1, 7, (int64_t{1} << 40) + 1, INT64_MIN}), address("out")});
  add_pair(rows, "zero_group_send", zero_group_send, zero_group_send_async,
           [=](Bench &b) {
             return std::tuple<zero_group *, const void *, int64_t, int32_t, int64_t, void *>(b.pair.rank[0], b.data, kCount, f32, 1,
                                                                                              nullptr);
           },
           {group_handle(), send, count("send_count"), dtype(), own_rank_or_outside(), stream()});
  add_pair(rows, "zero_group_recv", zero_group_recv, zero_group_recv_async,
           [=](Bench &b) {
             return std::tuple<zero_group *, void *, int64_t, int32_t, int64_t, void *>(b.pair.rank[0], b.outputs.memory.data, kCount, f32,
                                                                                        1, nullptr);
           },
           {group_handle(), recv, count("recv_count"), dtype(), own_rank_or_outside(), stream()});
  add_pair(rows, "zero_group_barrier", zero_group_barrier, zero_group_barrier_async, [](Bench &b) { return std::tuple(b.world.group); },
           {group_handle()});
}

}  // namespace

void add_group_rows(Rows &rows) {
  add_creation_rows(rows);
  add_query_rows(rows);
  add_collective_rows(rows);
}

}  // namespace zero::test
