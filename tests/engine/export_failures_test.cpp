/// @file Exports that are refused or fail: the same error on all ranks, and nothing of the export is left.
#include "tests/engine/exports.h"
#include "tests/forwarded_calls.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zero::test::export_failures_test {
namespace {

namespace fs = std::filesystem;
using namespace exports;

class FailedExports : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, FailedExports, testing::Range<int64_t>(0, 4));

/// The same code and text on all ranks.
class Statuses {
 public:
  void add(const Status &status) {
    const std::lock_guard lock(mutex_);
    all_.push_back(status);
  }
  void expect(int32_t code, const char *text) const {
    ASSERT_FALSE(all_.empty());
    for (const Status &status : all_) {
      EXPECT_EQ(status.code(), code) << status.text();
      EXPECT_STREQ(status.text(), all_[0].text());
      EXPECT_TRUE(contains(status, text)) << text << " is not in: " << status.text();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Status> all_;
};

void expect_refused(const std::string &path, int32_t code, const char *text) {
  Statuses statuses;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const Model model = odd_model();
    const auto optimizer = begun(group, 2, model);
    statuses.add(export_to(*checkpoint_of(optimizer), path));
    step_alone(*optimizer, model, 0);
  });
  statuses.expect(code, text);
}

TEST(Exported, FoldersThatMustNotReceiveFilesAreRefused) {
  SaveFolder folder;
  const Model model = odd_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) { expect_ok(save(*checkpoint_of(begun(group, 1, model)), folder.path()), "save"); });
  const std::string one = folder.path() + "/" + folder.saves().at(0);
  const auto before = [&] {
    std::vector<std::string> names;
    for (const auto &entry : fs::recursive_directory_iterator(folder.path())) names.push_back(entry.path().string());
    return names;
  };
  const std::vector<std::string> names = before();
  expect_refused(folder.path(), ZERO_E_INVALID_ARGUMENT, "of a save, which an export must not mix with");
  expect_refused(folder.path() + "//", ZERO_E_INVALID_ARGUMENT, "of a save");
  expect_refused(one, ZERO_E_INVALID_ARGUMENT, "of a save");
  expect_refused(one + "/model.safetensors", ZERO_E_INVALID_ARGUMENT, "of a save");
  expect_refused(one + "/more", ZERO_E_INVALID_ARGUMENT, "is a save");
  expect_refused(folder.path() + "/save-00000000000000000009-00000000000000000000000000000000", ZERO_E_INVALID_ARGUMENT, "has the name of a save");
  expect_refused(folder.path() + "/nowhere/export", ZERO_E_NOT_FOUND, "nowhere");
  expect_refused(folder.path() + "/nowhere/export.safetensors", ZERO_E_NOT_FOUND, "nowhere");
  expect_refused("/dev/null/export", ZERO_E_SYSTEM, "/dev/null");
  EXPECT_EQ(before(), names);
  std::ofstream(folder.path() + "/file") << "text";
  fs::create_directory(folder.path() + "/used");
  std::ofstream(folder.path() + "/used/adapter.safetensors") << "text";
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    expect_ok(export_to(*checkpoint_of(begun(group, 1, model)), folder.path() + "/beside.safetensors"), "export");
    expect_ok(load(*checkpoint_of(sealed(group, 1, model)), folder.path()), "load");
  });
  expect_refused(folder.path() + "/used/", ZERO_E_INVALID_ARGUMENT, "adapter.safetensors");
  EXPECT_TRUE(fs::exists(folder.path() + "/used/adapter.safetensors"));
}

TEST(Exported, CallsThatDisagreeOrComeTooEarlyWriteNothing) {
  SaveFolder folder;
  const Model model = odd_model();
  Statuses paths;
  Statuses dtypes;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    EXPECT_EQ(export_to(*checkpoint_of(sealed(group, 1, model)), folder.path() + "/early").code(), ZERO_E_STATE);
    const auto optimizer = begun(group, 1, model);
    const auto checkpoint = checkpoint_of(optimizer);
    paths.add(export_to(*checkpoint, folder.path() + (group->rank() == 1 ? "/a" : "/b")));
    dtypes.add(export_to(*checkpoint, folder.path() + "/c", group->rank() == 1 ? ZERO_DTYPE_F16 : ZERO_DTYPE_F32));
    std::shared_ptr<Checkpoint> empty;
    expect_ok(Checkpoint::create(group, Config(), &empty), "create");
    EXPECT_EQ(export_to(*empty, folder.path() + "/d").code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(export_to(*checkpoint, folder.path() + "/e", ZERO_DTYPE_F64).code(), ZERO_E_INVALID_ARGUMENT);
    expect_ok(export_to(*checkpoint, folder.path() + "/f"), "export");
  });
  paths.expect(ZERO_E_MISMATCH, "differ between ranks");
  dtypes.expect(ZERO_E_MISMATCH, "differ between ranks");
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"f"});
}

/// The system's calls, of which one fails.
class OneFails final : public tests::ForwardedCalls {
 public:
  OneFails(const char *call, const char *name, int reason) : call_(call), name_(name), reason_(reason) {}

  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    if (refuses("open", name)) return OwnedFd();
    OwnedFd opened = ForwardedCalls::open_at(folder, name, flags, mode);
    const std::lock_guard lock(mutex_);
    if (opened.valid()) names_[opened.get()] = name;
    return opened;
  }
  int make_folder(int folder, const char *name, mode_t mode) override {
    return refuses("mkdir", name) ? -1 : ForwardedCalls::make_folder(folder, name, mode);
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    return refuses("write", name_of(file)) ? -1 : ForwardedCalls::write_at(file, data, nbytes, offset);
  }
  int allocate(int file, int64_t nbytes) override { return refuses("allocate", name_of(file)) ? -1 : ForwardedCalls::allocate(file, nbytes); }
  int sync(int file) override { return refuses("sync", name_of(file)) ? -1 : ForwardedCalls::sync(file); }
  int close(OwnedFd file) override {
    const bool refused = refuses("close", name_of(file.get()));
    const int status = ForwardedCalls::close(std::move(file));
    if (!refused) return status;
    errno = reason_;
    return -1;
  }
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    return refuses("rename", to) ? -1 : ForwardedCalls::rename(folder, from, to_folder, to);
  }

  int64_t refused() const { return refused_.load(); }

 private:
  std::string name_of(int file) {
    const std::lock_guard lock(mutex_);
    return names_[file];
  }
  bool refuses(const std::string &call, const std::string &name) {
    if (call != call_ || name.find(name_) == std::string::npos) return false;
    refused_.fetch_add(1);
    errno = reason_;
    return true;
  }

  const std::string call_;
  const std::string name_;
  const int reason_;
  std::mutex mutex_;
  std::map<int, std::string> names_;
  std::atomic<int64_t> refused_{0};
};

int64_t open_files() { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); }

/// At each call: all ranks have the error, no file and no descriptor is left, and the run goes on.
TEST_P(FailedExports, AFailedExportLeavesNothing) {
  struct Failure {
    const char *call;
    const char *name;
    int reason;
  };
  const Failure failures[] = {{"mkdir", "export", EACCES},
                              {"open", "model-00002", EACCES},
                              {"allocate", "model-00003", ENOSPC},
                              {"write", "model-00001", EIO},
                              {"write", "model-00003", ENOSPC},
                              {"sync", "model-00002", EIO},
                              {"close", "model-00003", EDQUOT},
                              {"rename", "model-00002", EIO},
                              {"write", "index.json", ENOSPC},
                              {"rename", "index.json", EIO}};
  const Model model = odd_model();
  for (const Failure &failure : failures) {
    SaveFolder folder;
    Statuses statuses;
    OneFails calls(failure.call, failure.name, failure.reason);
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun(group, GetParam(), model);
      const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SYNC, 1}});
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      std::unique_ptr<FileCallsReplaced> replaced;
      if (group->rank() == 0) replaced = std::make_unique<FileCallsReplaced>(calls);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      const int64_t before = group->rank() == 0 ? open_files() : 0;
      statuses.add(export_to(*checkpoint, folder.path() + "/export"));
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      replaced.reset();
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      EXPECT_TRUE(group->rank() != 0 || open_files() <= before + 3) << "the group of votes has some";
      step_alone(*optimizer, model, 0);
      expect_ok(export_to(*checkpoint, folder.path() + "/export"), "export");
    });
    EXPECT_GT(calls.refused(), 0) << failure.call << " " << failure.name;
    statuses.expect(ZERO_E_SYSTEM, failure.name);
    EXPECT_EQ(read_export(folder.path() + "/export").size(), static_cast<size_t>(model.tensors()));
  }
}

/// A single file is replaced only by a whole one.
TEST(Exported, AFailedExportKeepsTheFileThatWasThere) {
  SaveFolder folder;
  const Model model = odd_model();
  const std::string path = folder.path() + "/model.safetensors";
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, 3, model);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(export_to(*checkpoint, path), "export");
  });
  const auto before = read_plain(path);
  for (const char *call : {"write", "rename"}) {
    OneFails calls(call, "model.safetensors", ENOSPC);
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun(group, 3, model);
      step_alone(*optimizer, model, 0);
      const auto checkpoint = checkpoint_of(optimizer);
      std::unique_ptr<FileCallsReplaced> replaced;
      if (group->rank() == 0) replaced = std::make_unique<FileCallsReplaced>(calls);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      EXPECT_EQ(export_to(*checkpoint, path).code(), ZERO_E_SYSTEM);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      replaced.reset();
    });
    EXPECT_EQ(calls.refused(), 1);
    const auto after = read_plain(path);
    for (const auto &[name, tensor] : before) EXPECT_EQ(after.at(name).bytes, tensor.bytes) << name;
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"model.safetensors"});
  }
}

}  // namespace
}  // namespace zero::test::export_failures_test
