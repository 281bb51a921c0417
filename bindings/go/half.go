package zero

import "math"

// BF16FromFloat32 returns the nearest value, ties to even. NaN stays NaN.
func BF16FromFloat32(value float32) BF16 {
	const quietNaN = 0x7fc0
	if value != value {
		return quietNaN
	}
	bits := math.Float32bits(value)
	return BF16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 returns the same value, exactly.
func (b BF16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// Of binary16, and what lies between it and a float32.
const (
	f16Infinity    = 0x7c00
	f16MantissaLen = 10
	f16DroppedBits = 23 - f16MantissaLen
	f16Bias        = (127 - 15) << 23 // between the exponents' biases, in the place of a float32's exponent
	f16Unit        = 1.0 / (1 << 24)  // of subnormal numbers
	f16FirstNormal = 1024 * f16Unit   // 2^-14
	f16TooLarge    = 65520.0          // halfway between the largest finite number and the next power of two
	f32Infinity    = 0xff << 23
)

// F16FromFloat32 returns the nearest value, ties to even; infinity for what is too large. NaN stays NaN.
func F16FromFloat32(value float32) F16 {
	const quietNaN = 0x7e00
	bits := math.Float32bits(value)
	sign, magnitude := F16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case magnitude > f32Infinity:
		return sign | quietNaN
	case magnitude >= math.Float32bits(f16TooLarge):
		return sign | f16Infinity
	case magnitude < math.Float32bits(f16FirstNormal):
		// 2^-24 is the unit of floats in 0.5 .. 1 too: the addition rounds.
		return sign | F16(math.Float32bits(math.Float32frombits(magnitude)+0.5)-math.Float32bits(0.5))
	}
	odd := magnitude >> f16DroppedBits & 1
	return sign | F16((magnitude-f16Bias+1<<(f16DroppedBits-1)-1+odd)>>f16DroppedBits)
}

// Float32 returns the same value, exactly.
func (h F16) Float32() float32 {
	sign, rest := uint32(h&0x8000)<<16, h&0x7fff
	var magnitude uint32
	switch {
	case rest >= f16Infinity:
		magnitude = f32Infinity | uint32(rest&0x3ff)<<f16DroppedBits
	case rest>>f16MantissaLen > 0:
		magnitude = uint32(rest)<<f16DroppedBits + f16Bias
	default:
		magnitude = math.Float32bits(float32(rest) * f16Unit)
	}
	return math.Float32frombits(sign | magnitude)
}

// BF16sFromFloat32s rounds each value as BF16FromFloat32 does.
func BF16sFromFloat32s(values []float32) []BF16 { return converted(values, BF16FromFloat32) }

// F16sFromFloat32s rounds each value as F16FromFloat32 does.
func F16sFromFloat32s(values []float32) []F16 { return converted(values, F16FromFloat32) }

// Float32s returns the same values, exactly.
func Float32s[T interface {
	F16 | BF16
	Float32() float32
}](values []T) []float32 {
	return converted(values, T.Float32)
}

func converted[From, To any](values []From, convert func(From) To) []To {
	results := make([]To, len(values))
	for i, value := range values {
		results[i] = convert(value)
	}
	return results
}
