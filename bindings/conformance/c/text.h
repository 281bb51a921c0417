/// @file text: what a scenario prints: words with a blank between them.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct text {
  size_t length;
  char chars[4096];
};

/// Adds one word, as printf makes it.
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/// The 16 hexadecimal digits of the value's bits.
void text_add_double(struct text *text, double value);

/// `#` and the FNV-1a hash (64 bits) of the bytes.
void text_add_hash(struct text *text, const void *data, int64_t nbytes);

/// The name of a code.
void text_add_status(struct text *text, int32_t status);

/// `NAME: text` of the calling thread's last error, which the call that returned `status` made; the name alone when it is ZERO_OK.
void text_add_error(struct text *text, int32_t status);

/// The line of a scenario.
void text_print(const char *scenario, const struct text *text);
