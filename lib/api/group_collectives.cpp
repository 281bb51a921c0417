/// @file zero/group.h: the collectives, and point to point.
#include "group/collectives.h"

#include "api/request.h"
#include "core/number_text.h"
#include "group/collectives/balance.h"
#include "group/group.h"

#include <algorithm>
#include <cmath>

namespace zero::api {
namespace {

/// The arguments that all data-moving collectives share.
struct Call {
  zero_group *group;
  const void *send;
  int64_t send_count;
  void *recv;
  int64_t recv_count;
  int32_t dtype;
  void *stream;
};

DType to_dtype(int32_t dtype) { return static_cast<DType>(dtype); }
ReduceOp to_op(int32_t op) { return static_cast<ReduceOp>(op); }

struct Argument {
  const void *memory;
  const char *name;
};

/// If the group uses a device, memory and stream must be of that device. Later work of the group
/// runs after the work given to the stream.
Status check_reach(const Group &group, std::initializer_list<Argument> arguments, void *stream) {
  const Reducer &reducer = *group.reducer();
  if (!reducer.on_device()) return check_stream(stream);
  for (const Argument &argument : arguments) ZERO_TRY(reducer.check_memory(argument.memory, argument.name));
  return reducer.wait_for(stream);
}

/// Checks the shared arguments and names the queue of collectives.
Status check_call(Work &work, const Call &call, std::shared_ptr<Group> *out) {
  ZERO_TRY(find(call.group, "group", out));
  ZERO_TRY(check_dtype(call.dtype));
  ZERO_TRY(check_elements(call.send, call.send_count, call.dtype, "send", "send_count"));
  ZERO_TRY(check_elements(call.recv, call.recv_count, call.dtype, "recv", "recv_count"));
  ZERO_TRY(check_reach(**out, {{call.send, "send"}, {call.recv, "recv"}}, call.stream));
  work.queue = (*out)->queue();
  work.owner = *out;
  return {};
}

Status check_root(const Group &group, int64_t root) { return check_bounds(root, 0, group.size() - 1, "root"); }

/// The count of one side must be this rank's share of the whole.
Status check_share(const Group &group, int64_t count, const char *argument, int64_t total, const char *total_argument) {
  const int64_t share = even_share(total, group.rank(), group.size()).count();
  ZERO_CHECK(count == share, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but rank %lld of %lld has a share of %lld of the %s in %s", argument,
             lld(count), lld(group.rank()), lld(group.size()), lld(share), count_text(total, "element").c_str(), total_argument);
  return {};
}

/// The count of the side that only root has.
Status check_root_count(const Group &group, int64_t root, int64_t count, int64_t on_root, const char *argument) {
  const int64_t expected = group.rank() == root ? on_root : 0;
  ZERO_CHECK(count == expected, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be %lld on rank %lld (root is %lld)", argument, lld(count),
             lld(expected), lld(group.rank()), lld(root));
  return {};
}

Status check_equal_counts(const Call &call) {
  ZERO_CHECK(call.send_count == call.recv_count, ZERO_E_INVALID_ARGUMENT,
             "send_count is %lld and recv_count is %lld, but they must be equal", lld(call.send_count), lld(call.recv_count));
  return {};
}

Span send_span(const Call &call) { return {call.send, call.send_count * dtype_nbytes(to_dtype(call.dtype))}; }
Span recv_span(const Call &call) { return {call.recv, call.recv_count * dtype_nbytes(to_dtype(call.dtype))}; }

/// The address of this rank's share of a whole.
const void *own_part(const Group &group, const void *whole, int64_t total, int32_t dtype) {
  if (whole == nullptr) return nullptr;
  return static_cast<const std::byte *>(whole) + even_share(total, group.rank(), group.size()).begin * dtype_nbytes(to_dtype(dtype));
}

Task even_reduce_scatter(Group &group, Call call, int32_t op) {
  const Cuts cuts = even_cuts(call.send_count, group.size());
  ReduceScatter scatter = {.whole = call.send, .out = call.recv, .cuts = &cuts, .dtype = to_dtype(call.dtype), .op = to_op(op)};
  co_return co_await reduce_scatter(group, scatter);
}

Task even_all_gather(Group &group, Call call) {
  const Cuts cuts = even_cuts(call.recv_count, group.size());
  co_return co_await all_gather(group, call.send, call.recv, cuts, to_dtype(call.dtype));
}

Status describe_all_reduce(Work &work, const Call &call, int32_t op) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_reduce(op));
  ZERO_TRY(check_equal_counts(call));
  ZERO_TRY(check_overlap(recv_span(call), send_span(call), call.send, "recv may only be send itself"));
  work.task.emplace(all_reduce(*group, call.send, call.recv, call.send_count, to_dtype(call.dtype), to_op(op)));
  return {};
}

Status describe_reduce_scatter(Work &work, const Call &call, int32_t op) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_reduce(op));
  ZERO_TRY(check_share(*group, call.recv_count, "recv_count", call.send_count, "send_count"));
  ZERO_TRY(check_overlap(recv_span(call), send_span(call), own_part(*group, call.send, call.send_count, call.dtype),
                         "recv may only be this rank's own part of send"));
  work.task.emplace(even_reduce_scatter(*group, call, op));
  return {};
}

Status describe_all_gather(Work &work, const Call &call) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_share(*group, call.send_count, "send_count", call.recv_count, "recv_count"));
  ZERO_TRY(check_overlap(send_span(call), recv_span(call), own_part(*group, call.recv, call.recv_count, call.dtype),
                         "send may only be this rank's own part of recv"));
  work.task.emplace(even_all_gather(*group, call));
  return {};
}

Status describe_broadcast(Work &work, zero_group *handle, void *data, int64_t count, int32_t dtype, int64_t root, void *stream) {
  std::shared_ptr<Group> group;
  ZERO_TRY(find(handle, "group", &group));
  ZERO_TRY(check_dtype(dtype));
  ZERO_TRY(check_elements(data, count, dtype, "data", "count"));
  ZERO_TRY(check_root(*group, root));
  ZERO_TRY(check_reach(*group, {{data, "data"}}, stream));
  work.queue = group->queue();
  work.task.emplace(broadcast(*group, data, count, to_dtype(dtype), root));
  work.owner = std::move(group);
  return {};
}

Status describe_reduce(Work &work, const Call &call, int32_t op, int64_t root) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_reduce(op));
  ZERO_TRY(check_root(*group, root));
  ZERO_TRY(check_root_count(*group, root, call.recv_count, call.send_count, "recv_count"));
  ZERO_TRY(check_overlap(recv_span(call), send_span(call), call.send, "recv may only be send itself"));
  work.task.emplace(reduce(*group, call.send, call.recv, call.send_count, to_dtype(call.dtype), to_op(op), root));
  return {};
}

Status describe_gather(Work &work, const Call &call, int64_t total, int64_t root) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_root(*group, root));
  ZERO_TRY(check_count(total, call.dtype, "total"));
  ZERO_TRY(check_share(*group, call.send_count, "send_count", total, "total"));
  ZERO_TRY(check_root_count(*group, root, call.recv_count, total, "recv_count"));
  ZERO_TRY(check_overlap(send_span(call), recv_span(call), own_part(*group, call.recv, total, call.dtype),
                         "send may only be this rank's own part of recv"));
  work.task.emplace(gather(*group, call.send, call.recv, total, to_dtype(call.dtype), root));
  return {};
}

Status describe_scatter(Work &work, const Call &call, int64_t total, int64_t root) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_root(*group, root));
  ZERO_TRY(check_count(total, call.dtype, "total"));
  ZERO_TRY(check_root_count(*group, root, call.send_count, total, "send_count"));
  ZERO_TRY(check_share(*group, call.recv_count, "recv_count", total, "total"));
  ZERO_TRY(check_overlap(recv_span(call), send_span(call), own_part(*group, call.send, total, call.dtype),
                         "recv may only be root's own part of send"));
  work.task.emplace(scatter(*group, call.send, call.recv, total, to_dtype(call.dtype), root));
  return {};
}

Status describe_all_to_all(Work &work, const Call &call) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_call(work, call, &group));
  ZERO_TRY(check_equal_counts(call));
  ZERO_CHECK(call.send_count % group->size() == 0, ZERO_E_INVALID_ARGUMENT, "send_count is %lld, but must be a multiple of the %lld ranks",
             lld(call.send_count), lld(group->size()));
  ZERO_TRY(check_overlap(recv_span(call), send_span(call), nullptr, "they must be apart"));
  work.task.emplace(all_to_all(*group, call.send, call.recv, call.send_count, to_dtype(call.dtype)));
  return {};
}

Status describe_barrier(Work &work, zero_group *handle) {
  std::shared_ptr<Group> group;
  ZERO_TRY(find(handle, "group", &group));
  work.queue = group->queue();
  work.task.emplace(barrier(*group));
  work.owner = std::move(group);
  return {};
}

Status describe_balance(Work &work, zero_group *handle, double seconds, int64_t items, int64_t total, int64_t unit, int64_t *out) {
  constexpr double kMostSeconds = 1e9;
  std::shared_ptr<Group> group;
  ZERO_TRY(find(handle, "group", &group));
  ZERO_CHECK(seconds >= 0 && seconds <= kMostSeconds, ZERO_E_INVALID_ARGUMENT, "seconds is %s, but must be 0 .. 1e9",
             number_text(seconds).c_str());
  ZERO_TRY(check_bounds(items, 0, kMostBalancedItems, "items"));
  ZERO_TRY(check_bounds(total, 0, kMostBalancedItems, "total"));
  ZERO_TRY(check_bounds(unit, 1, kMostBalancedItems, "unit"));
  ZERO_CHECK(total % unit == 0, ZERO_E_INVALID_ARGUMENT, "total is %lld, but must be a multiple of unit, which is %lld", lld(total),
             lld(unit));
  ZERO_TRY(check_pointer(out, "out"));
  const int64_t ns = seconds > 0 ? std::max<int64_t>(std::llround(seconds * 1e9), 1) : 0;
  work.queue = group->queue();
  work.task.emplace(balance(*group, {items, ns}, total, unit, out));
  work.owner = std::move(group);
  return {};
}

/// One message, in the direction that `send` or `recv` gives.
struct Message {
  zero_group *group;
  const void *data;
  int64_t count;
  int32_t dtype;
  int64_t peer;
  void *stream;
};

Status check_message(const Message &message, const char *argument, const char *count_argument, std::shared_ptr<Group> *out) {
  ZERO_TRY(find(message.group, "group", out));
  ZERO_TRY(check_dtype(message.dtype));
  ZERO_TRY(check_elements(message.data, message.count, message.dtype, argument, count_argument));
  ZERO_TRY(check_bounds(message.peer, 0, (*out)->size() - 1, "peer"));
  ZERO_CHECK(message.peer != (*out)->rank(), ZERO_E_INVALID_ARGUMENT, "peer is %lld, which is this rank itself; it must be another rank",
             lld(message.peer));
  return check_reach(**out, {{message.data, argument}}, message.stream);
}

Status describe_send(Work &work, const Message &message) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_message(message, "send", "send_count", &group));
  work.queue = group->send_queue(message.peer);
  work.task.emplace(group->send(message.data, message.count, to_dtype(message.dtype), message.peer));
  work.owner = std::move(group);
  return {};
}

Status describe_recv(Work &work, const Message &message, void *data) {
  std::shared_ptr<Group> group;
  ZERO_TRY(check_message(message, "recv", "recv_count", &group));
  work.queue = group->recv_queue(message.peer);
  work.task.emplace(group->recv(data, message.count, to_dtype(message.dtype), message.peer));
  work.owner = std::move(group);
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Call;
using api::Message;
using api::Work;

int32_t zero_group_all_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                              int32_t op, void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_all_reduce(work, {group, send, send_count, recv, recv_count, dtype, stream}, op);
  });
}

int32_t zero_group_all_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                    int32_t op, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_all_reduce(work, {group, send, send_count, recv, recv_count, dtype, stream}, op);
  });
}

int32_t zero_group_reduce_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                  int32_t op, void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_reduce_scatter(work, {group, send, send_count, recv, recv_count, dtype, stream}, op);
  });
}

int32_t zero_group_reduce_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count,
                                        int32_t dtype, int32_t op, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_reduce_scatter(work, {group, send, send_count, recv, recv_count, dtype, stream}, op);
  });
}

int32_t zero_group_all_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                              void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_all_gather(work, {group, send, send_count, recv, recv_count, dtype, stream});
  });
}

int32_t zero_group_all_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                    void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_all_gather(work, {group, send, send_count, recv, recv_count, dtype, stream});
  });
}

int32_t zero_group_broadcast(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_broadcast(work, group, data, count, dtype, root, stream); });
}

int32_t zero_group_broadcast_async(zero_group *group, void *data, int64_t count, int32_t dtype, int64_t root, void *stream,
                                   zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_broadcast(work, group, data, count, dtype, root, stream); });
}

int32_t zero_group_reduce(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                          int32_t op, int64_t root, void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_reduce(work, {group, send, send_count, recv, recv_count, dtype, stream}, op, root);
  });
}

int32_t zero_group_reduce_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                int32_t op, int64_t root, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_reduce(work, {group, send, send_count, recv, recv_count, dtype, stream}, op, root);
  });
}

int32_t zero_group_gather(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                          int32_t dtype, int64_t root, void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_gather(work, {group, send, send_count, recv, recv_count, dtype, stream}, total, root);
  });
}

int32_t zero_group_gather_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                                int32_t dtype, int64_t root, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_gather(work, {group, send, send_count, recv, recv_count, dtype, stream}, total, root);
  });
}

int32_t zero_group_scatter(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                           int32_t dtype, int64_t root, void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_scatter(work, {group, send, send_count, recv, recv_count, dtype, stream}, total, root);
  });
}

int32_t zero_group_scatter_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int64_t total,
                                 int32_t dtype, int64_t root, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_scatter(work, {group, send, send_count, recv, recv_count, dtype, stream}, total, root);
  });
}

int32_t zero_group_all_to_all(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                              void *stream) {
  return api::run_work([&](Work &work) {
    return api::describe_all_to_all(work, {group, send, send_count, recv, recv_count, dtype, stream});
  });
}

int32_t zero_group_all_to_all_async(zero_group *group, const void *send, int64_t send_count, void *recv, int64_t recv_count, int32_t dtype,
                                    void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) {
    return api::describe_all_to_all(work, {group, send, send_count, recv, recv_count, dtype, stream});
  });
}

int32_t zero_group_send(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_send(work, {group, send, send_count, dtype, peer, stream}); });
}

int32_t zero_group_send_async(zero_group *group, const void *send, int64_t send_count, int32_t dtype, int64_t peer, void *stream,
                              zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_send(work, {group, send, send_count, dtype, peer, stream}); });
}

int32_t zero_group_recv(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_recv(work, {group, recv, recv_count, dtype, peer, stream}, recv); });
}

int32_t zero_group_recv_async(zero_group *group, void *recv, int64_t recv_count, int32_t dtype, int64_t peer, void *stream,
                              zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_recv(work, {group, recv, recv_count, dtype, peer, stream}, recv); });
}

int32_t zero_group_barrier(zero_group *group) {
  return api::run_work([&](Work &work) { return api::describe_barrier(work, group); });
}

int32_t zero_group_barrier_async(zero_group *group, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_barrier(work, group); });
}

int32_t zero_group_balance(zero_group *group, double seconds, int64_t items, int64_t total, int64_t unit, int64_t *out) {
  return api::run_work([&](Work &work) { return api::describe_balance(work, group, seconds, items, total, unit, out); });
}

int32_t zero_group_balance_async(zero_group *group, double seconds, int64_t items, int64_t total, int64_t unit, int64_t *out_share,
                                 zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_balance(work, group, seconds, items, total, unit, out_share); });
}
