/// @file idx: reads images and labels in the IDX format, gzipped or plain.
/// Knows nothing of training; every error is one line that names the file.
#ifndef FASHION_IDX_H
#define FASHION_IDX_H

#include <stdint.h>

struct dataset {
  uint8_t *images; /* [count][28 * 28] */
  uint8_t *labels; /* [count], below 10 */
  int64_t count;
};

/// Reads DIRECTORY/NAME-images-idx3-ubyte and -labels-idx1-ubyte, with or without .gz; limit > 0 keeps only that many first samples.
/// Returns 0, or -1 after a line on standard error.
int dataset_read(const char *directory, const char *name, int64_t limit, struct dataset *out);
void dataset_release(struct dataset *data);

#endif
