/// @file idx: the IDX format: two zero bytes, a type (8 = unsigned byte), the number of dimensions, big-endian extents, then the bytes.
/// Knows nothing of training.
#include "idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "model.h"

static int complain(const char *path, const char *problem) {
  fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, problem);
  return -1;
}

/// Reads exactly nbytes.
static int read_all(gzFile file, const char *path, void *to, int64_t nbytes) {
  for (int64_t done = 0; done < nbytes;) {
    const int64_t rest = nbytes - done;
    const int got = gzread(file, (char *)to + done, (unsigned)(rest < (1 << 30) ? rest : (1 << 30)));
    if (got <= 0) {
      char text[96];
      int code = Z_OK;
      const char *reason = gzerror(file, &code);
      if (code == Z_OK || code == Z_BUF_ERROR) {
        snprintf(text, sizeof text, "truncated: %lld bytes are missing", (long long)rest);
        reason = text;
      }
      return complain(path, reason);
    }
    done += got;
  }
  return 0;
}

/// Reads the header: `ndim` dimensions, of which all but the first must be `side`. Gives the first.
static int read_header(gzFile file, const char *path, int ndim, uint32_t side, int64_t *out_count) {
  unsigned char head[4];
  char text[128];
  if (read_all(file, path, head, sizeof head)) return -1;
  if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != ndim) {
    snprintf(text, sizeof text, "magic number is %02x%02x%02x%02x, expected 000008%02x (IDX, unsigned bytes, %d dimensions)", head[0],
             head[1], head[2], head[3], (unsigned)ndim, ndim);
    return complain(path, text);
  }
  for (int i = 0; i < ndim; i++) {
    unsigned char e[4];
    if (read_all(file, path, e, sizeof e)) return -1;
    const uint32_t extent = (uint32_t)e[0] << 24 | (uint32_t)e[1] << 16 | (uint32_t)e[2] << 8 | e[3];
    if (i == 0) *out_count = extent;
    if (i > 0 && extent != side) {
      snprintf(text, sizeof text, "images are %u pixels wide or high, expected %u", extent, side);
      return complain(path, text);
    }
  }
  return 0;
}

/// One file: `ndim` dimensions with item_nbytes bytes per item; limit > 0 reads only the first items.
static int read_file(const char *directory, const char *name, int ndim, int64_t item_nbytes, int64_t limit, uint8_t **out,
                     int64_t *out_count) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s.gz", directory, name) >= (int)sizeof path) return complain(directory, "path is too long");
  if (access(path, F_OK) != 0) snprintf(path, sizeof path, "%s/%s", directory, name);
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file && errno == ENOENT) return complain(path, "No such file or directory (the images: Debian's package dataset-fashion-mnist)");
  if (!file) return complain(path, errno ? strerror(errno) : "out of memory");
  int64_t count = 0;
  int status = read_header(file, path, ndim, kImageSide, &count);
  if (!status && count == 0) status = complain(path, "holds no items");
  if (!status) {
    if (limit > 0 && limit < count) count = limit;
    *out = malloc((size_t)(count * item_nbytes));
    *out_count = count;
    status = *out ? read_all(file, path, *out, count * item_nbytes) : complain(path, "out of memory");
  }
  gzclose(file);
  return status;
}

/// There must be as many labels as images, and each must name a class.
static int check_labels(const char *directory, const char *name, const struct dataset *data, int64_t label_count) {
  char text[128];
  if (label_count != data->count) {
    snprintf(text, sizeof text, "%s: %lld labels for %lld images", name, (long long)label_count, (long long)data->count);
    return complain(directory, text);
  }
  for (int64_t i = 0; i < data->count; i++) {
    if (data->labels[i] >= kClassCount) {
      snprintf(text, sizeof text, "%s: label %lld is %d, expected 0 to %d", name, (long long)i, data->labels[i], kClassCount - 1);
      return complain(directory, text);
    }
  }
  return 0;
}

int dataset_read(const char *directory, const char *name, int64_t limit, struct dataset *out) {
  char images[64];
  char labels[64];
  int64_t label_count = 0;
  memset(out, 0, sizeof *out);
  snprintf(images, sizeof images, "%s-images-idx3-ubyte", name);
  snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte", name);
  if (read_file(directory, images, 3, kImagePixels, limit, &out->images, &out->count) ||
      read_file(directory, labels, 1, 1, limit, &out->labels, &label_count) || check_labels(directory, labels, out, label_count)) {
    dataset_release(out);
    return -1;
  }
  return 0;
}

void dataset_release(struct dataset *data) {
  free(data->images);
  free(data->labels);
  memset(data, 0, sizeof *data);
}
