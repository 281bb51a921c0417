package zero

import (
	"context"

	"example.org/libzero/bindings/go/internal/czero"
)

// ReduceOp is how collectives combine the elements of ranks.
type ReduceOp int32

// Operations. Integers wrap, and their average is cut towards zero; Min and Max are NaN when any element is.
const (
	Sum  = ReduceOp(czero.ZERO_REDUCE_SUM)
	Avg  = ReduceOp(czero.ZERO_REDUCE_AVG)
	Min  = ReduceOp(czero.ZERO_REDUCE_MIN)
	Max  = ReduceOp(czero.ZERO_REDUCE_MAX)
	Prod = ReduceOp(czero.ZERO_REDUCE_PROD)
)

// String returns its name, for example "sum".
func (o ReduceOp) String() string { return nameOf("ZERO_REDUCE_", int64(o)) }

// AllReduce sets recv to the ranks' send combined. recv may be send.
func AllReduce[T Element](ctx context.Context, g *Group, send, recv []T, op ReduceOp) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_all_reduce(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int32(DTypeOf[T]()), int32(op), nil)
	})
}

// ReduceScatter sets recv to this rank's share (Group.Share) of the ranks' send combined. recv may be that part of send.
func ReduceScatter[T Element](ctx context.Context, g *Group, send, recv []T, op ReduceOp) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_reduce_scatter(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int32(DTypeOf[T]()), int32(op), nil)
	})
}

// AllGather sets recv to the ranks' shares one after another. send may be this rank's part of recv.
func AllGather[T Element](ctx context.Context, g *Group, send, recv []T) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_all_gather(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int32(DTypeOf[T]()), nil)
	})
}

// Broadcast sets data of every rank to that of root.
func Broadcast[T Element](ctx context.Context, g *Group, data []T, root int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_broadcast(raw, addressOf(data), int64(len(data)), int32(DTypeOf[T]()), int64(root), nil)
	})
}

// Reduce sets recv of root to the ranks' send combined; elsewhere recv is empty. recv may be send.
func Reduce[T Element](ctx context.Context, g *Group, send, recv []T, op ReduceOp, root int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_reduce(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int32(DTypeOf[T]()), int32(op), int64(root), nil)
	})
}

// Gather sets recv of root to the ranks' shares of total elements one after another; elsewhere recv is empty.
func Gather[T Element](ctx context.Context, g *Group, send, recv []T, total, root int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_gather(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int64(total), int32(DTypeOf[T]()), int64(root), nil)
	})
}

// Scatter sets recv to this rank's share of the total elements in send of root; elsewhere send is empty.
func Scatter[T Element](ctx context.Context, g *Group, send, recv []T, total, root int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_scatter(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int64(total), int32(DTypeOf[T]()), int64(root), nil)
	})
}

// AllToAll sets block r of recv to this rank's block of rank r's send; both have a multiple of the group's size.
func AllToAll[T Element](ctx context.Context, g *Group, send, recv []T) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_all_to_all(raw, addressOf(send), int64(len(send)), addressOf(recv), int64(len(recv)),
			int32(DTypeOf[T]()), nil)
	})
}

// Send gives a message to a rank that calls Recv with as many elements of the same type. It may wait for that: two ranks that exchange
// messages send or receive in a goroutine of their own.
func Send[T Element](ctx context.Context, g *Group, send []T, peer int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_send(raw, addressOf(send), int64(len(send)), int32(DTypeOf[T]()), int64(peer), nil)
	})
}

// Recv takes the next message of a rank.
func Recv[T Element](ctx context.Context, g *Group, recv []T, peer int) error {
	return g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_recv(raw, addressOf(recv), int64(len(recv)), int32(DTypeOf[T]()), int64(peer), nil)
	})
}
