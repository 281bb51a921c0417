package zero

import (
	"context"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Source is where first values come from.
type Source int32

// Sources.
const (
	SourceLocal  = Source(czero.ZERO_SOURCE_LOCAL)  // every rank wrote the same into acquired parameters, which is checked
	SourceRoot   = Source(czero.ZERO_SOURCE_ROOT)   // rank 0 wrote them into acquired parameters, the others receive them
	SourceShards = Source(czero.ZERO_SOURCE_SHARDS) // written by range with WriteSlot, or made by InitParam
)

// String returns its name, for example "shards".
func (s Source) String() string { return nameOf("ZERO_SOURCE_", int64(s)) }

// Initialiser is how InitParam makes values.
type Initialiser int32

// Initialisers.
const (
	InitialiserConstant = Initialiser(czero.ZERO_INITIALISER_CONSTANT) // a
	InitialiserUniform  = Initialiser(czero.ZERO_INITIALISER_UNIFORM)  // uniform in [a, b)
	InitialiserNormal   = Initialiser(czero.ZERO_INITIALISER_NORMAL)   // normal with mean a and deviation b
)

// String returns its name, for example "normal".
func (i Initialiser) String() string { return nameOf("ZERO_INITIALISER_", int64(i)) }

// InitParam fills a parameter with first values, each rank only what it updates, with the same bits at any world size and stage. Before
// Begin(SourceShards), on all ranks alike. Not a collective.
func (o *Optimizer) InitParam(id int, initialiser Initialiser, a, b float64, seed int64) error {
	return o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_init_param(raw, int64(id), int32(initialiser), a, b, seed)
	})
}

// Begin takes over first values: before the first step, and again after parameters were edited. A collective.
func (o *Optimizer) Begin(ctx context.Context, source Source) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_begin(raw, int32(source)) })
}

// Acquire returns a parameter, all of it, in libzero's memory: to be written before Begin, to be read only afterwards, valid until Release.
// In stage 3 after Begin it is gathered, which is a collective.
func Acquire[T Element](ctx context.Context, o *Optimizer, id int) ([]T, error) {
	param := o.param(id)
	if err := o.checkLends(false); err != nil {
		return nil, err
	}
	if err := checkElement[T]("parameter", id, param.dtype); err != nil {
		return nil, err
	}
	address, err := o.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	return sliceOf[T](address, param.count), nil
}

// acquire returns the address of a parameter in libzero's memory.
func (o *Optimizer) acquire(ctx context.Context, id int) (address uintptr, err error) {
	err = o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_param_acquire(raw, int64(id), nil, 0, o.onStream(), &address)
	})
	return address, err
}

// Release ends one Acquire of a parameter. Not a collective.
func (o *Optimizer) Release(id int) error {
	return o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_param_release(raw, int64(id)) })
}

// CopyParam sets dst, which has as many elements as the parameter, to its values: an Acquire into the program's own memory, which needs no
// Release. A collective where Acquire is.
func CopyParam[T Element](ctx context.Context, o *Optimizer, id int, dst []T) error {
	if err := checkElement[T]("parameter", id, o.param(id).dtype); err != nil {
		return err
	}
	return o.fill(ctx, id, placeOf(dst), len(dst))
}

// fill sets memory to a parameter, wherever it lies.
func (o *Optimizer) fill(ctx context.Context, id int, dst unsafe.Pointer, count int) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		var address uintptr
		failure := czero.Zero_optimizer_param_acquire(raw, int64(id), dst, int64(count), o.onStream(), &address)
		if failure != nil {
			return failure
		}
		return czero.Zero_optimizer_param_release(raw, int64(id))
	})
}

// param returns what is known of a parameter; nothing of an unknown one.
func (o *Optimizer) param(id int) layout {
	if o == nil {
		return layout{}
	}
	o.layouts.Lock()
	defer o.layouts.Unlock()
	return layoutOf(o.params, id)
}
