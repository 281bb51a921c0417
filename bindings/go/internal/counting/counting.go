// Package counting is an allocator in C that counts, for tests of Config.SetAllocator.
package counting

/*
#include <stdint.h>
#include <stdlib.h>

struct counts {
  int64_t live, calls, shared;
};

static void *counting_alloc(uint64_t nbytes, uint64_t alignment, void *user) {
  struct counts *counts = user;
  __atomic_add_fetch(&counts->live, (int64_t)nbytes, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&counts->calls, 1, __ATOMIC_SEQ_CST);
  return aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
}

static void counting_free(void *data, uint64_t nbytes, void *user) {
  struct counts *counts = user;
  __atomic_sub_fetch(&counts->live, (int64_t)nbytes, __ATOMIC_SEQ_CST);
  free(data);
}

static void counting_shared(int64_t delta, void *user) {
  struct counts *counts = user;
  __atomic_add_fetch(&counts->shared, delta, __ATOMIC_SEQ_CST);
}

static void *alloc_address(void) { return (void *)counting_alloc; }
static void *free_address(void) { return (void *)counting_free; }
static void *shared_address(void) { return (void *)counting_shared; }
static int64_t load(int64_t *count) { return __atomic_load_n(count, __ATOMIC_SEQ_CST); }
*/
import "C"

import (
	"unsafe"

	zero "example.org/libzero/bindings/go"
)

// Allocator counts what goes through it. It is never given back, because libzero may hold it as long as it likes.
type Allocator struct{ counts *C.struct_counts }

// New makes an allocator that has counted nothing.
func New() Allocator { return Allocator{(*C.struct_counts)(C.calloc(1, C.sizeof_struct_counts))} }

// Functions returns what SetAllocator takes.
func (a Allocator) Functions() zero.Allocator {
	return zero.Allocator{
		Alloc: C.alloc_address(), Free: C.free_address(), Shared: C.shared_address(), User: unsafe.Pointer(a.counts),
	}
}

// Live returns the bytes that were allocated and not freed.
func (a Allocator) Live() int { return int(C.load(&a.counts.live)) }

// Calls returns how often memory was allocated.
func (a Allocator) Calls() int { return int(C.load(&a.counts.calls)) }

// Shared returns the bytes of memory shared with other processes.
func (a Allocator) Shared() int { return int(C.load(&a.counts.shared)) }
