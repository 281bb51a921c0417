package zero

import (
	"context"
	"sync/atomic"

	"example.org/libzero/bindings/go/internal/czero"
)

// membership is a rank's handle of a group, which the Group shares with everything made from it: all of them must be able to abort it. The
// last holder gives it back.
type membership struct {
	handle  czero.Group
	holders atomic.Int64
}

// hold adds a holder, unless the last one has gone or there never was one.
func (m *membership) hold() bool {
	for m != nil {
		holders := m.holders.Load()
		if holders == 0 {
			return false
		}
		if m.holders.CompareAndSwap(holders, holders+1) {
			return true
		}
	}
	return false
}

func (m *membership) drop() {
	if m != nil && m.holders.Add(-1) == 0 {
		czero.Zero_group_release(m.handle)
	}
}

// wait makes a call that may wait for other ranks, also for those of a second group, which may be nil. When ctx ends first, the groups are
// aborted, which makes the call return; when ctx had ended before, they are aborted and the call is not made. That they were aborted is an
// error also when the call had just done its work.
func (m *membership) wait(ctx context.Context, model *membership, call func() *czero.Failure) error {
	if ctx == nil || ctx.Done() == nil || !m.hold() {
		return wrap(call())
	}
	defer m.drop()
	abort := func(reason error) {
		m.abort(reason)
		model.abort(reason)
	}
	if err := ctx.Err(); err != nil {
		abort(err)
		return wrapCause(czero.Zero_group_status(m.handle), err)
	}
	ended := make(chan struct{})
	aborted := make(chan bool, 1)
	go func() {
		first := endsFirst(ctx, ended)
		if first {
			abort(ctx.Err())
		}
		aborted <- first
	}()
	failure := call()
	close(ended)
	if !<-aborted {
		return wrap(failure)
	}
	if failure == nil {
		failure = czero.Zero_group_status(m.handle)
	}
	return wrapCause(failure, ctx.Err())
}

// endsFirst waits for either and tells whether ctx has ended and the call has not.
func endsFirst(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// abort ends the group on every rank. A group that is lost already stays as it is.
func (m *membership) abort(reason error) {
	if m != nil {
		czero.Zero_group_abort(m.handle, reason.Error())
	}
}
