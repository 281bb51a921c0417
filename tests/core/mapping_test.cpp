/// @file Mappings: shared between threads by id and between processes by file, gone with the last
/// holder, clear errors.
#include "core/mapping.h"

#include "tests/core/failures.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <string>

namespace zero::mapping_test {
namespace {

int64_t page() { return ::sysconf(_SC_PAGESIZE); }

TEST(Mapping, IsZeroedAndAtLeastOnePage) {
  for (const int64_t nbytes : {int64_t{0}, int64_t{1}, page(), page() + 1, int64_t{1} << 20}) {
    std::shared_ptr<Mapping> mapping;
    ASSERT_TRUE(Mapping::create_shared(nbytes, &mapping).ok());
    EXPECT_EQ(mapping->nbytes(), std::max(nbytes, page()));
    EXPECT_GE(mapping->fd(), 0);
    for (int64_t i = 0; i < mapping->nbytes(); ++i) ASSERT_EQ(mapping->data()[i], std::byte{0});
    std::memset(mapping->data(), 1, static_cast<size_t>(mapping->nbytes()));
  }
}

TEST(Mapping, AttachingInTheSameProcessGivesTheSameMappingAndClosesTheFile) {
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::create_shared(100, &first).ok());
  const int fd = ::dup(first->fd());
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(first->id(), fd, first->nbytes(), &second).ok());
  EXPECT_EQ(first.get(), second.get());
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(Mapping, ThreadsAttachTheirMemoryByItsIdAlone) {
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::create_for_threads(page() + 1, &first).ok());
  EXPECT_EQ(first->fd(), -1);
  EXPECT_EQ(first->nbytes(), page() + 1);
  for (int64_t i = 0; i < first->nbytes(); ++i) ASSERT_EQ(first->data()[i], std::byte{0});
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(first->id(), -1, first->nbytes(), &second).ok());
  EXPECT_EQ(first.get(), second.get());
  const uint64_t id = first->id();
  first.reset();
  second.reset();
  EXPECT_FALSE(Mapping::attach(id, -1, page(), &second).ok()) << "gone with its last holder";
}

TEST(Mapping, AttachingAnIdThatThisProcessDoesNotHaveMapsTheFile) {
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::create_shared(100, &first).ok());
  const int fd = ::dup(first->fd());
  first->data()[5] = std::byte{42};
  const uint64_t other_id = first->id() + 1;
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(other_id, fd, first->nbytes(), &second).ok());
  EXPECT_NE(first->data(), second->data());
  EXPECT_EQ(second->data()[5], std::byte{42});
  EXPECT_EQ(second->id(), other_id);
  first.reset();
  EXPECT_EQ(second->data()[5], std::byte{42}) << "lives until the last holder lets go";
}

TEST(Mapping, AnIdCanBeMappedAgainAfterItsLastHolderLeft) {
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::create_shared(100, &first).ok());
  const uint64_t id = first->id();
  const int fd = ::dup(first->fd());
  first.reset();
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(id, fd, page(), &second).ok());
  EXPECT_EQ(second->id(), id);
}

/// The flags of the pages at an address, as the system names them.
std::string page_flags(const void *address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= wanted && wanted < end;
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Mapping, WhatWasAttachedHoldsNoFileAndIsInNoCoreDump) {
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::create_shared(100, &first).ok());
  const int fd = ::dup(first->fd());
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(first->id() + 1, fd, first->nbytes(), &second).ok());
  EXPECT_EQ(second->fd(), -1);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_NE(page_flags(second->data()).find(" dd "), std::string::npos) << page_flags(second->data());
  EXPECT_NE(page_flags(first->data()).find(" sh "), std::string::npos);
  EXPECT_EQ(page_flags(first->data()).find(" dd "), std::string::npos);
}

TEST(Mapping, ProcessesSeeEachOthersWrites) {
  std::shared_ptr<Mapping> mapping;
  ASSERT_TRUE(Mapping::create_shared(4, &mapping).ok());
  const auto results = test::run_process_ranks(
      4,
      [&](int64_t rank, int) {
        std::shared_ptr<Mapping> mine;
        if (!Mapping::attach(mapping->id() + 1, ::dup(mapping->fd()), mapping->nbytes(), &mine).ok()) return 1;
        mine->data()[rank] = static_cast<std::byte>(rank + 1);
        return 0;
      },
      30'000);
  ASSERT_TRUE(results.all_exited_with(0)) << results.describe();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(mapping->data()[i], static_cast<std::byte>(i + 1));
}

TEST(Mapping, AdoptedMemoryIsFoundByItsIdAndGivenBackOnce) {
  std::byte memory[64];
  int64_t released = 0;
  std::shared_ptr<Mapping> first;
  ASSERT_TRUE(Mapping::adopt(
                  memory, 64, [&] { ++released; }, &first)
                  .ok());
  EXPECT_EQ(first->data(), memory);
  EXPECT_EQ(first->nbytes(), 64);
  EXPECT_EQ(first->fd(), -1);
  std::shared_ptr<Mapping> second;
  ASSERT_TRUE(Mapping::attach(first->id(), -1, 64, &second).ok());
  EXPECT_EQ(second, first);
  first.reset();
  EXPECT_EQ(released, 0);
  second.reset();
  EXPECT_EQ(released, 1);
}

TEST(Mapping, SaysHowMuchMemoryCouldNotBeMapped) {
  std::shared_ptr<Mapping> mapping;
  const int64_t nbytes = int64_t{1} << 60;
  const Status status = Mapping::create_shared(nbytes, &mapping);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_NE(std::string(status.text()).find("cannot map 1152921504606846976 bytes"), std::string::npos) << status.text();
  EXPECT_EQ(mapping, nullptr);
}

TEST(Mapping, SaysHowMuchMemoryForThreadsCouldNotBeMapped) {
  std::shared_ptr<Mapping> mapping;
  const Status status = Mapping::create_for_threads(int64_t{1} << 60, &mapping);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_NE(std::string(status.text()).find("cannot map 1152921504606846976 bytes"), std::string::npos) << status.text();
}

TEST(Mapping, AttachTakesTheFileAlsoWhenItFails) {
  const int fd = ::memfd_create("empty", 0);
  std::shared_ptr<Mapping> mapping;
  EXPECT_EQ(Mapping::attach(1, fd, int64_t{1} << 60, &mapping).code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

/// Without a handler the signal of this limit would end the process.
TEST(Mapping, SaysWhenFilesMayNotBeSoLarge) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{static_cast<rlim_t>(page()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::shared_ptr<Mapping> mapping;
  const Status fits = Mapping::create_shared(page(), &mapping);
  const Status status = Mapping::create_shared(2 * page(), &mapping);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(fits.ok()) << fits.text();
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_NE(std::string(status.text()).find("RLIMIT_FSIZE"), std::string::npos) << status.text();
}

/// A file may be this large, but no address space holds it.
TEST(Mapping, SaysWhenNoAddressSpaceHoldsIt) {
  std::shared_ptr<Mapping> mapping;
  const Status status = Mapping::create_shared(INT64_MAX, &mapping);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_NE(std::string(status.text()).find("cannot map"), std::string::npos) << status.text();
}

TEST(Mapping, SaysWhenThereAreNoSharedMemoryFiles) {
  const test::FailingCall failing(test::SystemCall::memfd_create, 1);
  std::shared_ptr<Mapping> mapping;
  const Status status = Mapping::create_shared(1, &mapping);
  EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
  EXPECT_STREQ(status.text(), "cannot make a shared memory file: Function not implemented");
}

TEST(Mapping, SaysWhenAFileCannotBeSizedAndClosesIt) {
  const int next = ::dup(0);
  ::close(next);
  const test::FailingCall failing(test::SystemCall::ftruncate, 1, ENOSPC);
  std::shared_ptr<Mapping> mapping;
  const Status status = Mapping::create_shared(2 * page(), &mapping);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_EQ(std::string(status.text()),
            "cannot size a shared memory file to " + std::to_string(2 * page()) + " bytes: No space left on device");
  EXPECT_EQ(::fcntl(next, F_GETFD), -1);
}

}  // namespace
}  // namespace zero::mapping_test
