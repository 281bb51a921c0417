package zero

import (
	"fmt"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Element types that Go has no name for, as their bits: arithmetic on them is arithmetic on the bits, and BF16(x) takes x for bits.
// BF16FromFloat32 and F16FromFloat32 convert numbers.
type (
	F16     uint16 // IEEE 754 binary16
	BF16    uint16 // the upper half of a float32
	F8E4M3  uint8  // sign, 4 exponent bits, 3 mantissa bits
	F8UE5M3 uint8  // no sign, 5 exponent bits, 3 mantissa bits
)

// Element is what slices may hold. A uint16 is what a bf16 parameter lacks of its float32 master.
type Element interface {
	float32 | float64 | F16 | BF16 | int32 | int64 | uint8 | uint16 | F8E4M3 | F8UE5M3
}

// DTypeOf returns libzero's name for an element type.
func DTypeOf[T Element]() DType {
	var element T
	switch any(element).(type) {
	case float32:
		return DTypeF32
	case float64:
		return DTypeF64
	case F16:
		return DTypeF16
	case BF16:
		return DTypeBF16
	case int32:
		return DTypeI32
	case int64:
		return DTypeI64
	case uint8:
		return DTypeU8
	case uint16:
		return DTypeU16
	case F8E4M3:
		return DTypeF8E4M3
	default:
		return DTypeF8UE5M3
	}
}

// checkElement compares the element type of a slice with that of the memory it is to stand for. 0 is that of an unknown id, which libzero
// refuses itself.
func checkElement[T Element](what string, id int, stored DType) error {
	return wrap(mismatch[T](what, id, stored))
}

// mismatch is checkElement within a call.
func mismatch[T Element](what string, id int, stored DType) *czero.Failure {
	given := DTypeOf[T]()
	if given == stored || stored == 0 {
		return nil
	}
	text := fmt.Sprintf("%s %d is %s, but the slice holds %s", what, id, stored, given)
	return &czero.Failure{Code: int32(ErrInvalidArgument), Text: text}
}

// addressOf returns the address of a slice's elements, nil when it has none.
func addressOf[T Element](values []T) unsafe.Pointer {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Pointer(&values[0])
}

// placeOf is addressOf where libzero takes nil for something else than no elements.
func placeOf[T Element](values []T) unsafe.Pointer {
	if len(values) == 0 {
		return unsafe.Pointer(&struct{}{})
	}
	return addressOf(values)
}

// sliceOf returns libzero's memory as a slice.
func sliceOf[T Element](address uintptr, count int) []T {
	if count == 0 {
		return nil
	}
	return unsafe.Slice(*(**T)(unsafe.Pointer(&address)), count)
}

func toInt64s(values []int) []int64 {
	converted := make([]int64, len(values))
	for i, value := range values {
		converted[i] = int64(value)
	}
	return converted
}
