/// @file counters: numbers of elements that libzero counted for one rank's optimizer. Knows nothing of how they are printed.
#ifndef EXAMPLES_COUNTERS_H
#define EXAMPLES_COUNTERS_H

#include <stdint.h>
#include <zero/zero.h>

/// Both return 0, or -1 after a line on standard error.

/// Elements of the first `tensors` parameters and of every slot that is kept beside them.
int kept_elements(const zero_optimizer *optimizer, int64_t tensors, int64_t *out);

/// Elements that this rank has sent so far in a zero_operation.
int sent_elements(const zero_optimizer *optimizer, int32_t operation, int64_t *out);

#endif
