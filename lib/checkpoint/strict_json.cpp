/// @file Limits around the parser of nlohmann/json.
#include "checkpoint/strict_json.h"

#include "checkpoint/safetensors.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace zero::checkpoint {
namespace {

/// The parser takes a zero byte for the end of the text.
Status check_bytes(std::string_view text, const std::string &file) {
  const size_t zero = text.find('\0');
  ZERO_CHECK(zero == std::string_view::npos, ZERO_E_CHECKPOINT, "%s: the JSON has a zero byte at %zu", file.c_str(), zero);
  ZERO_CHECK(!text.empty() && text.front() == '{', ZERO_E_CHECKPOINT, "%s: the JSON does not begin with '{'", file.c_str());
  return {};
}

/// Keys of the objects that are open.
class Limits {
 public:
  using Event = nlohmann::json::parse_event_t;

  bool see(Event event, const nlohmann::json &value) {
    if (failed()) return false;
    if (event == Event::object_start || event == Event::array_start) {
      deep_ = open_.size() >= static_cast<size_t>(kMostJsonDepth);
      if (!deep_) open_.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      open_.pop_back();
    } else if (event == Event::key && !open_.back().insert(value.get_ref<const std::string &>()).second) {
      doubled_ = value.get<std::string>();
      is_doubled_ = true;
    }
    return !failed();
  }

  Status status(const std::string &file) const {
    ZERO_CHECK(!deep_, ZERO_E_CHECKPOINT, "%s: the JSON is nested deeper than %d", file.c_str(), kMostJsonDepth);
    ZERO_CHECK(!is_doubled_, ZERO_E_CHECKPOINT, "%s: the JSON has the key \"%.100s\" twice", file.c_str(), doubled_.c_str());
    return {};
  }

 private:
  bool failed() const { return deep_ || is_doubled_; }

  std::vector<std::set<std::string, std::less<>>> open_;
  std::string doubled_;
  bool is_doubled_ = false;
  bool deep_ = false;
};

}  // namespace

Status StrictEvents::parse(std::string_view text) {
  ZERO_TRY(check_bytes(text, file_));
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), this);
  if (!error_.ok()) return error_;
  ZERO_CHECK(whole, ZERO_E_CHECKPOINT, "%s: the JSON is malformed", file_.c_str());
  return {};
}

bool StrictEvents::enter() {
  if (depth_ < kMostJsonDepth) {
    ++depth_;
    return true;
  }
  return fail(Status::error(ZERO_E_CHECKPOINT, "%s: the JSON is nested deeper than %d", file_.c_str(), kMostJsonDepth));
}

bool StrictEvents::leave() {
  --depth_;
  return true;
}

bool StrictEvents::refuse(const char *what) {
  return fail(Status::error(ZERO_E_CHECKPOINT, "%s: the JSON has %s where the format allows none", file_.c_str(), what));
}

bool StrictEvents::fail(Status error) {
  if (error_.ok()) error_ = std::move(error);
  return false;
}

bool StrictEvents::parse_error(std::size_t position, const std::string &, const nlohmann::json::exception &error) {
  return fail(Status::error(ZERO_E_CHECKPOINT, "%s: the JSON is malformed at byte %zu: %.200s", file_.c_str(), position, error.what()));
}

Status parse_json(std::string_view text, const std::string &file, nlohmann::json *out) {
  ZERO_TRY(check_bytes(text, file));
  Limits limits;
  try {
    *out = nlohmann::json::parse(text.begin(), text.end(), [&](int, Limits::Event event, nlohmann::json &value) { return limits.see(event, value); });
  } catch (const nlohmann::json::exception &error) {
    ZERO_TRY(limits.status(file));
    return Status::error(ZERO_E_CHECKPOINT, "%s: the JSON is malformed: %.200s", file.c_str(), error.what());
  }
  return limits.status(file);
}

}  // namespace zero::checkpoint
