/// @file Options of a benchmark program: --name=value. Knows no program.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace zero::bench {

/// Each option is taken once by its program; what nobody took is an error.
class Options {
 public:
  Options(int argc, char **argv, const char *usage) : program_(argv[0]), usage_(usage), given_(argv + 1, argv + argc) {}

  /// The value of --name=value, or `otherwise`.
  std::string text(const std::string &name, const std::string &otherwise) {
    const std::string start = "--" + name + "=";
    for (size_t i = 0; i < given_.size(); ++i) {
      if (given_[i].compare(0, start.size(), start) != 0) continue;
      const std::string value = given_[i].substr(start.size());
      given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    return otherwise;
  }

  int64_t number(const std::string &name, int64_t otherwise) { return parse_whole(text(name, std::to_string(otherwise))); }

  double fraction(const std::string &name, double otherwise) {
    const std::string given = text(name, std::to_string(otherwise));
    char *end = nullptr;
    const double value = std::strtod(given.c_str(), &end);
    if (end == given.c_str() || *end != 0 || !(value > 0)) refuse(given);
    return value;
  }

  /// Whole numbers with commas between them.
  std::vector<int64_t> numbers(const std::string &name, const std::string &otherwise) {
    std::vector<int64_t> values;
    std::string left = text(name, otherwise);
    for (size_t comma = 0; comma != std::string::npos;) {
      comma = left.find(',');
      values.push_back(parse_whole(left.substr(0, comma)));
      if (comma != std::string::npos) left.erase(0, comma + 1);
    }
    return values;
  }

  /// True when --name was given.
  bool flag(const std::string &name) {
    for (size_t i = 0; i < given_.size(); ++i) {
      if (given_[i] != "--" + name) continue;
      given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  void finish() const {
    if (!given_.empty()) refuse(given_.front());
  }

 private:
  int64_t parse_whole(const std::string &given) const {
    char *end = nullptr;
    const long long value = std::strtoll(given.c_str(), &end, 10);
    if (end == given.c_str() || *end != 0 || value < 0) refuse(given);
    return value;
  }
  [[noreturn]] void refuse(const std::string &given) const {
    std::fprintf(stderr, "%s: '%s' is not understood\nusage: %s [options of Google Benchmark] %s\n", program_.c_str(), given.c_str(),
                 program_.c_str(), usage_);
    std::exit(2);
  }

  std::string program_;
  const char *usage_;
  std::vector<std::string> given_;
};

}  // namespace zero::bench
