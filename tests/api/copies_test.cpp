/// @file Two copies of libzero in one process, as when two packages each bring one: ranks of both
/// cannot meet, and get the reason and the remedy. Knows the public API by name alone.
#include <zero/zero.h>

#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace zero::test::copies_test {
namespace {

/// One of the copies.
class LoadedCopy {
 public:
  explicit LoadedCopy(const std::string &file) : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
  }

  template <class Function>
  Function *find(const char *name) const {
    return reinterpret_cast<Function *>(::dlsym(library_, name));
  }

 private:
  void *library_;  // stays: its threads may live
};

TEST(Copies, RanksOfTwoCopiesInOneProcessAreToldSo) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("libzero-copies-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  fs::copy_file(ZERO_LIBRARY_FILE, folder / "libzero.so");
  const LoadedCopy copies[] = {LoadedCopy(ZERO_LIBRARY_FILE), LoadedCopy(folder / "libzero.so")};
  fs::remove_all(folder);
  ASSERT_NE(copies[0].find<decltype(zero_version)>("zero_version"), copies[1].find<decltype(zero_version)>("zero_version"));
  const std::string name = "copies." + std::to_string(::getpid());
  run_thread_ranks(2, [&](int64_t rank) {
    const LoadedCopy &copy = copies[rank];
    zero_group *group = nullptr;
    const int32_t code = copy.find<decltype(zero_group_create_local)>("zero_group_create_local")(name.c_str(), rank, 2, nullptr, &group);
    char text[1024] = "";
    copy.find<decltype(zero_last_error_copy)>("zero_last_error_copy")(text, sizeof text);
    EXPECT_EQ(code, ZERO_E_RENDEZVOUS) << text;
    EXPECT_NE(std::string(text).find("another copy of libzero"), std::string::npos) << text;
    EXPECT_NE(std::string(text).find("let all that use it here load one file"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace zero::test::copies_test
