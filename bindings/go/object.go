package zero

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"example.org/libzero/bindings/go/internal/czero"
)

// object is a handle made from a group: that of a Buffer or an Optimizer. All methods take a nil object for one that libzero refuses.
type object[H ~uintptr] struct {
	handle  H
	members *membership
	model   atomic.Pointer[membership] // of Optimizer.SetModelGroup; otherwise nil
	closed  atomic.Bool
	mutex   sync.Mutex // libzero wants one thread at a time
}

// do makes a call that does not wait for other ranks. The handle of a closed object is one that libzero refuses.
func (o *object[H]) do(use func(H) *czero.Failure) error {
	return wrap(o.locked(use))
}

// look makes a call that libzero takes at any time.
func (o *object[H]) look(use func(H) *czero.Failure) error {
	defer runtime.KeepAlive(o)
	if o == nil {
		return wrap(use(0))
	}
	return wrap(use(o.handle))
}

// wait makes a call that may wait for other ranks.
func (o *object[H]) wait(ctx context.Context, use func(H) *czero.Failure) error {
	if o == nil || o.closed.Load() {
		return o.do(use)
	}
	return o.members.wait(ctx, o.model.Load(), func() *czero.Failure { return o.locked(use) })
}

// setModel keeps the membership of the model group until Close, which may have come first.
func (o *object[H]) setModel(members *membership) {
	o.model.Swap(members).drop()
	if o.closed.Load() {
		o.model.Swap(nil).drop()
	}
}

// close gives the handle back once.
func (o *object[H]) close(release func(H)) {
	if o.closed.CompareAndSwap(false, true) {
		release(o.handle)
		o.members.drop()
		o.model.Swap(nil).drop()
	}
}

func (o *object[H]) locked(use func(H) *czero.Failure) *czero.Failure {
	if o == nil {
		return use(0)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return use(o.handle)
}
