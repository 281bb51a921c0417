/// @file own_optimizer_plain: what examples/own_optimizer computes with the number of ranks given, in one process and without libzero.
/// Knows nothing of shards.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1000, kSteps = 60 };

/// The sum over ranks [first, last) of an element's gradients, by the tree of zero/group.h.
static float sum(float w, int64_t i, int64_t first, int64_t last) {
  int64_t half = 1;
  if (last - first == 1) return w - ((float)(i % 7) - 3 + (float)first / 8);
  while (2 * half < last - first) half *= 2;
  const float lower = sum(w, i, first, first + half);
  return lower + sum(w, i, first + half, last);
}

int main(int argc, char **argv) {
  const int64_t ranks = argc == 2 ? atoll(argv[1]) : 1;
  for (int64_t i = 0; i < kCount; i++) {
    float w = 0;
    float m = 0;
    for (int step = 0; step < kSteps; step++) {
      m = 0.75f * m + 0.25f * (sum(w, i, 0, ranks) / (float)ranks);
      if (m > 0) w -= 0.0625f;
      if (m < 0) w += 0.0625f;
    }
    printf("%.9g\n", w);
  }
  return 0;
}
