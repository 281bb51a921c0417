/// @file UTF-8 texts: cut without the beginning of an incomplete character, and checked.
#pragma once

#include <cstddef>
#include <cstring>

namespace zero {

/// Returns the bytes of `text` (`nbytes` long) without an incomplete last character.
constexpr size_t whole_nbytes(const char *text, size_t nbytes) {
  for (size_t behind = 1; behind <= 3 && behind <= nbytes; ++behind) {
    const auto byte = static_cast<unsigned char>(text[nbytes - behind]);
    if ((byte & 0xc0) == 0x80) continue;  // not the first byte of a character
    const size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > behind ? nbytes - behind : nbytes;
  }
  return nbytes;
}

/// Returns the bytes of `text` before the first invalid one; `nbytes` if all of it is UTF-8. RFC
/// 3629 allows no overlong forms, no surrogates, and nothing above U+10FFFF.
constexpr size_t valid_nbytes(const char *text, size_t nbytes) {
  const auto byte = [&](size_t at) { return at < nbytes ? static_cast<unsigned char>(text[at]) : 0U; };
  for (size_t at = 0; at < nbytes;) {
    const unsigned first = byte(at);
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    // The range of the second byte depends on the first.
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length == 0 || (length > 1 && (byte(at + 1) < least || byte(at + 1) > most))) return at;
    for (size_t i = 2; i < length; ++i) {
      if ((byte(at + i) & 0xc0) != 0x80) return at;
    }
    at += length;
  }
  return nbytes;
}

/// Returns how many bytes of a text "%.*s" should show, at most `most`.
inline int shown_nbytes(const char *text, size_t most) { return static_cast<int>(whole_nbytes(text, ::strnlen(text, most))); }

}  // namespace zero
