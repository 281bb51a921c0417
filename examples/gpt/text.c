/// @file text: reads texts with zlib, and draws places by counting, not by state.
/// Knows nothing of the model.
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "../random.h"

static int complain(const char *path, const char *what) {
  fprintf(stderr, "train_gpt: %s: %s\n", path, what);
  return -1;
}

/// Appends a file, unpacked.
static int append(const char *path, struct text *text) {
  enum { kPart = 1 << 20 };
  gzFile file = gzopen(path, "rb");
  int got = 0;
  if (!file) return complain(path, errno ? strerror(errno) : "out of memory");
  do {
    uint8_t *grown = realloc(text->bytes, (size_t)text->count + kPart);
    if (!grown) {
      gzclose(file);
      return complain(path, "out of memory");
    }
    text->bytes = grown;
    got = gzread(file, text->bytes + text->count, kPart);
    if (got > 0) text->count += got;
  } while (got > 0);
  int error = Z_OK;
  const char *message = gzerror(file, &error);
  const int status = got < 0 || (error != Z_OK && error != Z_STREAM_END) ? complain(path, error == Z_ERRNO ? strerror(errno) : message) : 0;
  gzclose(file);
  return status;
}

static int has_end(const char *name, const char *end) {
  const size_t length = strlen(name);
  return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static int is_text(const struct dirent *entry) {
  const char *name = entry->d_name;
  return has_end(name, ".txt") || has_end(name, ".md") || has_end(name, ".txt.gz") || has_end(name, ".md.gz");
}

static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int append_folder(const char *path, struct text *text) {
  struct dirent **entries = NULL;
  int status = 0;
  const int count = scandir(path, &entries, is_text, by_bytes);
  if (count < 0) return complain(path, strerror(errno));
  for (int i = 0; i < count; i++) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
    if (!status) status = append(name, text);
    free(entries[i]);
  }
  free(entries);
  return status;
}

static void split(struct text *text) { text->training = text->count - text->count / 10; }

int text_read(const char *path, struct text *out) {
  struct stat found;
  *out = (struct text){.path = path};
  if (stat(path, &found) != 0) {
    fprintf(stderr, "train_gpt: %s: %s; --text names a file or a folder with text (the default is that of Debian's package anarchism)\n", path,
            strerror(errno));
    return -1;
  }
  if (S_ISDIR(found.st_mode) ? append_folder(path, out) : append(path, out)) return -1;
  if (out->count == 0) return complain(path, "there is no text; --text names a file or a folder with *.txt, *.md or these with .gz");
  split(out);
  return 0;
}

int text_read_tokens(const char *path, struct text *out) {
  int32_t head[256] = {0};
  *out = (struct text){.path = path};
  FILE *file = fopen(path, "rb");
  if (!file) return complain(path, strerror(errno));
  const size_t got = fread(head, sizeof *head, 256, file);
  int status = 0;
  if (got != 256 || head[0] != 20240520 || head[1] != 1 || head[2] < 1) {
    status = complain(path, "is no token file of llm.c for GPT-2: 256 numbers of 32 bits, 20240520, 1, the number of tokens ...");
  } else if (!(out->tokens = malloc((size_t)head[2] * sizeof(uint16_t)))) {
    status = complain(path, "out of memory");
  } else if (fread(out->tokens, sizeof(uint16_t), (size_t)head[2], file) != (size_t)head[2]) {
    fprintf(stderr, "train_gpt: %s: truncated: its head says %" PRId32 " tokens\n", path, head[2]);
    status = -1;
  }
  fclose(file);
  out->count = head[2];
  split(out);
  return status;
}

void text_release(struct text *text) {
  free(text->bytes);
  free(text->tokens);
}

static int32_t token_at(const struct text *text, int64_t place) { return text->tokens ? text->tokens[place] : text->bytes[place]; }

int text_check(const struct text *text, int64_t sequences, int64_t length, int64_t vocabulary) {
  const char *what = text->tokens ? "tokens" : "bytes";
  int32_t largest = 0;
  for (int64_t i = 0; text->tokens && i < text->count; i++) largest = token_at(text, i) > largest ? token_at(text, i) : largest;
  if (largest >= vocabulary) {
    fprintf(stderr, "train_gpt: %s: has token %" PRId32 ", but the model's vocabulary ends at %" PRId64 "; give --model gpt2\n", text->path,
            largest, vocabulary - 1);
    return -1;
  }
  if (text->training > sequences * length && text->count - text->training > length) return 0;
  fprintf(stderr,
          "train_gpt: %s: has %" PRId64 " %s, too few: nine tenths must hold more than a step's %" PRId64 " x %" PRId64
          " (--batch, --context), and the last tenth more than %" PRId64 "\n",
          text->path, text->count, what, sequences, length, length);
  return -1;
}

int64_t text_training_place(const struct text *text, uint64_t seed, int64_t step, int64_t batch, int64_t row, int64_t length) {
  uint64_t state = random_stream(seed, (uint64_t)(step * batch + row));
  return (int64_t)(random_next(&state) % (uint64_t)(text->training - length));
}

int64_t text_validation_place(const struct text *text, int64_t rows, int64_t row, int64_t length) {
  const int64_t room = text->count - text->training - length;
  return text->training + (int64_t)((double)row / (double)rows * (double)room);
}

void text_copy(const struct text *text, int64_t place, int64_t length, int32_t *ids, int32_t *targets) {
  for (int64_t i = 0; i < length; i++) {
    ids[i] = token_at(text, place + i);
    targets[i] = token_at(text, place + i + 1);
  }
}
