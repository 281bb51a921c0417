/// @file text: what a GPT learns from: bytes of a text or numbers of tokens, and which rank sees which of them in which step.
/// Knows nothing of the model.
#ifndef GPT_TEXT_H
#define GPT_TEXT_H

#include <stdint.h>

struct text {
  const char *path; /* the caller's */
  uint8_t *bytes;   /* of a text, */
  uint16_t *tokens; /* or of a token file; the other is NULL */
  int64_t count;
  int64_t training; /* the first of these; the last tenth is for validation */
};

/// All functions that return int give 0, or -1 after a line on standard error.

/// Bytes of a file, or of all files *.txt, *.md and these with .gz of a folder, in the order of their
/// names. What is gzipped is unpacked.
int text_read(const char *path, struct text *out);

/// Tokens of a file as llm.c writes them for GPT-2: 256 numbers of 32 bits, which begin with 20240520,
/// 1 and the number of tokens, and then 16 bits each.
int text_read_tokens(const char *path, struct text *out);
void text_release(struct text *text);

/// Whether it has room for sequences of this length, and the vocabulary has room for it. A step takes
/// `sequences` of them.
int text_check(const struct text *text, int64_t sequences, int64_t length, int64_t vocabulary);

/// Where sequence `row` of step `step` begins in the training part: a function of these numbers, the
/// seed and the text alone, whoever computes it. A batch of 8 has rows 0 to 7 however many ranks
/// share it, so that a run can be carried on by another number of ranks.
int64_t text_training_place(const struct text *text, uint64_t seed, int64_t step, int64_t batch, int64_t row, int64_t length);

/// Where sequence `row` of `rows`, which are spread evenly over it, begins in the validation part.
int64_t text_validation_place(const struct text *text, int64_t rows, int64_t row, int64_t length);

/// Copies tokens [place, place + length) to ids, and the one that follows each to targets.
void text_copy(const struct text *text, int64_t place, int64_t length, int32_t *ids, int32_t *targets);

#endif
