/// @file Limits around the parser of nlohmann/json.
#include "checkpoint/strict_json.h"

#include "checkpoint/safetensors.h"

#include <algorithm>
#include <utility>

namespace zero::checkpoint {
namespace {

/// Refuses zero bytes, which the parser takes for the end of the text.
Status check_bytes(std::string_view text, const std::string &file) {
  const size_t zero = text.find('\0');
  ZERO_CHECK(zero == std::string_view::npos, ZERO_E_CHECKPOINT, "%s: the JSON has a zero byte at %zu", file.c_str(), zero);
  ZERO_CHECK(!text.empty() && text.front() == '{', ZERO_E_CHECKPOINT, "%s: the JSON does not begin with '{'", file.c_str());
  return {};
}

/// Builds a value from the events of the parser.
class ValueEvents final : public StrictEvents {
 public:
  ValueEvents(const std::string &file, JsonValue *out) : StrictEvents(file), root_(*out) {}

  bool null() override { return put({}); }
  bool boolean(bool flag) override { return put({.kind = JsonValue::Kind::boolean, .flag = flag}); }
  bool number_integer(number_integer_t number) override { return put({.kind = JsonValue::Kind::negative, .negative = number}); }
  bool number_unsigned(number_unsigned_t number) override { return put({.kind = JsonValue::Kind::number, .number = number}); }
  bool number_float(number_float_t, const string_t &) override { return put({}); }
  bool string(string_t &text) override { return put({.kind = JsonValue::Kind::text, .text = std::move(text)}); }
  bool key(string_t &name) override {
    open_.back()->keys.push_back(std::move(name));
    return true;
  }

 private:
  bool put(JsonValue value) {
    place() = std::move(value);
    return true;
  }

  /// The place of the next value. Open values are nested, so no address changes while it is in use.
  JsonValue &place() { return open_.empty() ? root_ : open_.back()->items.emplace_back(); }

  bool open(JsonValue::Kind kind) {
    JsonValue &value = place();
    value.kind = kind;
    open_.push_back(&value);
    return true;
  }

  bool object_begins() override { return open(JsonValue::Kind::object); }
  bool array_begins() override { return open(JsonValue::Kind::list); }
  bool array_ends() override { return open_.pop_back(), true; }
  bool object_ends() override {
    std::vector<std::string_view> keys(open_.back()->keys.begin(), open_.back()->keys.end());
    open_.pop_back();
    std::sort(keys.begin(), keys.end());
    const auto doubled = std::adjacent_find(keys.begin(), keys.end());
    if (doubled == keys.end()) return true;
    return fail(Status::error(ZERO_E_CHECKPOINT, "%s: the JSON has the key \"%.*s\" twice", file_.c_str(),
                              static_cast<int>(std::min<size_t>(doubled->size(), 100)), doubled->data()));
  }

  JsonValue &root_;
  std::vector<JsonValue *> open_;
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

const JsonValue *JsonValue::find(std::string_view key) const {
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[static_cast<size_t>(at - keys.begin())];
}

Status parse_json(std::string_view text, const std::string &file, JsonValue *out) {
  JsonValue value;
  ZERO_TRY(ValueEvents(file, &value).parse(text));
  *out = std::move(value);
  return {};
}

void append_quoted(std::string *out, const std::string &text) { *out += nlohmann::json(text).dump(); }

}  // namespace zero::checkpoint
