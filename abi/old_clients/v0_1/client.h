/*
 * What the parts of the client share: how a call that goes wrong ends it, and the numbers that arrays hold.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <zero/zero.h>

#define COUNT 8
#define GUARD UINT64_C(0xa5a5a5a55a5a5a5a)

void fail(const char *file, int line, const char *what, int32_t status);

#define OK(call)                                                      \
  do {                                                                \
    const int32_t status_ = (call);                                   \
    if (status_ != ZERO_OK) fail(__FILE__, __LINE__, #call, status_); \
  } while (0)
#define FAILS(expected, call)                                            \
  do {                                                                   \
    const int32_t status_ = (call);                                      \
    if (status_ != (expected)) fail(__FILE__, __LINE__, #call, status_); \
  } while (0)
#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, ZERO_OK); \
  } while (0)

/* Waits for a request and gives it back. */
void finish(zero_request *request);

/* values[i] = first + i. */
void check_numbers(const float *values, float first);

/* Uses every function of optimizers; returns one that is sealed, the caller's. */
zero_optimizer *use_optimizers(zero_group *group, const zero_config *config);

#endif
