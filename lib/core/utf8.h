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

/// How much of a text "%.*s" is to show, at most `most` bytes.
inline int shown_nbytes(const char *text, size_t most) { return static_cast<int>(whole_nbytes(text, ::strnlen(text, most))); }

}  // namespace zero
