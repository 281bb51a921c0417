/// @file check: turns a failed libzero call into one line on standard error.
/// Knows nothing of what was called.
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <stdint.h>

/// 1 after writing the line, 0 when status is ZERO_OK. On the thread that made the call, before it makes another.
int failed(int32_t status, const char *call);

#endif
