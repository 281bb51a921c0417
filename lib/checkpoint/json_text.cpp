/// @file Writing JSON.
#include "checkpoint/json_text.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace zero::checkpoint {

void JsonText::open(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!std::exchange(first_, false)) break_line();
  text_ += bracket;
}

void JsonText::key(const std::string &name) {
  separate();
  quote(name);
  text_ += lines_ ? ": " : ":";
  first_ = true;
  after_key_ = true;
}

void JsonText::value(const std::string &text) {
  separate();
  quote(text);
}

void JsonText::literal(const std::string &text) {
  separate();
  text_ += text;
}

void JsonText::field(const char *name, const std::string &text) {
  key(name);
  value(text);
}

void JsonText::field(const char *name, bool flag) {
  key(name);
  literal(flag ? "true" : "false");
}

void JsonText::field(const char *name, int64_t number) {
  key(name);
  literal(std::to_string(number));
}

void JsonText::field(const char *name, uint64_t number) {
  key(name);
  literal(std::to_string(number));
}

/// Writes one line in both forms.
void JsonText::field(const char *name, const std::vector<int64_t> &numbers) {
  std::string list;
  for (const int64_t number : numbers) list += (list.empty() ? "" : lines_ ? ", " : ",") + std::to_string(number);
  key(name);
  literal("[" + list + "]");
}

void JsonText::field(const char *name, const std::map<std::string, std::string> &texts) {
  key(name);
  open('{');
  for (const auto &[text_key, text] : texts) {
    key(text_key);
    value(text);
  }
  close('}');
}

void JsonText::separate() {
  if (!std::exchange(first_, false)) text_ += ',';
  if (!std::exchange(after_key_, false) && depth_ > 0) break_line();
}

void JsonText::break_line() {
  if (lines_) text_ += "\n" + std::string(2 * depth_, ' ');
}

/// A value of the JSON library is safe for a text: only lists and objects need memory when they are
/// destroyed.
void JsonText::quote(const std::string &text) {
  using Errors = nlohmann::json::error_handler_t;
  text_ += nlohmann::json(text).dump(-1, ' ', false, lines_ ? Errors::replace : Errors::strict);
}

}  // namespace zero::checkpoint
