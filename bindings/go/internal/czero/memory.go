package czero

import "unsafe"

// keep holds memory that C is given as a number: deferred before a call, it keeps the memory alive until the call has returned, and because
// it could store the pointer, the memory is on the heap and not on a goroutine's stack, which moves.
func keep(memory unsafe.Pointer) {
	if escapes {
		escaped = memory
	}
}

// escapes is never set, which the compiler cannot see.
var (
	escapes bool
	escaped unsafe.Pointer
)
