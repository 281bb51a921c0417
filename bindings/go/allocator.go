package zero

import (
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Allocator provides libzero's private memory and is told of what it shares between processes. It consists of addresses of C functions, of
// the types zero_alloc_fn, zero_free_fn and zero_shared_fn of zero/config.h: the memory must be C's in any case, and a panic of a Go
// function could not pass through libzero. A program that only wants to know the sizes asks Optimizer.Memory or Buffer.Memory.
type Allocator struct {
	Alloc, Free unsafe.Pointer // both or neither
	Shared      unsafe.Pointer // or nil
	User        unsafe.Pointer // passed to all three: C memory that outlives every object made from the config
}

// keyAllocator stands for the allocator among the keys that were set.
const keyAllocator Key = -1

// SetAllocator gives the allocator to every object that is made from the config.
func (c *Config) SetAllocator(allocator Allocator) error {
	return c.set(keyAllocator, func(raw czero.Config) *czero.Failure {
		return czero.Zero_config_set_allocator(raw, allocator.Alloc, allocator.Free, allocator.Shared, allocator.User)
	})
}
