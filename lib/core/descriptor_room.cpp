/// @file Counting free descriptors by poll, which tells numbers that are not open and needs no descriptor itself.
#include "core/descriptor_room.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace zero {
namespace {

/// Numbers of descriptors end below it.
int64_t limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(INT32_MAX)) return INT32_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

int64_t count_free(int64_t begin, int64_t end) {
  constexpr int64_t kMost = 64;
  std::array<pollfd, kMost> polls;
  int64_t count = 0;
  for (; begin < end; begin += kMost) {
    const auto some = static_cast<size_t>(std::min(kMost, end - begin));
    for (size_t i = 0; i < some; ++i) polls[i] = {static_cast<int>(begin) + static_cast<int>(i), 0, 0};
    if (::poll(polls.data(), some, 0) < 0) continue;
    count += std::count_if(polls.begin(), polls.begin() + some, [](const pollfd &one) { return (one.revents & POLLNVAL) != 0; });
  }
  return count;
}

}  // namespace

/// From the highest on, because programs use the lowest.
int64_t free_descriptors(int64_t enough) {
  int64_t count = 0;
  for (int64_t end = limit(); end > 0 && count < enough;) {
    const int64_t begin = std::max<int64_t>(end - std::max<int64_t>(enough, 64), 0);
    count += count_free(begin, end);
    end = begin;
  }
  return std::min(count, enough);
}

Status check_descriptors(int64_t needed, const char *what) {
  const int64_t free = free_descriptors(needed);
  ZERO_CHECK(free >= needed, ZERO_E_SYSTEM, "%s: %lld more are needed, but this process may open only %lld (%s)", what, lld(needed),
             lld(free), descriptor_limit_text().c_str());
  return {};
}

std::string descriptor_limit_text() { return "RLIMIT_NOFILE is " + std::to_string(limit()) + "; raise it with ulimit -n"; }

std::string system_error_text(int error) {
  std::string text = std::strerror(error);
  if (error == EMFILE) text += " (" + descriptor_limit_text() + ")";
  return text;
}

}  // namespace zero
