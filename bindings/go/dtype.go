package zero

import "example.org/libzero/bindings/go/internal/czero"

// DType is an element type.
type DType int32

// Element types. Collectives and buffers do not take the last three, which only slots of an optimizer have.
const (
	DTypeF32  = DType(czero.ZERO_DTYPE_F32)
	DTypeF64  = DType(czero.ZERO_DTYPE_F64)
	DTypeF16  = DType(czero.ZERO_DTYPE_F16)
	DTypeBF16 = DType(czero.ZERO_DTYPE_BF16)
	DTypeI32  = DType(czero.ZERO_DTYPE_I32)
	DTypeI64  = DType(czero.ZERO_DTYPE_I64)
	DTypeU8   = DType(czero.ZERO_DTYPE_U8)

	DTypeU16     = DType(czero.ZERO_DTYPE_U16)
	DTypeF8E4M3  = DType(czero.ZERO_DTYPE_F8_E4M3)
	DTypeF8UE5M3 = DType(czero.ZERO_DTYPE_F8_UE5M3)
)

// String returns a short name, for example "bf16".
func (d DType) String() string { return nameOf("ZERO_DTYPE_", int64(d)) }

// Size returns the bytes of one element.
func (d DType) Size() (int, error) {
	var nbytes int64
	failure := czero.Zero_dtype_nbytes(int32(d), &nbytes)
	return int(nbytes), wrap(failure)
}
