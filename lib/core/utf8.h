/// @file Texts that were cut, without the begin of a character whose end is lost. Texts are UTF-8.
#pragma once

#include <cstddef>
#include <cstring>

namespace zero {

/// The bytes of `text`, of which there are `nbytes`, less those of a last character that is not whole.
constexpr size_t whole_nbytes(const char *text, size_t nbytes) {
  for (size_t behind = 1; behind <= 3 && behind <= nbytes; ++behind) {
    const auto byte = static_cast<unsigned char>(text[nbytes - behind]);
    if ((byte & 0xc0) == 0x80) continue;  // not the first of a character
    const size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > behind ? nbytes - behind : nbytes;
  }
  return nbytes;
}

/// The bytes of `text` before the first that is part of no character; all `nbytes` where the text is UTF-8 (RFC 3629: no longer forms than
/// needed, no surrogates, nothing behind U+10FFFF).
constexpr size_t valid_nbytes(const char *text, size_t nbytes) {
  const auto byte = [&](size_t at) { return at < nbytes ? static_cast<unsigned char>(text[at]) : 0U; };
  for (size_t at = 0; at < nbytes;) {
    const unsigned first = byte(at);
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    // The second byte decides what the first leaves open.
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

/// How much of a text "%.*s" is to show, at most `most` bytes.
inline int shown_nbytes(const char *text, size_t most) { return static_cast<int>(whole_nbytes(text, ::strnlen(text, most))); }

}  // namespace zero
