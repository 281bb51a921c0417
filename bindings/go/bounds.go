package zero

import (
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// KeyType is the type of a key's value.
type KeyType int64

// Types of keys.
const (
	KeyTypeI64 KeyType = 1
	KeyTypeF64 KeyType = 2
	KeyTypeStr KeyType = 3
)

// String returns its name, for example "i64".
func (t KeyType) String() string {
	switch t {
	case KeyTypeI64:
		return "i64"
	case KeyTypeF64:
		return "f64"
	case KeyTypeStr:
		return "str"
	}
	return "unknown"
}

// KeyBounds tells the type of a key, its inclusive bounds and its default. Fields of another type than the key's are zero.
type KeyBounds struct {
	Type                       KeyType
	MinI64, MaxI64, DefaultI64 int64
	MinF64, MaxF64, DefaultF64 float64
}

// Bounds returns the bounds of a key, or ErrUnsupported for an unknown one.
func Bounds(key Key) (KeyBounds, error) {
	if err := Check(); err != nil {
		return KeyBounds{}, err
	}
	var b czero.KeyBounds
	failure := czero.Zero_key_bounds_init(&b, uint64(unsafe.Sizeof(b)))
	if failure == nil {
		failure = czero.Zero_config_bounds(int32(key), &b)
	}
	if failure != nil {
		return KeyBounds{}, wrap(failure)
	}
	return KeyBounds{
		Type: KeyType(b.Type), MinI64: b.MinI64, MaxI64: b.MaxI64, DefaultI64: b.DefaultI64,
		MinF64: b.MinF64, MaxF64: b.MaxF64, DefaultF64: b.DefaultF64,
	}, nil
}
