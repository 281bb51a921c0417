/// @file zero/save.h.
#include "checkpoint/open_save.h"

#include "api/checks.h"
#include "api/nouns.h"
#include "checkpoint/saves.h"
#include "core/choice.h"

#include <string>
#include <vector>

namespace zero::api {
namespace {

constexpr Choice kForms[] = {{ZERO_TEXT_PLAIN, "ZERO_TEXT_PLAIN"}, {ZERO_TEXT_JSON, "ZERO_TEXT_JSON"}};

Status check_path_text(const char *path, const char *argument) {
  ZERO_TRY(check_pointer(path, argument));
  ZERO_CHECK(*path != '\0', ZERO_E_INVALID_ARGUMENT, "%s is empty, but must be a path", argument);
  return {};
}

Status check_form(int32_t form, checkpoint::TextForm *out) {
  ZERO_TRY(check_choice(kForms, form, "form"));
  *out = form == ZERO_TEXT_JSON ? checkpoint::TextForm::json : checkpoint::TextForm::plain;
  return {};
}

Status list_folder(const char *folder, int32_t form, std::string *out) {
  checkpoint::TextForm text_form{};
  ZERO_TRY(check_form(form, &text_form));
  ZERO_TRY(check_path_text(folder, "folder"));
  Folder saves;
  ZERO_TRY(Folder::open(folder, &saves));
  return checkpoint::list_text(saves, text_form, out);
}

Status list_prunable(const char *folder, int64_t keep, std::string *out) {
  ZERO_TRY(check_path_text(folder, "folder"));
  Folder saves;
  ZERO_TRY(Folder::open(folder, &saves));
  std::vector<std::string> names;
  ZERO_TRY(checkpoint::prunable_saves(saves, keep, &names));
  for (const std::string &name : names) *out += name + "\n";
  return {};
}

/// Returns a text that `make` writes, as the zero_describe_... functions promise.
template <class Make>
Status give_text(char *out, int64_t out_nbytes, int64_t *out_needed, Make make) {
  ZERO_TRY(check_text_outputs(out, out_nbytes));
  std::string text;
  ZERO_TRY(make(&text));
  copy_text(text, out, out_nbytes, out_needed);
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;

int32_t zero_save_open(const char *path, zero_save **out) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(api::check_pointer(out, "out"));
    ZERO_TRY(api::check_path_text(path, "path"));
    std::shared_ptr<checkpoint::OpenSave> save;
    ZERO_TRY(checkpoint::OpenSave::open(path, &save));
    *out = api::make_handle<zero_save>(std::move(save));
    return {};
  });
}

int32_t zero_save_list(const char *folder, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::guarded([&] {
    return api::give_text(out, out_nbytes, out_needed, [&](std::string *text) { return api::list_folder(folder, form, text); });
  });
}

int32_t zero_save_describe(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(save, "save", [&](const checkpoint::OpenSave &object) {
    return api::give_text(out, out_nbytes, out_needed, [&](std::string *text) -> Status {
      checkpoint::TextForm text_form{};
      ZERO_TRY(api::check_form(form, &text_form));
      *text = object.describe(text_form);
      return {};
    });
  });
}

int32_t zero_save_verify(zero_save *save) {
  return api::call(save, "save", [&](checkpoint::OpenSave &object) { return object.verify(); });
}

int32_t zero_save_compare(zero_save *save, zero_save *other, int64_t *out_count) {
  return api::call(save, "save", [&](checkpoint::OpenSave &object) -> Status {
    std::shared_ptr<checkpoint::OpenSave> second;
    ZERO_TRY(api::find(other, "other", &second));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    return object.compare(*second, out_count);
  });
}

int32_t zero_save_differences(const zero_save *save, int32_t form, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::call(save, "save", [&](const checkpoint::OpenSave &object) {
    return api::give_text(out, out_nbytes, out_needed, [&](std::string *text) -> Status {
      checkpoint::TextForm text_form{};
      ZERO_TRY(api::check_form(form, &text_form));
      *text = object.differences(text_form);
      return {};
    });
  });
}

int32_t zero_save_export(zero_save *save, const char *path) {
  return api::call(save, "save", [&](checkpoint::OpenSave &object) -> Status {
    ZERO_TRY(api::check_path_text(path, "path"));
    return object.export_to(path);
  });
}

int32_t zero_save_prunable(const char *folder, int64_t keep, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return api::guarded([&] {
    return api::give_text(out, out_nbytes, out_needed, [&](std::string *text) { return api::list_prunable(folder, keep, text); });
  });
}

int32_t zero_save_remove(const char *folder, const char *name) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(api::check_path_text(folder, "folder"));
    ZERO_TRY(api::check_path_text(name, "name"));
    Folder saves;
    ZERO_TRY(Folder::open(folder, &saves));
    return checkpoint::remove_older_save(saves, name);
  });
}

int32_t zero_save_progress(const zero_save *save, int64_t *out_done, int64_t *out_total) {
  return api::call(save, "save", [&](const checkpoint::OpenSave &object) -> Status {
    ZERO_TRY(api::check_pointer(out_done, "out_done"));
    ZERO_TRY(api::check_pointer(out_total, "out_total"));
    *out_done = object.done();
    *out_total = object.total();
    return {};
  });
}

void zero_save_release(zero_save *save) { api::release(save, "save"); }
