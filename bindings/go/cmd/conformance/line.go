package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"

	zero "example.org/libzero/bindings/go"
)

// line is what a scenario has to say: words, in the order they were added.
type line struct{ words []string }

func (l *line) add(format string, values ...any) {
	l.words = append(l.words, fmt.Sprintf(format, values...))
}

func (l *line) addDouble(value float64) { l.add("%016x", math.Float64bits(value)) }

// addHash adds the FNV-1a hash of the values' bytes.
func addHash[T zero.Element](l *line, values []T) {
	hash := uint64(0xcbf29ce484222325)
	if len(values) > 0 {
		nbytes := len(values) * int(unsafe.Sizeof(values[0]))
		for _, b := range unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), nbytes) {
			hash = (hash ^ uint64(b)) * 0x100000001b3
		}
	}
	l.add("#%016x", hash)
}

func (l *line) addStatus(err error) {
	if err == nil {
		l.add("%v", zero.Status(0))
		return
	}
	l.add("%v", errorOf(err).Code)
}

func (l *line) addError(err error) {
	if err == nil {
		l.addStatus(err)
		return
	}
	l.add("%v: %s", errorOf(err).Code, errorOf(err).Text)
}

func (l *line) print(scenario string) {
	if len(l.words) == 0 {
		l.add("-")
	}
	fmt.Printf("%s: %s\n", scenario, strings.Join(l.words, " "))
}

func errorOf(err error) *zero.Error {
	var e *zero.Error
	if !errors.As(err, &e) {
		fail(err)
	}
	return e
}

// check ends the program when a call failed that a scenario takes for granted.
func check(err error) {
	if err != nil {
		fail(err)
	}
}

// must is check for a call with a result.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "conformance:", err)
	os.Exit(1)
}
