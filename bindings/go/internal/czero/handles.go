// Package czero is libzero's C interface as SWIG and bindings/gen wrote it from bindings/zero.i, with the few types that their output names.
// It knows no element types, lifetimes or contexts; package zero does.
package czero

// Config, Group, Buffer, Optimizer, Checkpoint, Save, Server and Request are handles: numbers that libzero checks at each use. 0 is C's NULL.
type (
	Config     uintptr
	Group      uintptr
	Buffer     uintptr
	Optimizer  uintptr
	Checkpoint uintptr
	Save       uintptr
	Server     uintptr
	Request    uintptr
)
