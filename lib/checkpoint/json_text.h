/// @file JsonText: writes one JSON value, with the commas between its parts. It holds a single
/// text, so its destruction needs no memory. Does not know the meaning of the value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero::checkpoint {

class JsonText {
 public:
  enum class Form {
    compact,  ///< on one line; throws for texts that are not UTF-8
    lines     ///< indented, for people; bytes that are not UTF-8 are replaced
  };
  explicit JsonText(Form form = Form::compact) : lines_(form == Form::lines) {}

  const std::string &text() const { return text_; }

  void open(char bracket);
  void close(char bracket);
  void key(const std::string &name);
  void value(const std::string &text);
  /// Digits, "true" or "false".
  void literal(const std::string &text);

  void field(const char *name, const std::string &text);
  void field(const char *name, const char *text) { field(name, std::string(text)); }
  void field(const char *name, bool flag);
  void field(const char *name, int64_t number);
  void field(const char *name, uint64_t number);
  void field(const char *name, const std::vector<int64_t> &numbers);
  void field(const char *name, const std::map<std::string, std::string> &texts);

 private:
  void separate();
  void break_line();
  void quote(const std::string &text);

  const bool lines_;
  std::string text_;
  size_t depth_ = 0;
  bool first_ = true;      ///< no comma before the next value
  bool after_key_ = false;  ///< no line break before the next value
};

}  // namespace zero::checkpoint
