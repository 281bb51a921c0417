/// @file counters: slots and traffic, read through the public calls.
#include "counters.h"

#include "check.h"

int kept_elements(const zero_optimizer *optimizer, int64_t tensors, int64_t *out) {
  *out = 0;
  for (int64_t id = 0; id < tensors; id++) {
    int64_t slots = 0;
    if (failed(zero_optimizer_slot_count(optimizer, id, &slots), "zero_optimizer_slot_count")) return -1;
    for (int64_t index = 0; index < slots; index++) {
      int64_t slot, dtype, count;
      if (failed(zero_optimizer_slot(optimizer, id, index, &slot, &dtype, &count), "zero_optimizer_slot")) return -1;
      *out += count;
    }
  }
  return 0;
}

int sent_elements(const zero_optimizer *optimizer, int32_t operation, int64_t *out) {
  zero_traffic_stats stats;
  if (failed(zero_traffic_stats_init(&stats, sizeof stats), "zero_traffic_stats_init") ||
      failed(zero_stats_optimizer_traffic(optimizer, operation, &stats), "zero_stats_optimizer_traffic")) {
    return -1;
  }
  *out = stats.sent_elements;
  return 0;
}
