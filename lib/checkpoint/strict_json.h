/// @file Strict JSON, for files that may be hostile: limited depth, no duplicate keys, no byte
/// after the value. Only sources of lib/checkpoint include this header.
#pragma once

#include "core/status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero::checkpoint {

/// Counts the depth of nesting during parsing and keeps the first error. The derived class handles
/// the events of values.
class StrictEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StrictEvents(const std::string &file) : file_(file) {}

  /// Runs the parser over `text`.
  Status parse(std::string_view text);

  bool start_object(std::size_t) final { return enter() && object_begins(); }
  bool end_object() final { return leave() && object_ends(); }
  bool start_array(std::size_t) final { return enter() && array_begins(); }
  bool end_array() final { return leave() && array_ends(); }
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t &) override { return refuse("a number that is no integer"); }
  bool binary(binary_t &) final { return refuse("binary data"); }
  bool parse_error(std::size_t position, const std::string &token, const nlohmann::json::exception &error) final;

 protected:
  virtual bool object_begins() = 0;
  virtual bool object_ends() = 0;
  virtual bool array_begins() = 0;
  virtual bool array_ends() = 0;

  int depth() const { return depth_; }  ///< depth of the container of the event; 1 in the outermost
  bool refuse(const char *what);
  bool fail(Status error);

  const std::string &file_;

 private:
  bool enter();
  bool leave();

  int depth_ = 0;
  Status error_;
};

/// A parsed value. A value of the JSON library needs memory when it is destroyed; this one, at most
/// kMostJsonDepth deep, does not.
struct JsonValue {
  enum class Kind { other, boolean, negative, number, text, list, object };
  Kind kind = Kind::other;  ///< other: null, or a number that is no integer
  bool flag = false;
  uint64_t number = 0;
  int64_t negative = 0;
  std::string text;
  std::vector<JsonValue> items;   ///< items of a list; values of an object, one per key
  std::vector<std::string> keys;  ///< keys of an object, all different

  /// Returns nullptr if there is no such key.
  const JsonValue *find(std::string_view key) const;
};

/// Parses one value with the same limits. ZERO_E_CHECKPOINT.
Status parse_json(std::string_view text, const std::string &file, JsonValue *out);

/// Appends a text in quotes. Throws for a text that is not UTF-8.
void append_quoted(std::string *out, const std::string &text);

}  // namespace zero::checkpoint
