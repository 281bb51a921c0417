/// @file The rows of zero/save.h.
#include "misuse.h"

namespace zero::test {
namespace {

/// Folders that must contain saves.
Arg saved_folders() {
  return texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "folder is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "folder is empty"),
                text("/dev/null/saves", ZERO_E_SYSTEM, "/dev/null/saves"), text("/nowhere", ZERO_E_NOT_FOUND, "/nowhere")});
}

Arg forms() { return values({-1, 2, INT32_MAX, INT32_MIN}); }
Arg text_nbytes() { return values({-1, INT64_MIN}); }

using TextCall = int32_t (*)(const zero_save *, int32_t, char *, int64_t, int64_t *);

/// Adds rows for zero_save_describe and zero_save_differences.
void add_text(Rows &rows, const char *name, TextCall function) {
  add(rows, name, function,
      [](Bench &b) {
        return std::tuple<const zero_save *, int32_t, char *, int64_t, int64_t *>(open_save(b), ZERO_TEXT_PLAIN, b.outputs.memory.text, 256,
                                                                                  &b.outputs.memory.integers[0]);
      },
      {save_handle(), forms(), address("out"), text_nbytes(), anything()});
}

void add_save_calls(Rows &rows) {
  add(rows, "zero_save_open", zero_save_open,
      [](Bench &b) {
        return std::tuple<const char *, zero_save **>(saved_folder(b), reinterpret_cast<zero_save **>(&b.outputs.memory.pointers[0]));
      },
      {texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "path is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "path is empty"),
              text("/nowhere", ZERO_E_NOT_FOUND, "/nowhere"), text(empty_folder(), ZERO_E_NOT_FOUND, empty_folder())}),
       address("out")});
  add(rows, "zero_save_verify", zero_save_verify, [](Bench &b) { return std::tuple(open_save(b)); }, {save_handle()});
  add(rows, "zero_save_compare", zero_save_compare,
      [](Bench &b) { return std::tuple(open_save(b), open_save(b), &b.outputs.memory.integers[0]); },
      {save_handle(), save_handle(), address("out_count")});
  add(rows, "zero_save_export", zero_save_export,
      [](Bench &b) { return std::tuple<zero_save *, const char *>(open_save(b), empty_folder()); },
      {save_handle(), texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "path is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "path is empty"),
                             text("/dev/null/model.safetensors", ZERO_E_SYSTEM, "/dev/null")})});
  add(rows, "zero_save_progress", zero_save_progress,
      [](Bench &b) {
        return std::tuple<const zero_save *, int64_t *, int64_t *>(open_save(b), &b.outputs.memory.integers[0], &b.outputs.memory.integers[1]);
      },
      {save_handle(), address("out_done"), address("out_total")});
}

void add_folder_calls(Rows &rows) {
  add(rows, "zero_save_list", zero_save_list,
      [](Bench &b) {
        return std::tuple<const char *, int32_t, char *, int64_t, int64_t *>(saved_folder(b), ZERO_TEXT_JSON, b.outputs.memory.text, 256,
                                                                             &b.outputs.memory.integers[0]);
      },
      {saved_folders(), forms(), address("out"), text_nbytes(), anything()});
  add(rows, "zero_save_prunable", zero_save_prunable,
      [](Bench &b) {
        return std::tuple<const char *, int64_t, char *, int64_t, int64_t *>(saved_folder(b), int64_t{1}, b.outputs.memory.text, int64_t{256},
                                                                             &b.outputs.memory.integers[0]);
      },
      {saved_folders(), values({0, -1, INT64_MIN}), address("out"), text_nbytes(), anything()});
  add(rows, "zero_save_remove", zero_save_remove,
      [](Bench &b) { return std::tuple<const char *, const char *>(saved_folder(b), "step-0000000000-0000000000000000"); },
      {saved_folders(), texts({text(nullptr, ZERO_E_INVALID_ARGUMENT, "name is NULL"), text("", ZERO_E_INVALID_ARGUMENT, "name is empty"),
                         text("..", ZERO_E_INVALID_ARGUMENT, "not the name of a save")})});
}

}  // namespace

void add_save_rows(Rows &rows) {
  add_save_calls(rows);
  add_text(rows, "zero_save_describe", zero_save_describe);
  add_text(rows, "zero_save_differences", zero_save_differences);
  add_folder_calls(rows);
}

}  // namespace zero::test
