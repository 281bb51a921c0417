/// @file Status: a code and, for errors, a text. The function that first decides an error writes
/// the text; all callers only pass it on. Knows nothing of threads or handles; lib/api stores the
/// text for zero_last_error_copy.
#pragma once

#include <zero/status.h>

#include <cstdint>
#include <memory>
#include <string>

namespace zero {

/// Copies share the text, so passing an error on needs no memory.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;

  /// An error with a printf-style text: the value given, the value expected, and the remedy. The
  /// text stays empty if there is no memory for it.
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

/// Converts for %lld, on any int64_t.
constexpr long long lld(int64_t value) { return value; }

}  // namespace zero

/// Passes an error up.
#define ZERO_TRY(expression)                                                                          \
  do {                                                                                                \
    if (::zero::Status zero_try_status = (expression); !zero_try_status.ok()) return zero_try_status; \
  } while (0)

/// Decides an error: returns code and printf-style text if the condition does not hold.
#define ZERO_CHECK(condition, code, ...)                                 \
  do {                                                                   \
    if (!(condition)) return ::zero::Status::error((code), __VA_ARGS__); \
  } while (0)
