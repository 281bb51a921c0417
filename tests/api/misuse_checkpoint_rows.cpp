/// @file The rows of checkpoints.
#include "misuse.h"

namespace zero::test {
namespace {

Arg folders() {
  static const std::string too_long(4096, 'f');
  return texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "folder is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "folder has 0 bytes"),
                text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "4096"), text("/dev/null/saves", ZERO_E_SYSTEM, "/dev/null/saves")});
}

/// Folders of loads. For a load, a missing folder is a folder without saves.
Arg loaded_folders() {
  static const std::string too_long(4096, 'f');
  return texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "folder is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "folder has 0 bytes"),
                text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "4096")});
}

void add_list_rows(Rows &rows) {
  static const std::string too_long(256, 'n');
  static const int64_t shape[1] = {World::kCount};
  static const int64_t bad_shape[1] = {-1};
  const Arg names = texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "name is NULL"), text("", ZERO_E_INVALID_ARGUMENT, ""),
                           text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "255"), text("caf\xe9", ZERO_E_INVALID_ARGUMENT, "UTF-8")});
  add(rows, "zero_checkpoint_create", zero_checkpoint_create,
      [](Bench &b) {
        return std::tuple<zero_group *, const zero_config *, zero_checkpoint **>(
            b.world.group, nullptr, reinterpret_cast<zero_checkpoint **>(&b.outputs.memory.pointers[0]));
      },
      {group_handle(), optional_config(), address("out")});
  add(rows, "zero_checkpoint_add_optimizer", zero_checkpoint_add_optimizer,
      [](Bench &b) { return std::tuple<zero_checkpoint *, const char *, zero_optimizer *>(b.world.checkpoint, "more.", b.world.building); },
      {checkpoint_handle(),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "prefix is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "another optimizer"),
              text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "256"), text("caf\xe9", ZERO_E_INVALID_ARGUMENT, "UTF-8")}),
       optimizer_handle()});
  add(rows, "zero_checkpoint_add_buffer", zero_checkpoint_add_buffer,
      [](Bench &b) { return std::tuple<zero_checkpoint *, const char *, zero_buffer *>(b.world.checkpoint, "table", b.world.buffer); },
      {checkpoint_handle(), names, buffer_handle()});
  add(rows, "zero_checkpoint_add_tensor", zero_checkpoint_add_tensor,
      [](Bench &b) {
        return std::tuple<zero_checkpoint *, const char *, int32_t, const int64_t *, int64_t, void *, int32_t>(
            b.world.checkpoint, "mine", ZERO_DTYPE_F32, shape, 1, b.data, ZERO_SCOPE_ONE);
      },
      {checkpoint_handle(), names, dtype(),
       texts({{0, ZERO_E_INVALID_ARGUMENT, "shape"}, {reinterpret_cast<uintptr_t>(bad_shape), ZERO_E_INVALID_ARGUMENT, "-1"}}),
       values({-1, 17, INT64_MAX, INT64_MIN}), address("data"), values({-1, 2, INT32_MAX, INT32_MIN})});
}

void add_text_rows(Rows &rows) {
  static const std::string too_long(256, 'k');
  static const std::string long_text(65'537, 't');
  add(rows, "zero_checkpoint_set_text", zero_checkpoint_set_text,
      [](Bench &b) { return std::tuple<zero_checkpoint *, const char *, const char *>(b.world.checkpoint, "epoch", "3"); },
      {checkpoint_handle(),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "key is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "key has 0 bytes"),
              text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "key has 256 bytes")}),
       texts({text(long_text.c_str(), ZERO_E_INVALID_ARGUMENT, "text has 65537 bytes"), text("caf\xe9", ZERO_E_INVALID_ARGUMENT, "0xe9")})});
  add(rows, "zero_checkpoint_get_text", zero_checkpoint_get_text,
      [](Bench &b) {
        zero_checkpoint_set_text(b.world.checkpoint, "seed", "17");
        return std::tuple<const zero_checkpoint *, const char *, char *, int64_t, int64_t *>(b.world.checkpoint, "seed", b.outputs.memory.text,
                                                                                             256, &b.outputs.memory.integers[0]);
      },
      {checkpoint_handle(),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "key is NULL"), text("other", ZERO_E_NOT_FOUND, "other")}), address("out"),
       values({-1, INT64_MIN}), anything()});
  add(rows, "zero_checkpoint_rename", zero_checkpoint_rename,
      [](Bench &b) { return std::tuple<zero_checkpoint *, const char *, const char *>(b.world.checkpoint, "old.*", "new.*"); },
      {checkpoint_handle(),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "in_file is NULL"), text("old", ZERO_E_INVALID_ARGUMENT, "either both end with .*")}),
       texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "here is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "neither may be empty")})});
  add(rows, "zero_checkpoint_skipped", zero_checkpoint_skipped,
      [](Bench &b) {
        return std::tuple<const zero_checkpoint *, char *, int64_t, int64_t *>(b.world.checkpoint, b.outputs.memory.text, 256,
                                                                               &b.outputs.memory.integers[0]);
      },
      {checkpoint_handle(), address("out"), values({-1, INT64_MIN}), anything()});
}

void add_file_rows(Rows &rows) {
  add(rows, "zero_checkpoint_result_init", zero_checkpoint_result_init,
      [](Bench &b) { return std::tuple(&b.outputs.memory.saved, sizeof(zero_checkpoint_result)); }, {address("out"), struct_size(96)});
  add_pair(rows, "zero_optimizer_save", zero_optimizer_save, zero_optimizer_save_async,
           [](Bench &b) { return std::tuple<zero_optimizer *, const char *, void *>(b.world.running, empty_folder(), nullptr); },
           {optimizer_handle(), folders(), stream()});
  add_pair(rows, "zero_optimizer_resume", zero_optimizer_resume, zero_optimizer_resume_async,
           [](Bench &b) {
             return std::tuple<zero_optimizer *, const char *, void *, int64_t *>(b.world.running, empty_folder(), nullptr,
                                                                                   &b.outputs.memory.integers[0]);
           },
           {optimizer_handle(), loaded_folders(), stream(), address("out_found")});
  add_pair(rows, "zero_checkpoint_save", zero_checkpoint_save, zero_checkpoint_save_async,
           [](Bench &b) {
             return std::tuple<zero_checkpoint *, const char *, void *, zero_checkpoint_result *>(b.world.checkpoint, empty_folder(), nullptr,
                                                                                                  &b.outputs.memory.saved);
           },
           {checkpoint_handle(), folders(), stream(), result_struct("out_result", true)});
  add_pair(rows, "zero_checkpoint_load", zero_checkpoint_load, zero_checkpoint_load_async,
           [](Bench &b) {
             return std::tuple<zero_checkpoint *, const char *, int32_t, void *, zero_checkpoint_result *>(
                 b.world.checkpoint, empty_folder(), ZERO_PART_ALL, nullptr, &b.outputs.memory.saved);
           },
           {checkpoint_handle(), loaded_folders(), values({-1, 2, INT32_MAX, INT32_MIN}), stream(), result_struct("out_result", true)});
  static const std::string too_long(4096, 'p');
  add_pair(rows, "zero_checkpoint_export", zero_checkpoint_export, zero_checkpoint_export_async,
           [](Bench &b) {
             return std::tuple<zero_checkpoint *, const char *, int32_t, void *, zero_checkpoint_result *>(
                 b.world.checkpoint, empty_folder(), ZERO_EXPORT_AS_KEPT, nullptr, &b.outputs.memory.saved);
           },
           {checkpoint_handle(),
            texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "path is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "path has 0 bytes"),
                   text(too_long.c_str(), ZERO_E_INVALID_ARGUMENT, "4096"), text("/dev/null/export", ZERO_E_SYSTEM, "/dev/null/export"),
                   text("/nowhere/export", ZERO_E_NOT_FOUND, "/nowhere")}),
            values({-1, ZERO_DTYPE_F64, ZERO_DTYPE_I32, ZERO_DTYPE_F8_E4M3, INT32_MAX, INT32_MIN}), stream(), result_struct("out_result", true)});
}

}  // namespace

void add_checkpoint_rows(Rows &rows) {
  add_list_rows(rows);
  add_text_rows(rows);
  add_file_rows(rows);
}

}  // namespace zero::test
