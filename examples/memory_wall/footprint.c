/// @file footprint: reads /proc/<pid>/smaps_rollup.
/// Knows nothing of what the ranks do.
#include "footprint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct footprint *footprint_create(void) {
  void *memory = mmap(NULL, sizeof(struct footprint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return memory;
  fprintf(stderr, "memory_wall: mmap: %s\n", strerror(errno));
  return NULL;
}

void footprint_release(struct footprint *footprint) { munmap(footprint, sizeof *footprint); }

/// 0 for a process that has ended.
static int64_t proportional_nbytes(pid_t pid) {
  char path[64];
  char line[256];
  long long kibibytes = 0;
  snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file) && sscanf(line, "Pss: %lld", &kibibytes) != 1) continue;
  fclose(file);
  return kibibytes * 1024;
}

void footprint_sample(struct footprint *footprint, const pid_t *pids, int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += pids[i] > 0 ? proportional_nbytes(pids[i]) : 0;
  footprint->now = sum;
  if (sum > footprint->peak) footprint->peak = sum;
}
