/// @file The replaced functions: see allocation_faults.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "allocation_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <zero/zero.h>

static atomic_int armed;
static atomic_int_least64_t requests;
static int64_t fail_index;
static int fail_always;
static uintptr_t library_begin;
static uintptr_t library_end;

/* The loader's lookup of the real functions may itself allocate: such early requests are served from here and never freed. */
static char early[65536] __attribute__((aligned(64)));
static size_t early_used;

static void *early_allocate(size_t nbytes) {
  const size_t room = (nbytes + 63) / 64 * 64;
  if (early_used + room > sizeof early) return NULL;
  void *data = early + early_used;
  early_used += room;
  return data;
}

static int is_early(const void *data) { return (const char *)data >= early && (const char *)data < early + sizeof early; }

static int find_library(struct dl_phdr_info *info, size_t size, void *inside) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    if ((uintptr_t)inside < begin || (uintptr_t)inside >= end) continue;
    library_begin = begin;
    library_end = end;
    return 1;
  }
  return 0;
}

void allocation_faults_begin(int64_t index, int always) {
  if (library_end == 0) dl_iterate_phdr(find_library, dlsym(RTLD_DEFAULT, "zero_version"));
  fail_index = index;
  fail_always = always;
  atomic_store(&requests, 0);
  atomic_store(&armed, 1);
}

int64_t allocation_faults_end(void) {
  atomic_store(&armed, 0);
  return atomic_load(&requests);
}

int allocation_fault_due(const void *caller) {
  if (!atomic_load(&armed) || (uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end) return 0;
  const int64_t index = atomic_fetch_add(&requests, 1);
  return fail_index >= 0 && (index == fail_index || (fail_always && index > fail_index));
}

/* The next definition of a function, looked up once. */
static _Thread_local int looking_up;
static void *next_function(void **slot, const char *name) {
  if (*slot == NULL && !looking_up) {
    looking_up = 1;
    *slot = dlsym(RTLD_NEXT, name);
    looking_up = 0;
  }
  return *slot;
}

#define NEXT(name)                     \
  static void *slot_##name;            \
  typedef __typeof__(&name) fn_##name; \
  const fn_##name real = (fn_##name)next_function(&slot_##name, #name)

void *malloc(size_t nbytes) {
  NEXT(malloc);
  if (real == NULL) return early_allocate(nbytes);
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = ENOMEM;
    return NULL;
  }
  return real(nbytes);
}

void free(void *data) {
  if (data == NULL || is_early(data)) return;
  NEXT(free);
  if (real != NULL) real(data);
}

void *calloc(size_t count, size_t nbytes) {
  NEXT(calloc);
  if (real == NULL) return early_allocate(count * nbytes);
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = ENOMEM;
    return NULL;
  }
  return real(count, nbytes);
}

void *realloc(void *data, size_t nbytes) {
  NEXT(realloc);
  if (real == NULL || is_early(data)) {
    void *moved = malloc(nbytes);
    if (moved != NULL && data != NULL) memcpy(moved, data, nbytes);
    return moved;
  }
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = ENOMEM;
    return NULL;
  }
  return real(data, nbytes);
}

int posix_memalign(void **out, size_t alignment, size_t nbytes) {
  NEXT(posix_memalign);
  return allocation_fault_due(__builtin_return_address(0)) ? ENOMEM : real(out, alignment, nbytes);
}

void *aligned_alloc(size_t alignment, size_t nbytes) {
  NEXT(aligned_alloc);
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = ENOMEM;
    return NULL;
  }
  return real(alignment, nbytes);
}

void *mmap(void *address, size_t nbytes, int protection, int flags, int file, off_t offset) {
  NEXT(mmap);
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real(address, nbytes, protection, flags, file, offset);
}

int memfd_create(const char *name, unsigned int flags) {
  NEXT(memfd_create);
  if (allocation_fault_due(__builtin_return_address(0))) {
    errno = EMFILE;
    return -1;
  }
  return real(name, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  NEXT(pthread_create);
  return allocation_fault_due(__builtin_return_address(0)) ? EAGAIN : real(thread, attributes, start, argument);
}
