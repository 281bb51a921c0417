/* @file Makes allocations that libzero.so asks for fail: malloc and its family, mmap, memfd_create and pthread_create are defined by the
 * test program and passed on, but for the chosen ones. Knows who asks by the address it returns to. */
#ifndef ALLOCATION_FAULTS_H
#define ALLOCATION_FAULTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on the index-th request of libzero fails (from 0), and with `always` all later ones too. index -1: only count. */
void allocation_faults_begin(int64_t index, int always);
/* Ends that and returns the number of requests since begin. */
int64_t allocation_faults_end(void);

/* Counts a request of the library. Returns 1 if it must fail; `caller` is the return address of the
   allocation call. */
int allocation_fault_due(const void *caller);

#ifdef __cplusplus
}
#endif

#endif
