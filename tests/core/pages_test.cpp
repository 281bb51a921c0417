/// @file Pages: alignment, complete release, and presence of all pages after touching, as huge
/// pages if the kernel collapses them.
#include "core/pages.h"

#include "tests/core/failures.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace zero::pages_test {
namespace {

constexpr int kCollapse = 25;

int memory_file(int64_t nbytes) {
  const int fd = ::memfd_create("pages_test", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(fd, nbytes), 0);
  return fd;
}

/// KiB of `key` in /proc/self/smaps, for the mapping that contains `data`; -1 if there is none.
int64_t smaps_kib(const std::byte *data, const std::string &key) {
  std::ifstream smaps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(smaps, line);) {
    uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
      const auto address = reinterpret_cast<uint64_t>(data);
      within = begin <= address && address < end;
    } else if (within && line.starts_with(key)) {
      return std::stoll(line.substr(key.size()));
    }
  }
  return -1;
}

int64_t mapped_pages() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

/// True if this kernel collapses pages of memory files into huge pages on request.
bool kernel_gathers() {
  const size_t nbytes = static_cast<size_t>(kHugePageBytes);
  const int fd = memory_file(kHugePageBytes);
  void *room = ::mmap(nullptr, 2 * nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uintptr_t aligned = (reinterpret_cast<uintptr_t>(room) + nbytes - 1) / nbytes * nbytes;
  void *data = ::mmap(reinterpret_cast<void *>(aligned), nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  std::memset(data, 1, nbytes);
  const bool gathers = ::madvise(data, nbytes, kCollapse) == 0;
  ::munmap(room, 2 * nbytes);
  ::close(fd);
  return gathers;
}

TEST(Pages, BeginWhereHugeOnesFitAndLeaveNothingBehind) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  for (const int64_t nbytes : {int64_t{1}, page, kHugePageBytes - 1, kHugePageBytes, kHugePageBytes + page + 1, 5 * kHugePageBytes}) {
    for (const bool of_file : {false, true}) {
      const int fd = of_file ? memory_file(nbytes) : -1;
      const int64_t before = mapped_pages();
      std::byte *data = of_file ? map_file_pages(nbytes, fd) : map_pages(nbytes);
      ASSERT_NE(data, nullptr);
      const int64_t multiple = nbytes >= kHugePageBytes ? kHugePageBytes : page;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(multiple), 0u);
      EXPECT_EQ(mapped_pages() - before, (nbytes + page - 1) / page);
      ASSERT_TRUE(touch_pages(data, nbytes).ok());
      EXPECT_EQ(std::count(data, data + nbytes, std::byte{0}), nbytes);
      std::memset(data, 1, static_cast<size_t>(nbytes));
      ::munmap(data, static_cast<size_t>(nbytes));
      EXPECT_EQ(mapped_pages(), before);
      if (of_file) ::close(fd);
    }
  }
}

TEST(Pages, OfAMemoryFileAreGatheredIntoHugeOnesForAllWhoMapIt) {
  if (!kernel_gathers()) GTEST_SKIP() << "this kernel does not gather pages of memory files into huge ones (Linux 6.1 does)";
  const int64_t nbytes = 4 * kHugePageBytes + 12'345;
  const int fd = memory_file(nbytes);
  std::byte *mine = map_file_pages(nbytes, fd);
  ASSERT_TRUE(touch_pages(mine, nbytes).ok());
  std::byte *theirs = map_file_pages(nbytes, fd);
  EXPECT_EQ(std::count(theirs, theirs + nbytes, std::byte{0}), nbytes);
  // With fragmented memory not every page becomes a huge page.
  for (const std::byte *data : {mine, theirs}) EXPECT_GT(smaps_kib(data, "ShmemPmdMapped:"), 0);
  mine[nbytes - 1] = std::byte{7};
  EXPECT_EQ(theirs[nbytes - 1], std::byte{7});
  ::munmap(mine, static_cast<size_t>(nbytes));
  ::munmap(theirs, static_cast<size_t>(nbytes));
  ::close(fd);
}

TEST(Pages, AllAreThereAfterTouchingAlsoOnKernelsWithoutTheCalls) {
  // The first call requests huge pages, the second a page of the first huge page, the third all
  // pages.
  const int64_t nbytes = 3 * kHugePageBytes + 5;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  for (const int refused : {0, 1, 2, 3}) {
    const test::FailingCall old_kernel(test::SystemCall::madvise, refused, EINVAL);
    std::byte *data = map_pages(nbytes);
    ASSERT_TRUE(touch_pages(data, nbytes).ok());
    std::vector<unsigned char> there(static_cast<size_t>((nbytes + page - 1) / page));
    ASSERT_EQ(::mincore(data, static_cast<size_t>(nbytes), there.data()), 0);
    EXPECT_EQ(std::count_if(there.begin(), there.end(), [](unsigned char bits) { return (bits & 1) != 0; }),
              static_cast<int64_t>(there.size()));
    ::munmap(data, static_cast<size_t>(nbytes));
  }
}

TEST(Pages, MemoryThatIsShortIsAnErrorThatSaysHowMuchWasWanted) {
  std::byte *data = map_pages(kHugePageBytes);
  const test::FailingCall short_of_memory(test::SystemCall::madvise, 2, ENOMEM);
  const Status status = touch_pages(data, kHugePageBytes);
  EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_STREQ(status.text(), "cannot get 2097152 bytes of memory: Cannot allocate memory");
  ::munmap(data, static_cast<size_t>(kHugePageBytes));
  errno = 0;
  EXPECT_EQ(map_pages(int64_t{1} << 60), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Pages, OfNoFileAreRefusedAndLeaveNothingBehind) {
  const int64_t before = mapped_pages();
  for (const int64_t nbytes : {int64_t{1}, 3 * kHugePageBytes}) {
    errno = 0;
    EXPECT_EQ(map_file_pages(nbytes, -1), nullptr);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(mapped_pages(), before);
  }
}

}  // namespace
}  // namespace zero::pages_test
