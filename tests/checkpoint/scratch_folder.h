/// @file A folder for one test, removed with it.
#pragma once

#include "core/file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace zero::tests {

class ScratchFolder {
 public:
  /// In memory where there is such a file system: what tests of formats and orders need no disk for.
  ScratchFolder() : ScratchFolder(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ::testing::TempDir()) {}
  explicit ScratchFolder(const std::string &parent) {
    std::string path = parent + (parent.ends_with('/') ? "" : "/") + "zero-checkpoint-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder for tests in " + parent);
    path_ = path;
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string &path() const { return path_; }
  Folder open() const {
    Folder folder;
    EXPECT_TRUE(Folder::open(path_, &folder).ok());
    return folder;
  }

 private:
  std::string path_;
};

}  // namespace zero::tests
