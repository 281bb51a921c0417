/// @file compute: where a rank computes: on the host, or on a CUDA device. One struct of functions, filled in two ways.
/// Knows nothing of ranks or of libzero: parameters and gradients are plain pointers that its caller provides.
#ifndef FASHION_COMPUTE_H
#define FASHION_COMPUTE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Functions that return int give 0, or -1 after a line on standard error. On a device they return before their work has ended, which is
/// done in the order of `stream`; loss and copy wait for it. By one thread, the one that made the struct.
struct compute {
  void *stream; /* a cudaStream_t; NULL on the host */

  void (*release)(struct compute *self);

  /* The model, layer by layer, as model.h says. */
  int (*begin)(struct compute *self, int64_t count, const uint8_t *const *images, const uint8_t *labels);
  void (*set_divisor)(struct compute *self, double divisor);
  int (*forward)(struct compute *self, int layer, const float *weight, const float *bias);
  int (*loss)(struct compute *self, double *out_loss, int64_t *out_correct);
  int (*backward)(struct compute *self, int layer, const float *weight, float *weight_grad, float *bias_grad);

  /* Memory that the model can compute with. allocate gives NULL when it is short, deallocate takes NULL. */
  void *(*allocate)(struct compute *self, size_t nbytes);
  void (*deallocate)(struct compute *self, void *memory);
  int (*clear)(struct compute *self, void *to, size_t nbytes);
  /* Between such memory, or that of libzero, and the host's. */
  int (*copy)(struct compute *self, void *to, const void *from, size_t nbytes);
  /* As precision.h says. */
  int (*widen)(struct compute *self, int32_t dtype, const uint16_t *from, int64_t count, float *to);
  int (*narrow)(struct compute *self, int32_t dtype, const float *from, int64_t count, uint16_t *to);
};

/// Room for up to `capacity` samples. Return 0, or -1 after a line on standard error; builds without CUDA have no device.
int compute_create_host(int64_t capacity, struct compute **out);
int compute_create_cuda(int64_t device, int64_t capacity, struct compute **out);

#ifdef __cplusplus
}
#endif

#endif
