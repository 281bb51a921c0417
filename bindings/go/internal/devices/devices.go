// Package devices is devices that tests emulate, through the functions of tests/memory/caller_device.h: memory there, streams, copies.
package devices

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void *(*caller_alloc)(int64_t, int64_t);
static void (*caller_free)(void *);
static void *(*caller_stream_create)(int64_t);
static void (*caller_stream_destroy)(void *);
static void (*caller_copy)(void *, void *, const void *, int64_t, int64_t);
static void (*caller_wait)(void *);

static int load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (library == NULL) return 0;
  *(void **)&caller_alloc = dlsym(library, "caller_alloc");
  *(void **)&caller_free = dlsym(library, "caller_free");
  *(void **)&caller_stream_create = dlsym(library, "caller_stream_create");
  *(void **)&caller_stream_destroy = dlsym(library, "caller_stream_destroy");
  *(void **)&caller_copy = dlsym(library, "caller_copy");
  *(void **)&caller_wait = dlsym(library, "caller_wait");
  return caller_alloc && caller_free && caller_stream_create && caller_stream_destroy && caller_copy && caller_wait;
}

static uintptr_t allocate(int64_t device, int64_t nbytes) { return (uintptr_t)caller_alloc(device, nbytes); }
static void give_back(uintptr_t address) { caller_free((void *)address); }
static uintptr_t make_stream(int64_t device) { return (uintptr_t)caller_stream_create(device); }
static void end_stream(uintptr_t stream) { caller_stream_destroy((void *)stream); }
static void wait_for(uintptr_t stream) { caller_wait((void *)stream); }
// A copy of the values, which the stream takes late; free it once the stream was waited for.
static void put(uintptr_t stream, uintptr_t to, void *values, int64_t nbytes) {
  caller_copy((void *)stream, (void *)to, values, nbytes, 300);
}
static void get(uintptr_t stream, void *values, uintptr_t from, int64_t nbytes) {
  caller_copy((void *)stream, values, (void *)from, nbytes, 300);
  caller_wait((void *)stream);
}
*/
import "C"

import (
	"os"
	"sync"
	"unsafe"
)

var (
	once   sync.Once
	loaded bool
)

// Missing says why there are no devices; "" where there are. ctest names the library where it is built.
func Missing() string {
	path := os.Getenv("ZERO_TEST_CALLER_DEVICE")
	if path == "" {
		return "ZERO_TEST_CALLER_DEVICE names no library with devices"
	}
	once.Do(func() {
		text := C.CString(path)
		defer C.free(unsafe.Pointer(text))
		loaded = C.load(text) != 0
	})
	if !loaded {
		panic(path + " is no library with devices")
	}
	return ""
}

// Stream is a stream of a device, with the memory that its work uses.
type Stream struct {
	Device int
	Raw    uintptr
	pieces []uintptr
	values []unsafe.Pointer
}

// NewStream makes a stream.
func NewStream(device int) *Stream {
	return &Stream{Device: device, Raw: uintptr(C.make_stream(C.int64_t(device)))}
}

// Alloc returns memory for float32 elements, which Close gives back.
func (s *Stream) Alloc(count int) uintptr {
	piece := uintptr(C.allocate(C.int64_t(s.Device), C.int64_t(4*count+1)))
	s.pieces = append(s.pieces, piece)
	return piece
}

// Put gives the stream a late copy of values to the device.
func (s *Stream) Put(to uintptr, values []float32) {
	copied := C.malloc(C.size_t(4*len(values) + 1))
	copy(unsafe.Slice((*float32)(copied), len(values)), values)
	s.values = append(s.values, copied)
	C.put(C.uintptr_t(s.Raw), C.uintptr_t(to), copied, C.int64_t(4*len(values)))
}

// Get returns elements after all that the stream was given.
func (s *Stream) Get(from uintptr, count int) []float32 {
	copied := C.malloc(C.size_t(4*count + 1))
	defer C.free(copied)
	C.get(C.uintptr_t(s.Raw), copied, C.uintptr_t(from), C.int64_t(4*count))
	return append([]float32{}, unsafe.Slice((*float32)(copied), count)...)
}

// Wait returns when the stream has no work.
func (s *Stream) Wait() {
	C.wait_for(C.uintptr_t(s.Raw))
	for _, copied := range s.values {
		C.free(copied)
	}
	s.values = nil
}

// Close waits and gives everything back.
func (s *Stream) Close() {
	s.Wait()
	for _, piece := range s.pieces {
		C.give_back(C.uintptr_t(piece))
	}
	C.end_stream(C.uintptr_t(s.Raw))
}
