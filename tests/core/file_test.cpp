/// @file File and Folder: what is retried, what is refused, and what errors say.
#include "core/file.h"

#include "core/signals_blocked.h"
#include "tests/forwarded_calls.h"

#include <gtest/gtest.h>

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

namespace zero {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "zero-file-XXXXXX";
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_TRUE(Folder::open(path_, &folder_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static std::span<const std::byte> bytes(const char *text) { return std::as_bytes(std::span(text, std::strlen(text))); }

  std::string path_;
  Folder folder_;
};

TEST_F(FileTest, WhatIsWrittenIsReadBack) {
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  EXPECT_GT(file.fd(), 2);
  EXPECT_TRUE(file.allocate(100).ok());
  EXPECT_TRUE(file.write_at(bytes("hello"), 3).ok());
  EXPECT_TRUE(file.truncate(8).ok());
  EXPECT_TRUE(file.sync().ok());
  EXPECT_TRUE(file.close().ok());
  EXPECT_FALSE(file.valid());
  ASSERT_TRUE(folder_.open_file("a", &file).ok());
  std::array<std::byte, 8> read{};
  ASSERT_TRUE(file.read_at(read, 8, 0).ok());
  EXPECT_EQ(std::memcmp(read.data(), "\0\0\0hello", 8), 0);
  EXPECT_EQ(file.read_at(read, 8, 1).code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(file.read_at(read, 7, 1).ok());
  int64_t nbytes = 0;
  EXPECT_TRUE(folder_.file_size("a", &nbytes).ok());
  EXPECT_EQ(nbytes, 8);
}

TEST_F(FileTest, NothingIsReplacedAndErrorsNameCallPathAndReason) {
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  const Status status = folder_.create_file("a", &file);
  EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
  EXPECT_EQ(std::string(status.text()), "cannot create " + path_ + "/a: File exists");
  ASSERT_TRUE(folder_.make("f").ok());
  EXPECT_EQ(folder_.make("f").code(), ZERO_E_SYSTEM);
  EXPECT_EQ(Folder::open(path_ + "/none", &folder_).code(), ZERO_E_NOT_FOUND);
}

TEST_F(FileTest, LinksAndPipesAreNoFiles) {
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/link").c_str()), 0);
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  File file;
  EXPECT_EQ(folder_.open_file("link", &file).code(), ZERO_E_CHECKPOINT);
  EXPECT_EQ(folder_.open_file("pipe", &file).code(), ZERO_E_CHECKPOINT);  // and does not wait for a writer
  EXPECT_EQ(folder_.open_file("none", &file).code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(folder_.open_file("link", &file, nullptr, Folder::Links::followed).ok());
  Folder inner;
  ASSERT_EQ(::symlink("/etc", (path_ + "/linked").c_str()), 0);
  EXPECT_FALSE(folder_.open_folder("linked", &inner).ok());
}

TEST_F(FileTest, EntriesAreListedRenamedAndRemoved) {
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  ASSERT_TRUE(folder_.make("f").ok());
  ASSERT_TRUE(folder_.rename("a", "b").ok());
  std::vector<FolderEntry> entries;
  ASSERT_TRUE(folder_.list(&entries).ok());
  ASSERT_EQ(entries.size(), 2U);
  ASSERT_TRUE(folder_.list(&entries).ok());
  EXPECT_EQ(entries.size(), 2U) << "a list can be made again";
  bool there = true;
  EXPECT_TRUE(folder_.has("a", &there).ok());
  EXPECT_FALSE(there);
  Folder inner;
  ASSERT_TRUE(folder_.open_folder("f", &inner).ok());
  EXPECT_TRUE(folder_.is_folder("f", inner, &there).ok());
  EXPECT_TRUE(there);
  ASSERT_TRUE(folder_.rename("f", "g").ok());
  EXPECT_TRUE(folder_.is_folder("f", inner, &there).ok());
  EXPECT_FALSE(there);
  EXPECT_TRUE(folder_.unlink("b").ok());
  EXPECT_TRUE(folder_.remove_folder("g").ok());
  int reason = 0;
  EXPECT_FALSE(folder_.unlink("b", &reason).ok());
  EXPECT_EQ(reason, ENOENT);
  EXPECT_TRUE(folder_.sync().ok());
}

TEST_F(FileTest, AWritePastTheLimitIsAnErrorNotASignal) {
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::vector<std::byte> data(8192);
  const Status status = file.write_at(data, 0);
  const Status reserved = file.allocate(1 << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
  EXPECT_NE(std::strstr(status.text(), std::strerror(EFBIG)), nullptr) << status.text();
  EXPECT_EQ(reserved.code(), ZERO_E_SYSTEM);
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
}

TEST_F(FileTest, APendingSignalOfTheProgramStays) {
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  sigset_t xfsz;
  ::sigemptyset(&xfsz);
  ::sigaddset(&xfsz, SIGXFSZ);
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &xfsz, &before), 0);
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGXFSZ), 0);
  const std::vector<std::byte> data(10);
  EXPECT_TRUE(file.write_at(data, 0).ok());
  const timespec at_once{};
  EXPECT_EQ(::sigtimedwait(&xfsz, nullptr, &at_once), SIGXFSZ);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

/// The signals that are blocked during each kind of call.
class MaskedCalls final : public tests::ForwardedCalls {
 public:
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override {
    note(&reads);
    return ForwardedCalls::read_at(file, out, nbytes, offset);
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    note(&writes);
    return ForwardedCalls::write_at(file, data, nbytes, offset);
  }
  int sync(int file) override {
    note(&syncs);
    return ForwardedCalls::sync(file);
  }

  std::vector<int> reads, writes, syncs;

 private:
  static void note(std::vector<int> *out) {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGTERM, SIGINT, SIGSEGV, SIGUSR1, SIGXFSZ}) {
      if (::sigismember(&mask, signal) == 1) out->push_back(signal);
    }
  }
};

TEST_F(FileTest, OnlyTheSignalOfTheLimitIsBlockedAndOnlyDuringWrites) {
  MaskedCalls calls;
  const FileCallsReplaced replaced(calls);
  File file;
  ASSERT_TRUE(folder_.create_file("a", &file).ok());
  std::vector<std::byte> data(10);
  ASSERT_TRUE(file.write_at(data, 0).ok());
  ASSERT_TRUE(file.sync().ok());
  ASSERT_TRUE(folder_.open_file("a", &file).ok());
  ASSERT_TRUE(file.read_at(data, data.size(), 0).ok());
  EXPECT_EQ(calls.writes, std::vector<int>{SIGXFSZ});
  EXPECT_EQ(calls.syncs, std::vector<int>{});
  EXPECT_EQ(calls.reads, std::vector<int>{});
}

TEST(SignalsBlockedTest, AThreadThatIsStartedMeanwhileHasAllBlocked) {
  sigset_t mask;
  ::sigemptyset(&mask);
  {
    const SignalsBlocked blocked;
    std::thread([&mask] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); }).join();
  }
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGXFSZ}) EXPECT_EQ(::sigismember(&mask, signal), 1) << signal;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0);
}

}  // namespace
}  // namespace zero
