/// @file zero/group.h: creation, and queries that need no other ranks. Collectives are in
/// group_collectives.cpp.
#include "group/group.h"

#include "api/exit_release.h"
#include "api/request.h"
#include "core/config.h"
#include "core/partition.h"
#include "core/utf8.h"
#include "engine/compute/device_reducer.h"
#include "engine/compute/host_kernels.h"
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "group/launcher.h"
#include "group/tcp/tcp_id.h"

#include <cstring>

namespace zero::api {
namespace {

constexpr int64_t kLongestNameNbytes = 64;
constexpr int64_t kIdNbytes = 256;
constexpr int64_t kLongestDeadlineMs = int64_t{1} << 40;
constexpr int64_t kLargestInt32 = 0x7fffffff;

/// Uses a new queue for an operation that has no group yet.
void describe_creation(Work &work, Task task) {
  work.queue = std::make_shared<OperationQueue>();
  work.task.emplace(std::move(task));
  work.makes = Work::Makes::group;
}

/// The group reduces with the host kernels of this machine and, if it uses a device, with the
/// device's.
ReducerFactory reducer_factory(const Config &config) {
  return [config](const Place &place) -> std::shared_ptr<const Reducer> {
    const int64_t threads = host_threads(config, place);
    if (config.i64(ZERO_KEY_NCCL) == 0) return std::make_shared<HostReducer>(threads);
    return std::make_shared<GroupReducer>(config.str(ZERO_KEY_CUDA_MODULE), config.i64(ZERO_KEY_DEVICE), threads);
  };
}

Status check_device(const Config &config) {
  ZERO_CHECK(config.i64(ZERO_KEY_NCCL) == 0 || config.i64(ZERO_KEY_DEVICE) >= 0, ZERO_E_INVALID_ARGUMENT,
             "the group reaches devices (ZERO_KEY_NCCL), but ZERO_KEY_DEVICE names none");
  return {};
}

/// Reads the options of a new group.
Status read_config(const zero_config *config, std::shared_ptr<Config> *out) {
  ZERO_TRY(find_config(config, out));
  return check_device(**out);
}

Status check_name(const char *name, int64_t size) {
  if (name == nullptr) {
    ZERO_CHECK(size == 1, ZERO_E_INVALID_ARGUMENT, "name is NULL, but size is %lld; NULL is allowed only with 1", lld(size));
    return {};
  }
  const auto nbytes = static_cast<int64_t>(::strnlen(name, kLongestNameNbytes + 1));
  ZERO_CHECK(nbytes >= 1 && nbytes <= kLongestNameNbytes, ZERO_E_INVALID_ARGUMENT, "name \"%.*s\" has %s, but must have 1 to %lld bytes",
             shown_nbytes(name, 80), name, nbytes == 0 ? "no bytes" : "more bytes", lld(kLongestNameNbytes));
  const size_t valid = valid_nbytes(name, static_cast<size_t>(nbytes));
  ZERO_CHECK(valid == static_cast<size_t>(nbytes), ZERO_E_INVALID_ARGUMENT, "name \"%s\" is not UTF-8: byte %zu is %#x; give names as UTF-8",
             name, valid, static_cast<unsigned>(static_cast<unsigned char>(name[valid])));
  return {};
}

Status describe_local(Work &work, const char *name, int64_t rank, int64_t size, const zero_config *config) {
  std::shared_ptr<Config> options;
  ZERO_TRY(read_config(config, &options));
  ZERO_TRY(check_bounds(size, 1, kMostRanksOfHost, "size"));
  ZERO_TRY(check_bounds(rank, 0, size - 1, "rank"));
  ZERO_TRY(check_name(name, size));
  describe_creation(
      work, connect_local_group(name != nullptr ? name : "", rank, size, GroupOptions(*options), reducer_factory(*options), &work.group));
  return {};
}

Status describe_mpi(Work &work, int64_t comm, const zero_config *config) {
  std::shared_ptr<Config> options;
  ZERO_TRY(read_config(config, &options));
  ZERO_TRY(check_bounds(comm, ZERO_MPI_WORLD, kLargestInt32, "comm"));
  describe_creation(work, released_at_exit(connect_mpi_group(comm, GroupOptions(*options), reducer_factory(*options), &work.group)));
  return {};
}

/// As if ZERO_KEY_NCCL were 1.
Status describe_nccl(Work &work, const char *id, int64_t rank, int64_t size, const zero_config *config) {
  std::shared_ptr<Config> given;
  ZERO_TRY(find_config(config, &given));
  Config options = *given;
  ZERO_TRY(options.set_i64(ZERO_KEY_NCCL, 1));
  ZERO_TRY(check_bounds(size, 1, kMostRanksOnDevices, "size"));
  ZERO_TRY(check_bounds(rank, 0, size - 1, "rank"));
  ZERO_TRY(check_pointer(id, "id"));
  std::string text(id, ::strnlen(id, kIdNbytes));
  ZERO_TRY(check_tcp_id(text));
  ZERO_TRY(check_device(options));
  describe_creation(work, connect_nccl_group(std::move(text), rank, size, GroupOptions(options), reducer_factory(options), &work.group));
  return {};
}

Status make_id(const zero_config *config, char *out, int64_t out_nbytes, int64_t *out_needed) {
  std::shared_ptr<Config> options;
  ZERO_TRY(find_config(config, &options));
  ZERO_TRY(check_text_outputs(out, out_nbytes));
  ZERO_CHECK(out_nbytes == 0 || out_nbytes >= kIdNbytes, ZERO_E_INVALID_ARGUMENT, "out_nbytes is %lld, but must be 0 or at least %lld",
             lld(out_nbytes), lld(kIdNbytes));
  std::string id(kIdNbytes - 1, ' ');
  if (out_nbytes > 0) ZERO_TRY(make_tcp_id(options->str(ZERO_KEY_RENDEZVOUS_HOST), options->i64(ZERO_KEY_RENDEZVOUS_PORT), &id));
  copy_text(id, out, out_nbytes, out_needed);
  return {};
}

Status describe_env(Work &work, const zero_config *config) {
  std::shared_ptr<Config> options;
  ZERO_TRY(read_config(config, &options));
  describe_creation(work, released_at_exit(connect_env_group(GroupOptions(*options), reducer_factory(*options), &work.group)));
  return {};
}

Status describe_split(Work &work, zero_group *handle, int64_t color, int64_t key) {
  std::shared_ptr<Group> group;
  ZERO_TRY(find(handle, "group", &group));
  work.queue = group->queue();
  work.task.emplace(split(*group, color, key, &work.group));
  work.owner = std::move(group);
  work.makes = Work::Makes::group;
  return {};
}

/// A blocking call that makes a group.
template <class Describe>
int32_t make_group(zero_group **out, Describe &&describe, const char *function = __builtin_FUNCTION()) noexcept {
  return run_work(
      [&](Work &work) -> Status {
        ZERO_TRY(describe(work));
        return check_pointer(out, "out");
      },
      [&](Work &work) -> Status {
        zero_group *made = nullptr;
        if (work.group != nullptr) made = make_handle<zero_group>(std::move(work.group));
        *out = made;
        return {};
      },
      function);
}

/// A call that reads one number of a group.
template <class Read>
int32_t read_number(const zero_group *handle, int64_t *out, Read &&read, const char *function = __builtin_FUNCTION()) noexcept {
  return call(
      handle, "group",
      [&](const Group &group) -> Status {
        ZERO_TRY(check_pointer(out, "out"));
        *out = read(group);
        return {};
      },
      function);
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_group_create_local(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_group **out) {
  return api::make_group(out, [&](Work &work) { return api::describe_local(work, name, rank, size, config); });
}

int32_t zero_group_create_local_async(const char *name, int64_t rank, int64_t size, const zero_config *config, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_local(work, name, rank, size, config); });
}

int32_t zero_group_create_mpi(int64_t comm, const zero_config *config, zero_group **out) {
  return api::make_group(out, [&](Work &work) { return api::describe_mpi(work, comm, config); });
}

int32_t zero_group_create_mpi_async(int64_t comm, const zero_config *config, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_mpi(work, comm, config); });
}

int32_t zero_group_create_nccl(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_group **out) {
  return api::make_group(out, [&](Work &work) { return api::describe_nccl(work, id, rank, size, config); });
}

int32_t zero_group_create_nccl_async(const char *id, int64_t rank, int64_t size, const zero_config *config, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_nccl(work, id, rank, size, config); });
}

int32_t zero_group_unique_id(const zero_config *config, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::guarded([&]() -> Status { return api::make_id(config, out, out_nbytes, out_needed); });
}

int32_t zero_group_create_env(const zero_config *config, zero_group **out) {
  return api::make_group(out, [&](Work &work) { return api::describe_env(work, config); });
}

int32_t zero_group_create_env_async(const zero_config *config, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_env(work, config); });
}

int32_t zero_group_launcher(char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::guarded_without_start([&]() -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    Launch launch;
    ZERO_TRY(read_launch(&launch));
    api::copy_text(launch.variable, out, out_nbytes, out_needed);
    return {};
  });
}

int32_t zero_group_split(zero_group *group, int64_t color, int64_t key, zero_group **out) {
  return api::make_group(out, [&](Work &work) { return api::describe_split(work, group, color, key); });
}

int32_t zero_group_split_async(zero_group *group, int64_t color, int64_t key, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_split(work, group, color, key); });
}

int32_t zero_group_rank(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return object.rank(); });
}

int32_t zero_group_size(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return object.size(); });
}

int32_t zero_group_local_rank(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return object.place().local_rank; });
}

int32_t zero_group_local_size(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return object.place().local_size; });
}

int32_t zero_group_host_count(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return object.place().host_count; });
}

int32_t zero_group_share(const zero_group *group, int64_t count, int64_t rank, int64_t *out_offset, int64_t *out_count) {
  return api::call(group, "group", [&](Group &object) -> Status {
    ZERO_CHECK(count >= 0, ZERO_E_INVALID_ARGUMENT, "count is %lld, but must not be negative", lld(count));
    ZERO_TRY(api::check_bounds(rank, 0, object.size() - 1, "rank"));
    ZERO_TRY(api::check_pointer(out_offset, "out_offset"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    const Range share = even_share(count, rank, object.size());
    *out_offset = share.begin;
    *out_count = share.count();
    return {};
  });
}

int32_t zero_group_status(zero_group *group) {
  return api::call(group, "group", [&](Group &object) -> Status {
    object.queue()->progress();
    object.progress_message_queues();
    return object.look();
  });
}

int32_t zero_group_abort(zero_group *group, const char *reason) {
  return api::call(group, "group", [&](Group &object) -> Status {
    const char *why = reason != nullptr ? reason : "no reason given";
    object.fail(Status::error(ZERO_E_ABORTED, "rank %lld called zero_group_abort: %.*s", lld(object.rank()), shown_nbytes(why, 500), why));
    return {};
  });
}

int32_t zero_group_set_deadline(zero_group *group, int64_t deadline_ms) {
  return api::call(group, "group", [&](Group &object) -> Status {
    ZERO_TRY(api::check_bounds(deadline_ms, 1, api::kLongestDeadlineMs, "deadline_ms"));
    object.set_deadline_ms(deadline_ms);
    return {};
  });
}

int32_t zero_group_quiet(const zero_group *group, int64_t *out) {
  return api::read_number(group, out, [](const Group &object) { return int64_t{object.quiet() ? 1 : 0}; });
}

void zero_group_release(zero_group *group) { api::release(group, "group"); }
