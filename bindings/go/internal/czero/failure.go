package czero

import (
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// Failure is what a call that failed left: its code and its text.
type Failure struct {
	Code int32
	Text string
}

// newFailure takes over "CODE TEXT" in C's memory, which take_failure of typemaps/go.i made, and frees it. No text means no failure.
func newFailure(memory string) *Failure {
	if memory == "" {
		return nil
	}
	code, text, _ := strings.Cut(strings.Clone(memory), " ")
	Swig_free((*reflect.StringHeader)(unsafe.Pointer(&memory)).Data)
	number, err := strconv.ParseInt(code, 10, 32)
	if err != nil {
		panic("czero: a failure without a code: " + strconv.Quote(code))
	}
	return &Failure{Code: int32(number), Text: text}
}
