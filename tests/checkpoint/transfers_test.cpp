/// @file Transfers: a file that turns out not to be direct, and exceptions while a transfer is under way.
#include "checkpoint/save_export.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/transfers.h"
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"
#include "tests/forwarded_calls.h"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace zero::tests {
namespace {

using namespace checkpoint;

/// A file system that takes the flag for direct files, and refuses direct writes. The first write is refused once another one came, or none
/// within a time; the other is refused when the flag is gone.
class RefusesDirectWrites final : public ForwardedCalls {
 public:
  int set_direct(int, bool direct) override {
    const std::lock_guard lock(mutex_);
    direct_ = direct;
    changed_.notify_all();
    return 0;
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    std::unique_lock lock(mutex_);
    if (!direct_) return ForwardedCalls::write_at(file, data, nbytes, offset);
    ++refused;
    changed_.notify_all();
    if (refused == 1) {
      changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return refused > 1; });
    } else {
      changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !direct_; });
    }
    errno = EINVAL;
    return -1;
  }
  int refused = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool direct_ = false;
};

TEST(Transfers, ADirectFileThatIsRefusedAtItsFirstWriteIsWrittenAllTheSame) {
  const ScratchFolder scratch;
  RefusesDirectWrites calls;
  const FileCallsReplaced replaced(calls);
  StreamedFile file;
  ASSERT_TRUE(scratch.open().create_file("a", &file.file).ok());
  file.direct = file.file.set_direct(true);
  ASSERT_TRUE(file.direct);
  std::unique_ptr<Transfers> transfers;
  ASSERT_TRUE(Transfers::make({.staging_nbytes = 2 << 20}, &transfers).ok());
  const size_t whole = transfers->buffer(0).size();
  std::ranges::fill(transfers->buffer(0), std::byte{1});
  std::ranges::fill(transfers->buffer(1), std::byte{2});
  transfers->begin_write(0, &file, whole, 0);
  transfers->begin_write(1, &file, 1000, static_cast<int64_t>(whole));
  for (int number = 0; number < Transfers::kBuffers; ++number) {
    const Status status = transfers->end(number);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_EQ(calls.refused, 1);
  EXPECT_FALSE(file.direct);
  int64_t nbytes = 0;
  ASSERT_TRUE(file.file.size(&nbytes).ok());
  EXPECT_EQ(nbytes, static_cast<int64_t>(whole) + 1000);
}

/// Reads take a while. Notes reads whose descriptor was closed under them.
class SlowReads final : public ForwardedCalls {
 public:
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override {
    if (nbytes < (512 << 10)) return ForwardedCalls::read_at(file, out, nbytes, offset);
    ++slow;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (::fcntl(file, F_GETFD) < 0) ++closed;
    return ForwardedCalls::read_at(file, out, nbytes, offset);
  }
  std::atomic<int> slow{0};
  std::atomic<int> closed{0};
};

class ThrowingSink final : public BlockSink, public PlainSink {
 public:
  Status take(const Wanted &, int64_t, std::span<const std::byte>) override { throw std::bad_alloc(); }
  Status take(const PlainRange &, int64_t, std::span<const std::byte>) override { throw std::bad_alloc(); }
};

/// A save with a parameter of several blocks, and that parameter.
struct LargeSave {
  explicit LargeSave(const Folder &saves) {
    EXPECT_TRUE(save_sample(saves, {.ranks = 1, .scale = 1000}, 1).status.ok());
    EXPECT_TRUE(find_save(saves, 0, &found).ok());
    const SavedTensor &tensor = found.manifest.description.sections[0].tensors[0];
    EXPECT_GT(tensor.count(), 2 << 20);
    wanted = {0, 0, 0, -1, {0, tensor.count()}};
  }
  FoundSave found;
  Wanted wanted;
};

TEST(Transfers, NoFileIsClosedUnderAReadWhenTheReaderOfASaveThrows) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const LargeSave save(saves);
  SlowReads calls;
  const FileCallsReplaced replaced(calls);
  SaveReader reader(save.found.manifest, {.staging_nbytes = 2 << 20});
  ASSERT_TRUE(reader.open(saves, save.found.name, 0).ok());
  ThrowingSink sink;
  EXPECT_THROW(static_cast<void>(reader.read({&save.wanted, 1}, sink, nullptr)), std::bad_alloc);
  EXPECT_GE(calls.slow.load(), 1);
  EXPECT_EQ(calls.closed.load(), 0);
}

TEST(Transfers, NoFileIsClosedUnderAReadWhenTheReaderOfPlainTensorsThrows) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const LargeSave save(saves);
  const std::string path = scratch.path() + "/model.safetensors";
  ASSERT_TRUE(export_save({saves, save.found.name, save.found.manifest}, path, 1 << 30, {}, nullptr).ok());
  TensorFiles files;
  ASSERT_TRUE(TensorFiles::open(path, &files).ok());
  const int64_t tensor = files.find("embed.weight");
  const PlainRange all{tensor, 0, files.tensors()[static_cast<size_t>(tensor)].entry.nbytes()};
  SlowReads calls;
  const FileCallsReplaced replaced(calls);
  ThrowingSink sink;
  EXPECT_THROW(static_cast<void>(files.read({&all, 1}, {.staging_nbytes = 2 << 20}, sink, nullptr)), std::bad_alloc);
  EXPECT_GE(calls.slow.load(), 1);
  EXPECT_EQ(calls.closed.load(), 0);
}

}  // namespace
}  // namespace zero::tests
