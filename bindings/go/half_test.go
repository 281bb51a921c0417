package zero_test

import (
	"math"
	"testing"

	zero "example.org/libzero/bindings/go"
)

func TestEvery16BitFloatSurvivesTheWayToFloat32AndBack(t *testing.T) {
	for bits := 0; bits <= math.MaxUint16; bits++ {
		half, bf16 := zero.F16(bits), zero.BF16(bits)
		if wide := half.Float32(); wide == wide {
			wantEqual(t, "f16", zero.F16FromFloat32(wide), half)
		} else if again := zero.F16FromFloat32(wide).Float32(); again == again {
			t.Errorf("NaN %#04x became %v", bits, again)
		}
		if wide := bf16.Float32(); wide == wide {
			wantEqual(t, "bf16", zero.BF16FromFloat32(wide), bf16)
		} else if again := zero.BF16FromFloat32(wide).Float32(); again == again {
			t.Errorf("NaN %#04x became %v", bits, again)
		}
	}
}

func TestHalvesBetweenNeighboursGoToTheEvenOne(t *testing.T) {
	for bits := zero.F16(0); bits < 0x7bff; bits++ {
		low, high := bits.Float32(), (bits + 1).Float32()
		half := low + (high-low)/2
		wantEqual(t, "f16", zero.F16FromFloat32(half), bits+bits&1)
		wantEqual(t, "-f16", zero.F16FromFloat32(-half), bits+bits&1|0x8000)
		wantEqual(t, "f16 above", zero.F16FromFloat32(math.Nextafter32(half, high)), bits+1)
		wantEqual(t, "f16 below", zero.F16FromFloat32(math.Nextafter32(half, low)), bits)
	}
	for bits := zero.BF16(0); bits < 0x7f7f; bits++ {
		half := math.Float32frombits(uint32(bits)<<16 | 0x8000)
		wantEqual(t, "bf16", zero.BF16FromFloat32(half), bits+bits&1)
		wantEqual(t, "bf16 above", zero.BF16FromFloat32(math.Nextafter32(half, math.MaxFloat32)), bits+1)
		wantEqual(t, "bf16 below", zero.BF16FromFloat32(math.Nextafter32(half, 0)), bits)
	}
}

func TestWhatIsTooLargeBecomesInfinity(t *testing.T) {
	infinity := float32(math.Inf(1))
	wantEqual(t, "65519.9", zero.F16FromFloat32(65519.9), 0x7bff)
	wantEqual(t, "65520", zero.F16FromFloat32(65520), 0x7c00)
	wantEqual(t, "-inf", zero.F16FromFloat32(-infinity), 0xfc00)
	wantEqual(t, "inf", zero.F16(0x7c00).Float32(), infinity)
	wantEqual(t, "largest", zero.BF16FromFloat32(math.MaxFloat32), 0x7f80)
	wantEqual(t, "-inf", zero.BF16FromFloat32(-infinity), 0xff80)
}

func TestSlicesConvertLikeTheirElements(t *testing.T) {
	values := []float32{1, -2, 0.1, 65520}
	wantSlices(t, "bf16", zero.BF16sFromFloat32s(values), []zero.BF16{0x3f80, 0xc000, 0x3dcd, 0x4780})
	wantSlices(t, "f16", zero.F16sFromFloat32s(values), []zero.F16{0x3c00, 0xc000, 0x2e66, 0x7c00})
	wantSlices(t, "from bf16", zero.Float32s([]zero.BF16{0x3f80, 0xc000}), []float32{1, -2})
	wantSlices(t, "from f16", zero.Float32s([]zero.F16{0x3c00, 0xc000}), []float32{1, -2})
}
