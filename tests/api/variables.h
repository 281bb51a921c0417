/// @file Sets environment variables of the process for one test.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace zero::test {

class Variables {
 public:
  Variables() = default;
  Variables(const Variables &) = delete;
  ~Variables() {
    for (const std::string &name : names_) ::unsetenv(name.c_str());
  }
  void set(const std::string &name, const std::string &value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace zero::test
