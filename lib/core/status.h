/// @file Status: a code and, for errors, the text written by whoever first decided the error. Everyone above only passes it on.
/// Knows nothing of threads or handles; lib/api puts the text where zero_last_error_copy finds it.
#pragma once

#include <zero/status.h>

#include <cstdint>
#include <memory>
#include <string>

namespace zero {

/// Copies share the text, so that an error that is passed on needs no memory.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;

  /// An error with a printf-style text: what was given, what was expected, what to do. Out of memory for the text leaves it empty.
  [[gnu::format(printf, 2, 3)]] static Status error(int32_t code, const char *format, ...) noexcept;

  bool ok() const noexcept { return code_ == ZERO_OK; }
  int32_t code() const noexcept { return code_; }
  const char *text() const noexcept { return text_ != nullptr ? text_->c_str() : ""; }

 private:
  int32_t code_ = ZERO_OK;
  std::shared_ptr<const std::string> text_;  ///< nullptr: empty
};

/// True for codes that poison a group (-300 .. -399).
constexpr bool poisons_group(int32_t code) { return code <= -300 && code > -400; }

const char *status_name(int32_t code) noexcept;

/// For %lld, whatever int64_t is.
constexpr long long lld(int64_t value) { return value; }

}  // namespace zero

/// Passes an error up.
#define ZERO_TRY(expression)                                                                          \
  do {                                                                                                \
    if (::zero::Status zero_try_status = (expression); !zero_try_status.ok()) return zero_try_status; \
  } while (0)

/// Decides an error: code and printf-style text when the condition does not hold.
#define ZERO_CHECK(condition, code, ...)                                 \
  do {                                                                   \
    if (!(condition)) return ::zero::Status::error((code), __VA_ARGS__); \
  } while (0)
