/// @file Contexts: the primary contexts of the devices, which CUDA's runtime uses too, and each
/// thread's stack of contexts.
#include "kernels/cuda/context.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* cudaErrorInsufficientDriver, cudaErrorInvalidDevice */
#define NO_DRIVER 35
#define NO_DEVICE 101
#define MOST_DEVICES 256

/* libcuda's functions as the runtime names them; both use the same error codes. */
static struct driver {
  int (*init)(unsigned flags);
  int (*device_get)(int *out, int ordinal);
  int (*primary_context_retain)(void **out, int device);
  int (*context_get_current)(void **out);
  int (*context_push)(void *context);
  int (*context_pop)(void **out);
} driver;
static int driver_error;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static int look_up(void *library, const char *name, void *out) {
  void *const address = dlsym(library, name);
  *(void **)out = address;
  return address != NULL ? 0 : NO_DRIVER;
}

static void open_driver(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int error = library != NULL ? 0 : NO_DRIVER;
  if (error == 0) error = look_up(library, "cuInit", &driver.init);
  if (error == 0) error = look_up(library, "cuDeviceGet", &driver.device_get);
  if (error == 0) error = look_up(library, "cuDevicePrimaryCtxRetain", &driver.primary_context_retain);
  if (error == 0) error = look_up(library, "cuCtxGetCurrent", &driver.context_get_current);
  if (error == 0) error = look_up(library, "cuCtxPushCurrent_v2", &driver.context_push);
  if (error == 0) error = look_up(library, "cuCtxPopCurrent_v2", &driver.context_pop);
  if (error == 0) error = driver.init(0);
  driver_error = error;
}

/* Retained once and never released: memory on the device may outlive its first user. */
static int context_of(int64_t device, void **out) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static void *contexts[MOST_DEVICES];
  int handle = 0;
  int error = 0;
  if (device < 0 || device >= MOST_DEVICES) return NO_DEVICE;
  *out = __atomic_load_n(&contexts[device], __ATOMIC_ACQUIRE);
  if (*out != NULL) return 0;
  pthread_mutex_lock(&mutex);
  *out = contexts[device];
  if (*out == NULL) error = driver.device_get(&handle, (int)device);
  if (*out == NULL && error == 0) error = driver.primary_context_retain(out, handle);
  if (error == 0) __atomic_store_n(&contexts[device], *out, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
  return error;
}

int32_t zero_cuda_push(int64_t device, int32_t *out_pushed) {
  void *context = NULL;
  void *current = NULL;
  int error = 0;
  *out_pushed = 0;
  pthread_once(&driver_once, open_driver);
  error = driver_error;
  if (error == 0) error = context_of(device, &context);
  if (error == 0) error = driver.context_get_current(&current);
  if (error != 0 || current == context) return error;
  error = driver.context_push(context);
  *out_pushed = error == 0;
  return error;
}

int32_t zero_cuda_pop(void) {
  void *popped = NULL;
  return driver.context_pop(&popped);
}
