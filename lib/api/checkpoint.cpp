/// @file zero/checkpoint.h.
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/exported.h"

#include "api/checks.h"
#include "api/nouns.h"
#include "api/optimizer_work.h"
#include "api/request.h"
#include "api/structs.h"
#include "core/choice.h"
#include "engine/buffer/buffer.h"

#include <string>
#include <utility>

namespace zero::api {
namespace {

constexpr Choice kParts[] = {{ZERO_PART_ALL, "ZERO_PART_ALL"}, {ZERO_PART_PARAMS, "ZERO_PART_PARAMS"}};
constexpr Choice kScopes[] = {{ZERO_SCOPE_ONE, "ZERO_SCOPE_ONE"}, {ZERO_SCOPE_EACH, "ZERO_SCOPE_EACH"}};

/// No path that the system accepts is longer.
constexpr size_t kMostPathNbytes = 4095;

Status check_path(const char *given, const char *argument) {
  ZERO_TRY(check_pointer(given, argument));
  const std::string path = given;
  ZERO_CHECK(!path.empty() && path.size() <= kMostPathNbytes, ZERO_E_INVALID_ARGUMENT, "%s has %zu bytes, but must be a path of 1 to %zu bytes",
             argument, path.size(), kMostPathNbytes);
  return {};
}

Status check_folder(const char *folder) { return check_path(folder, "folder"); }

/// Makes the work run in the checkpoint's queue, and keeps the checkpoint alive.
void own(Work &work, const std::shared_ptr<Checkpoint> &checkpoint) {
  work.queue = checkpoint->queue();
  work.owner = checkpoint;
}

Status find_checkpoint(Work &work, const zero_checkpoint *handle, const char *path, const char *argument, void *stream,
                       std::shared_ptr<Checkpoint> *out) {
  ZERO_TRY(find(handle, "checkpoint", out));
  ZERO_TRY(check_path(path, argument));
  ZERO_TRY((*out)->check_stream(stream));
  own(work, *out);
  return {};
}

/// Makes a checkpoint for the one call of the short form.
Status make_checkpoint(Work &work, const zero_optimizer *handle, const char *folder, void *stream, std::shared_ptr<Checkpoint> *out) {
  std::shared_ptr<Optimizer> optimizer;
  ZERO_TRY(find_optimizer(work, handle, stream, &optimizer));
  ZERO_TRY(check_folder(folder));
  ZERO_TRY(Checkpoint::create_for(std::move(optimizer), out));
  own(work, *out);
  return {};
}

Task make_save(Work &work, Checkpoint &checkpoint, const char *folder, void *stream, bool background) {
  return background ? checkpoint.save_in_background(folder, stream, &work.checkpoint, &work.begun)
                    : checkpoint.save(folder, stream, &work.checkpoint);
}

Status describe_short_save(Work &work, zero_optimizer *handle, const char *folder, void *stream, bool background) {
  std::shared_ptr<Checkpoint> checkpoint;
  ZERO_TRY(make_checkpoint(work, handle, folder, stream, &checkpoint));
  work.task.emplace(make_save(work, *checkpoint, folder, stream, background));
  return {};
}

Status describe_resume(Work &work, zero_optimizer *handle, const char *folder, void *stream, int64_t *out_found) {
  std::shared_ptr<Checkpoint> checkpoint;
  ZERO_TRY(make_checkpoint(work, handle, folder, stream, &checkpoint));
  ZERO_TRY(check_pointer(out_found, "out_found"));
  work.task.emplace(checkpoint->load(folder, ZERO_PART_ALL, stream, &work.checkpoint, out_found));
  return {};
}

Status describe_save(Work &work, zero_checkpoint *handle, const char *folder, void *stream, zero_checkpoint_result *out,
                     bool background) {
  std::shared_ptr<Checkpoint> checkpoint;
  ZERO_TRY(find_checkpoint(work, handle, folder, "folder", stream, &checkpoint));
  if (out != nullptr) ZERO_TRY(check_struct(out, "out_result"));
  Task task = make_save(work, *checkpoint, folder, stream, background);
  work.task.emplace(out != nullptr ? write_after(std::move(task), work.checkpoint, out) : std::move(task));
  return {};
}

Status describe_load(Work &work, zero_checkpoint *handle, const char *folder, int32_t part, void *stream, zero_checkpoint_result *out) {
  std::shared_ptr<Checkpoint> checkpoint;
  ZERO_TRY(find_checkpoint(work, handle, folder, "folder", stream, &checkpoint));
  ZERO_TRY(check_choice(kParts, part, "part"));
  if (out != nullptr) ZERO_TRY(check_struct(out, "out_result"));
  Task task = checkpoint->load(folder, part, stream, &work.checkpoint);
  work.task.emplace(out != nullptr ? write_after(std::move(task), work.checkpoint, out) : std::move(task));
  return {};
}

Status describe_export(Work &work, zero_checkpoint *handle, const char *path, int32_t dtype, void *stream, zero_checkpoint_result *out) {
  std::shared_ptr<Checkpoint> checkpoint;
  ZERO_TRY(find_checkpoint(work, handle, path, "path", stream, &checkpoint));
  ZERO_TRY(check_choice(kExportDtypes, dtype, "dtype"));
  if (out != nullptr) ZERO_TRY(check_struct(out, "out_result"));
  Task task = checkpoint->export_params(path, dtype, stream, &work.checkpoint);
  work.task.emplace(out != nullptr ? write_after(std::move(task), work.checkpoint, out) : std::move(task));
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_checkpoint_result_init(zero_checkpoint_result *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_optimizer_save(zero_optimizer *optimizer, const char *folder, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_short_save(work, optimizer, folder, stream, false); });
}

int32_t zero_optimizer_save_async(zero_optimizer *optimizer, const char *folder, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_short_save(work, optimizer, folder, stream, true); });
}

int32_t zero_optimizer_resume(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found) {
  return api::run_work([&](Work &work) { return api::describe_resume(work, optimizer, folder, stream, out_found); });
}

int32_t zero_optimizer_resume_async(zero_optimizer *optimizer, const char *folder, void *stream, int64_t *out_found, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_resume(work, optimizer, folder, stream, out_found); });
}

int32_t zero_checkpoint_create(zero_group *group, const zero_config *config, zero_checkpoint **out) {
  return api::guarded([&]() -> Status {
    std::shared_ptr<Group> ranks;
    std::shared_ptr<Config> options;
    std::shared_ptr<Checkpoint> checkpoint;
    ZERO_TRY(api::find(group, "group", &ranks));
    ZERO_TRY(api::find_config(config, &options));
    ZERO_TRY(api::check_pointer(out, "out"));
    ZERO_TRY(Checkpoint::create(std::move(ranks), *options, &checkpoint));
    *out = api::make_handle<zero_checkpoint>(std::move(checkpoint));
    return {};
  });
}

int32_t zero_checkpoint_add_optimizer(zero_checkpoint *checkpoint, const char *prefix, zero_optimizer *optimizer) {
  return api::call(checkpoint, "checkpoint", [&](Checkpoint &object) -> Status {
    std::shared_ptr<Optimizer> added;
    ZERO_TRY(api::check_pointer(prefix, "prefix"));
    ZERO_TRY(api::find(optimizer, "optimizer", &added));
    ZERO_TRY(object.check_idle());
    return object.add_optimizer(prefix, std::move(added));
  });
}

int32_t zero_checkpoint_add_buffer(zero_checkpoint *checkpoint, const char *name, zero_buffer *buffer) {
  return api::call(checkpoint, "checkpoint", [&](Checkpoint &object) -> Status {
    std::shared_ptr<Buffer> added;
    ZERO_TRY(api::check_pointer(name, "name"));
    ZERO_TRY(api::find(buffer, "buffer", &added));
    ZERO_TRY(object.check_idle());
    return object.things().add_buffer(name, std::move(added));
  });
}

int32_t zero_checkpoint_add_tensor(zero_checkpoint *checkpoint, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim,
                                   void *data, int32_t scope) {
  return api::call(checkpoint, "checkpoint", [&](Checkpoint &object) -> Status {
    ZERO_TRY(api::check_pointer(name, "name"));
    ZERO_TRY(api::check_dtype(dtype));
    ZERO_TRY(check_choice(api::kScopes, scope, "scope"));
    ZERO_TRY(object.check_idle());
    return object.things().add_tensor(name, dtype, shape, ndim, data, scope);
  });
}

int32_t zero_checkpoint_set_text(zero_checkpoint *checkpoint, const char *key, const char *text) {
  return api::call(checkpoint, "checkpoint", [&](Checkpoint &object) -> Status {
    ZERO_TRY(api::check_pointer(key, "key"));
    ZERO_TRY(object.check_idle());
    return object.things().set_text(key, text);
  });
}

int32_t zero_checkpoint_get_text(const zero_checkpoint *checkpoint, const char *key, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(checkpoint, "checkpoint", [&](const Checkpoint &object) -> Status {
    std::string text;
    ZERO_TRY(api::check_pointer(key, "key"));
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    ZERO_TRY(object.check_idle());
    ZERO_TRY(object.things().get_text(key, &text));
    api::copy_text(text, out, out_nbytes, out_needed);
    return {};
  });
}

int32_t zero_checkpoint_rename(zero_checkpoint *checkpoint, const char *in_file, const char *here) {
  return api::call(checkpoint, "checkpoint", [&](Checkpoint &object) -> Status {
    ZERO_TRY(api::check_pointer(in_file, "in_file"));
    ZERO_TRY(api::check_pointer(here, "here"));
    ZERO_TRY(object.check_idle());
    return object.rename(in_file, here);
  });
}

int32_t zero_checkpoint_save(zero_checkpoint *checkpoint, const char *folder, void *stream, zero_checkpoint_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_save(work, checkpoint, folder, stream, out_result, false); });
}

int32_t zero_checkpoint_save_async(zero_checkpoint *checkpoint, const char *folder, void *stream, zero_checkpoint_result *out_result,
                                   zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_save(work, checkpoint, folder, stream, out_result, true); });
}

int32_t zero_checkpoint_load(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream,
                             zero_checkpoint_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_load(work, checkpoint, folder, part, stream, out_result); });
}

int32_t zero_checkpoint_load_async(zero_checkpoint *checkpoint, const char *folder, int32_t part, void *stream,
                                   zero_checkpoint_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_load(work, checkpoint, folder, part, stream, out_result); });
}

int32_t zero_checkpoint_export(zero_checkpoint *checkpoint, const char *path, int32_t dtype, void *stream,
                               zero_checkpoint_result *out_result) {
  return api::run_work([&](Work &work) { return api::describe_export(work, checkpoint, path, dtype, stream, out_result); });
}

int32_t zero_checkpoint_export_async(zero_checkpoint *checkpoint, const char *path, int32_t dtype, void *stream,
                                     zero_checkpoint_result *out_result, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_export(work, checkpoint, path, dtype, stream, out_result); });
}

int32_t zero_checkpoint_skipped(const zero_checkpoint *checkpoint, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(checkpoint, "checkpoint", [&](const Checkpoint &object) -> Status {
    ZERO_TRY(api::check_text_outputs(out, out_nbytes));
    ZERO_TRY(object.check_idle());
    api::copy_text(object.skipped(), out, out_nbytes, out_needed);
    return {};
  });
}

void zero_checkpoint_release(zero_checkpoint *checkpoint) { api::release(checkpoint, "checkpoint"); }
