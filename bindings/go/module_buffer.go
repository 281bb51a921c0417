package zero

import (
	"context"

	"example.org/libzero/bindings/go/internal/czero"
)

// Sync is how a module buffer is brought in line.
type Sync int32

// Rules of module buffers.
const (
	SyncNone      = Sync(czero.ZERO_SYNC_NONE)      // each rank keeps its own
	SyncAverage   = Sync(czero.ZERO_SYNC_AVERAGE)   // the mean over ranks
	SyncBroadcast = Sync(czero.ZERO_SYNC_BROADCAST) // that of rank 0
)

// String returns its name, for example "average".
func (s Sync) String() string { return nameOf("ZERO_SYNC_", int64(s)) }

// AddModuleBuffer registers a tensor that is no parameter but belongs to the model, such as the statistics of a batch normalisation, and
// returns its id: 0, 1, 2 ..., counted apart from those of parameters. Every rank keeps all of it. Before Seal.
func (o *Optimizer) AddModuleBuffer(name string, dtype DType, shape []int, rule Sync) (int, error) {
	if err := checkText("name", name); err != nil {
		return 0, err
	}
	extents := toInt64s(shape)
	var id int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		failure := czero.Zero_optimizer_add_module_buffer(raw, name, int32(dtype), (*int64)(addressOf(extents)), int64(len(extents)),
			int32(rule), &id)
		if failure == nil {
			o.layouts.Lock()
			defer o.layouts.Unlock()
			o.moduleBuffers = append(o.moduleBuffers, layout{dtype: dtype, count: countOf(shape)})
		}
		return failure
	})
	return int(id), err
}

// ModuleBuffer returns a module buffer, zero at first, the program's to write, valid from Seal to Close.
func ModuleBuffer[T Element](o *Optimizer, id int) ([]T, error) {
	if err := checkElement[T]("module buffer", id, o.moduleBuffer(id).dtype); err != nil {
		return nil, err
	}
	var address uintptr
	var count int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_module_buffer(raw, int64(id), &address, &count)
	})
	if err != nil {
		return nil, err
	}
	return sliceOf[T](address, int(count)), nil
}

// SyncModuleBuffers brings all module buffers in line by their rules. A collective.
func (o *Optimizer) SyncModuleBuffers(ctx context.Context) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_sync_module_buffers(raw, o.onStream())
	})
}

func (o *Optimizer) moduleBuffer(id int) layout {
	if o == nil {
		return layout{}
	}
	o.layouts.Lock()
	defer o.layouts.Unlock()
	return layoutOf(o.moduleBuffers, id)
}
