/// @file A file for ZERO_LOG that is gone with the test. The library opens the file once per process, so what writes to it is a process of
/// its own, which sets the variable.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace zero::test {

class LogFile {
 public:
  LogFile() : path_(std::filesystem::temp_directory_path() / ("zero_log_test." + std::to_string(::getpid()))) {}
  LogFile(const LogFile &) = delete;
  ~LogFile() { std::filesystem::remove(path_); }

  const char *path() const { return path_.c_str(); }
  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace zero::test
