/// @file check: turns a failed libzero call into one line on standard error.
/// Knows nothing of what was called.
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <stdint.h>

/// 1 after writing the line, 0 when status is ZERO_OK. On the thread that made the call, before it makes another.
int failed(int32_t status, const char *call);

/// For a program whose ranks are its own threads, and would be as many worlds as a launcher started
/// processes: 1 after a line where one has, otherwise 0.
int launched(void);

#endif
