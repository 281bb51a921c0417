/// @file Opening a save for a tool.
#include "checkpoint/open_save.h"

#include "checkpoint/difference.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/save_export.h"
#include "checkpoint/save_reader.h"
#include "checkpoint/saves.h"

#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

constexpr int64_t kMostExportedNbytes = int64_t{4} << 30;

}  // namespace

class OpenSave::Counter final : public Progress {
 public:
  explicit Counter(std::atomic<int64_t> &done) : done_(done) {}
  Status advance(int64_t nbytes) override {
    done_.fetch_add(nbytes, std::memory_order_relaxed);
    return {};
  }

 private:
  std::atomic<int64_t> &done_;
};

Status OpenSave::open(const std::string &path, std::shared_ptr<OpenSave> *out) {
  auto save = std::make_shared<OpenSave>();
  ZERO_TRY(open_saves(path, &save->saves_, &save->name_));
  if (save->name_.empty()) {
    FoundSave found;
    ZERO_TRY(find_save(save->saves_, 0, &found));
    save->name_ = std::move(found.name);
    save->manifest_ = std::move(found.manifest);
  } else {
    std::vector<std::byte> bytes;
    ZERO_TRY(read_manifest(save->saves_, save->name_, true, &bytes, &save->manifest_));
  }
  *out = std::move(save);
  return {};
}

void OpenSave::begin(int64_t total) {
  done_.store(0, std::memory_order_relaxed);
  total_.store(total, std::memory_order_relaxed);
}

std::string OpenSave::describe(TextForm form) const { return describe_text(manifest_, saves_.path_of(name_), form); }

Status OpenSave::verify() {
  begin(manifest_.nbytes());
  Counter counter(done_);
  SaveReader reader(manifest_, {});
  ZERO_TRY(reader.open(saves_, name_, 0));
  return reader.verify(&counter);
}

Status OpenSave::compare(OpenSave &other, int64_t *out_count) {
  begin(manifest_.nbytes() + other.manifest_.nbytes());
  Counter counter(done_);
  return diff_saves({saves_, name_, manifest_}, {other.saves_, other.name_, other.manifest_}, {}, &counter, &differences_[0],
                    &differences_[1], out_count);
}

Status OpenSave::export_to(const std::string &path) {
  int64_t total = 0;
  for (const Section &section : manifest_.description.sections) {
    for (const SavedTensor &tensor : section.tensors) {
      for (const SavedSlot &slot : tensor.slots) {
        if (is_exported(section, slot)) total += entry_count(tensor, slot) * disk_type_nbytes(slot.type);
      }
    }
  }
  begin(total);
  Counter counter(done_);
  return export_save({saves_, name_, manifest_}, path, kMostExportedNbytes, {}, &counter);
}

Status remove_older_save(const Folder &saves, const std::string &name) {
  uint64_t step = 0;
  std::string id;
  ZERO_CHECK(parse_save_name(name, &step, &id), ZERO_E_INVALID_ARGUMENT, "\"%.200s\" is not the name of a save", name.c_str());
  FoundSave newest;
  ZERO_TRY(find_save(saves, 0, &newest));
  ZERO_CHECK(newest.name != name, ZERO_E_STATE, "%s is the newest valid save, which is not removed", saves.path_of(name).c_str());
  int64_t freed = 0;
  return delete_save(saves, name, true, &freed);
}

}  // namespace zero::checkpoint
