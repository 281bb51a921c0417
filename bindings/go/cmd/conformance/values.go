package main

import (
	"math"

	zero "example.org/libzero/bindings/go"
)

// fill sets data to v(i, series).
func fill[T zero.Element](data []T, series int) {
	for i := range data {
		data[i] = element[T]((7*i + 13*series) % 97)
	}
}

func values[T zero.Element](count, series int) []T {
	data := make([]T, count)
	fill(data, series)
	return data
}

func element[T zero.Element](k int) T {
	var value T
	real := float64(k-48) / 16
	switch to := any(&value).(type) {
	case *float32:
		*to = float32(real)
	case *float64:
		*to = real
	case *zero.BF16:
		*to = zero.BF16(math.Float32bits(float32(real)) >> 16)
	case *int32:
		*to = int32(k - 48)
	case *int64:
		*to = int64(k - 48)
	case *uint8:
		*to = uint8(k)
	}
	return value
}
