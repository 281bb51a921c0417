/// @file zero/server.h.
#include "engine/server/server.h"

#include "api/request.h"

#include <algorithm>
#include <cstring>

namespace zero::api {
namespace {

/// Begins each call on a server object that may wait.
Status find_server(Work &work, const zero_server *handle, std::shared_ptr<Server> *out) {
  ZERO_TRY(find(handle, "server", out));
  work.queue = (*out)->queue();
  work.owner = *out;
  return {};
}

/// Runs in order with the group's own collectives.
Status describe_seal(Work &work, zero_server *handle) {
  std::shared_ptr<Server> server;
  ZERO_TRY(find_server(work, handle, &server));
  work.queue = server->group()->queue();
  work.task.emplace(server->seal());
  return {};
}

void write_counts(const ServerCounts &counts, zero_server_result *out) {
  zero_server_result made{};
  made.push_count = counts.served.pushes;
  made.pull_count = counts.served.pulls;
  made.skipped_count = counts.skipped;
  made.waited_count = counts.waited;
  made.left_count = counts.served.left;
  made.lost_count = counts.served.lost;
  made.received_nbytes = counts.received_nbytes;
  made.sent_nbytes = counts.sent_nbytes;
  made.greatest_age = counts.served.greatest_age;
  made.age_0_count = counts.served.ages[0];
  made.age_1_count = counts.served.ages[1];
  made.age_2_count = counts.served.ages[2];
  made.age_4_count = counts.served.ages[3];
  made.age_8_count = counts.served.ages[4];
  made.age_16_count = counts.served.ages[5];
  write_struct(made, out);
}

Task run_and_count(Server &server, zero_server_result *out) {
  ServerCounts counts;
  ZERO_CO_AWAIT(server.run(&counts));
  if (out != nullptr) write_counts(counts, out);
  co_return Status();
}

Status describe_run(Work &work, zero_server *handle, zero_server_result *out) {
  std::shared_ptr<Server> server;
  ZERO_TRY(find_server(work, handle, &server));
  if (out != nullptr) ZERO_TRY(check_struct(out, "out_result"));
  work.task.emplace(run_and_count(*server, out));
  return {};
}

/// Checks the values of a push or a pull.
Status find_values(Work &work, zero_server *handle, const void *data, int64_t count, std::shared_ptr<Server> *out) {
  ZERO_TRY(find_server(work, handle, out));
  ZERO_CHECK(count == (*out)->count(), ZERO_E_INVALID_ARGUMENT, "count is %lld, but the servers hold %lld elements", lld(count),
             lld((*out)->count()));
  return check_elements(data, count, ZERO_DTYPE_F32, "data", "count");
}

Status describe_push(Work &work, zero_server *handle, const void *data, int64_t count) {
  std::shared_ptr<Server> server;
  ZERO_TRY(find_values(work, handle, data, count, &server));
  work.task.emplace(server->push(static_cast<const float *>(data)));
  return {};
}

Status describe_pull(Work &work, zero_server *handle, void *data, int64_t count) {
  std::shared_ptr<Server> server;
  ZERO_TRY(find_values(work, handle, data, count, &server));
  work.task.emplace(server->pull(static_cast<float *>(data)));
  return {};
}

Status describe_leave(Work &work, zero_server *handle) {
  std::shared_ptr<Server> server;
  ZERO_TRY(find_server(work, handle, &server));
  work.task.emplace(server->leave());
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_server_result_init(zero_server_result *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_server_create(zero_group *group, const zero_config *config, int64_t count, zero_server **out) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<Group> whole;
    std::shared_ptr<Config> options;
    std::shared_ptr<Server> server;
    ZERO_TRY(api::find(group, "group", &whole));
    ZERO_TRY(api::find_config(config, &options));
    ZERO_TRY(api::check_pointer(out, "out"));
    ZERO_TRY(Server::create(std::move(whole), *options, count, &server));
    *out = api::make_handle<zero_server>(std::move(server));
    return {};
  });
}

int32_t zero_server_seal(zero_server *server) {
  return api::run_work([&](Work &work) { return api::describe_seal(work, server); });
}

int32_t zero_server_seal_async(zero_server *server, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_seal(work, server); });
}

int32_t zero_server_shard(const zero_server *server, void **out_data, int64_t *out_offset, int64_t *out_count) {
  return api::call(server, "server", [&](const Server &object) -> Status {
    ZERO_TRY(api::check_pointer(out_data, "out_data"));
    ZERO_TRY(api::check_pointer(out_offset, "out_offset"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    Server::Shard shard{};
    ZERO_TRY(object.shard(&shard));
    *out_data = shard.data;
    *out_offset = shard.range.begin;
    *out_count = shard.range.count();
    return {};
  });
}

int32_t zero_server_replay(zero_server *server, const void *data, int64_t count) {
  return api::call(server, "server", [&](Server &object) -> Status {
    ZERO_TRY(api::check_elements(data, count, ZERO_DTYPE_U16, "data", "count"));
    return object.replay({static_cast<const uint16_t *>(data), static_cast<size_t>(count)});
  });
}

int32_t zero_server_record(const zero_server *server, void *data, int64_t count, int64_t *out_count) {
  return api::call(server, "server", [&](const Server &object) -> Status {
    ZERO_TRY(api::check_elements(data, count, ZERO_DTYPE_U16, "data", "count"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    std::span<const uint16_t> record;
    ZERO_TRY(object.record(&record));
    const auto given = std::min(record.size(), static_cast<size_t>(count));
    if (given > 0) std::memcpy(data, record.data(), given * sizeof(uint16_t));
    *out_count = std::ssize(record);
    return {};
  });
}

int32_t zero_server_run(zero_server *server, zero_server_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_run(work, server, out_result); });
}

int32_t zero_server_run_async(zero_server *server, zero_server_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_run(work, server, out_result); });
}

int32_t zero_server_push(zero_server *server, const void *data, int64_t count) {
  return api::run_work([&](Work &work) { return api::describe_push(work, server, data, count); });
}

int32_t zero_server_push_async(zero_server *server, const void *data, int64_t count, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_push(work, server, data, count); });
}

int32_t zero_server_pull(zero_server *server, void *data, int64_t count) {
  return api::run_work([&](Work &work) { return api::describe_pull(work, server, data, count); });
}

int32_t zero_server_pull_async(zero_server *server, void *data, int64_t count, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_pull(work, server, data, count); });
}

int32_t zero_server_leave(zero_server *server) {
  return api::run_work([&](Work &work) { return api::describe_leave(work, server); });
}

int32_t zero_server_leave_async(zero_server *server, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_leave(work, server); });
}

void zero_server_release(zero_server *server) { api::release(server, "server"); }
