/// @file text: words of the conformance lines.
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/status.h>

void text_add(struct text *text, const char *format, ...) {
  const size_t room = sizeof text->chars - text->length;
  const char *blank = text->length > 0 ? " " : "";
  char word[2048];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(word, sizeof word, format, arguments);
  va_end(arguments);
  const int added = snprintf(text->chars + text->length, room, "%s%s", blank, word);
  if (length < 0 || (size_t)length >= sizeof word || added < 0 || (size_t)added >= room) {
    fprintf(stderr, "conformance: a line is longer than %zu bytes\n", sizeof text->chars);
    exit(EXIT_FAILURE);
  }
  text->length += (size_t)added;
}

void text_add_double(struct text *text, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  text_add(text, "%016" PRIx64, bits);
}

void text_add_hash(struct text *text, const void *data, int64_t nbytes) {
  const unsigned char *bytes = data;
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < nbytes; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  text_add(text, "#%016" PRIx64, hash);
}

void text_add_status(struct text *text, int32_t status) { text_add(text, "%s", zero_status_name(status)); }

void text_add_error(struct text *text, int32_t status) {
  char reason[1024];
  if (status == ZERO_OK) {
    text_add_status(text, status);
    return;
  }
  zero_last_error_copy(reason, sizeof reason);
  text_add(text, "%s: %s", zero_status_name(status), reason);
}

void text_print(const char *scenario, const struct text *text) { printf("%s: %s\n", scenario, text->length > 0 ? text->chars : "-"); }
