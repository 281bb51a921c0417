/// @file Every error of every call of a save: older saves stay, what is reported as saved is saved, and the next save succeeds.
#include "tests/checkpoint/faulty_calls.h"
#include "tests/checkpoint/model_files.h"
#include "tests/checkpoint/sample_run.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace zero::tests {
namespace {

using namespace checkpoint;

const SampleShape kShape{.ranks = 2, .model = true, .extras = true, .minimal = true};

/// Two saves, of which the older one will have to go.
ModelTree two_saves(std::vector<std::string> *names) {
  ModelFiles files;
  const FileCallsReplaced replaced(files);
  Folder saves;
  EXPECT_TRUE(Folder::open(ModelFiles::kRoot, &saves).ok());
  for (uint64_t step = 1; step <= 2; ++step) names->push_back(save_sample(saves, kShape, step, {.keep = 2}).name);
  return files.tree;
}

Status read_and_compare(const Folder &saves, const std::string &name) {
  std::vector<std::byte> bytes;
  Manifest manifest;
  ZERO_TRY(read_manifest(saves, name, true, &bytes, &manifest));
  return compare_sample(saves, name, manifest, 1);
}

class ErrnoCase {
 public:
  ErrnoCase(const ModelTree &before, const std::vector<std::string> &names) : files_(before), faulty_(files_), names_(names) {}

  void run(int64_t at, int reason, bool always) {
    faulty_.fail(at, reason, always);
    SampleSaved saved;
    {
      const FileCallsReplaced replaced(faulty_);
      Folder saves;
      const Status opened = Folder::open(ModelFiles::kRoot, &saves);
      saved.status = opened;
      if (opened.ok()) saved = save_sample(saves, kShape, 3, {.keep = 2});
    }
    SCOPED_TRACE(faulty_.failed() + " (call " + std::to_string(at) + ") " + (reason < 0 ? "short" : std::strerror(reason)) +
                 (always ? ", always: " : ", once: ") + saved.status.text());
    EXPECT_FALSE(faulty_.synced_again());
    check_report(saved, reason);
    check_files(saved);
  }

  int64_t count() const { return faulty_.count(); }
  bool failed() const { return !faulty_.failed().empty(); }

 private:
  void check_report(const SampleSaved &saved, int reason) const {
    const bool harmless = reason == FaultyCalls::kShort || (reason == EINTR && faulty_.failed() != "fsync");
    EXPECT_TRUE(saved.status.ok() || !harmless);
    if (saved.status.ok()) return;
    EXPECT_TRUE(saved.status.code() == ZERO_E_SYSTEM) << saved.status.code();
    EXPECT_NE(std::strstr(saved.status.text(), std::strerror(reason)), nullptr);
    EXPECT_NE(std::strstr(saved.status.text(), ModelFiles::kRoot), nullptr) << "no path";
    const bool full = reason == ENOSPC || reason == EDQUOT;
    EXPECT_TRUE(!full || std::strstr(saved.status.text(), "then save again") != nullptr) << "no remedy";
  }

  void check_files(const SampleSaved &saved) {
    const FileCallsReplaced replaced(files_);
    Folder saves;
    ASSERT_TRUE(Folder::open(ModelFiles::kRoot, &saves).ok());
    FoundSave found;
    const Status status = find_save(saves, 0, &found);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(found.passed_over, 0);
    const Status whole = compare_sample(saves, found.name, found.manifest, 1);
    EXPECT_TRUE(whole.ok()) << whole.text();
    EXPECT_TRUE(!saved.committed || found.name == saved.name) << found.name;
    EXPECT_TRUE(saved.committed || saved.maybe || found.name == names_[1]) << found.name;
    if (!saved.committed) {
      for (const std::string &name : names_) EXPECT_TRUE(read_and_compare(saves, name).ok()) << "an older save is gone";
    }
    const SampleSaved next = save_sample(saves, kShape, 4, {.keep = 2});
    EXPECT_TRUE(next.status.ok()) << next.status.text();
    EXPECT_TRUE(read_and_compare(saves, next.name).ok());
  }

  ModelFiles files_;
  FaultyCalls faulty_;
  const std::vector<std::string> &names_;
};

TEST(Errno, OfEachCallLosesNothing) {
  std::vector<std::string> names;
  const ModelTree before = two_saves(&names);
  ErrnoCase unharmed(before, names);
  unharmed.run(-1, 0, false);
  const int64_t calls = unharmed.count();
  int64_t cases = 0;
  test::Every every(5);
  for (int64_t at = 0; at < calls; ++at) {
    for (const int reason : {ENOSPC, EDQUOT, EIO, EFBIG, EROFS, EACCES, ESTALE, EINTR, FaultyCalls::kShort}) {
      for (const bool always : {false, true}) {
        if (always && (reason == EINTR || reason == FaultyCalls::kShort)) continue;  // for ever a signal: no call ever returns
        if (!every.next()) continue;
        ErrnoCase one(before, names);
        one.run(at, reason, always);
        cases += one.failed() ? 1 : 0;
      }
    }
  }
  const int64_t wanted = test::few_tests() ? 200 : 1000;
  std::printf("%lld cases of errors at %lld calls, wanted %lld\n", lld(cases), lld(calls), lld(wanted));
  EXPECT_GE(cases, wanted);
}

}  // namespace
}  // namespace zero::tests
