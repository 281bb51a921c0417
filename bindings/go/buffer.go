package zero

import (
	"context"
	"runtime"

	"example.org/libzero/bindings/go/internal/czero"
)

// Buffer is a flat array whose shards lie with the ranks of a group. All methods but Shard, ReleaseWhole, Memory and Close are collectives.
type Buffer[T Element] struct {
	object object[czero.Buffer]
	count  int
}

// NewBuffer makes a buffer of count elements, all zero. Of the config KeyShardWeights and the allocator are read.
func NewBuffer[T Element](ctx context.Context, g *Group, config *Config, count int) (*Buffer[T], error) {
	if err := Check(); err != nil {
		return nil, err
	}
	options, err := config.snapshot()
	if err != nil {
		return nil, err
	}
	defer czero.Zero_config_release(options)
	members, group := g.share()
	b := &Buffer[T]{count: count}
	b.object.members = members
	err = members.wait(ctx, nil, func() *czero.Failure {
		return czero.Zero_buffer_create(group, options, int32(DTypeOf[T]()), int64(count), &b.object.handle)
	})
	if err != nil {
		b.object.close(czero.Zero_buffer_release)
		return nil, err
	}
	runtime.SetFinalizer(b, func(b *Buffer[T]) { go b.Close() })
	return b, nil
}

// Shard returns this rank's shard, valid until Close, and its place in the whole.
func (b *Buffer[T]) Shard() (shard []T, offset int, err error) {
	var address uintptr
	var first, count int64
	err = b.self().do(func(raw czero.Buffer) *czero.Failure { return czero.Zero_buffer_shard(raw, &address, &first, &count) })
	return sliceOf[T](address, int(count)), int(first), err
}

// AcquireWhole gathers all elements into memory that is valid until ReleaseWhole. What is written there is not kept.
func (b *Buffer[T]) AcquireWhole(ctx context.Context) ([]T, error) {
	var address uintptr
	err := b.self().wait(ctx, func(raw czero.Buffer) *czero.Failure { return czero.Zero_buffer_whole_acquire(raw, nil, &address) })
	if err != nil {
		return nil, err
	}
	return sliceOf[T](address, b.count), nil
}

// ReleaseWhole gives the memory of AcquireWhole back.
func (b *Buffer[T]) ReleaseWhole() error { return b.self().do(czero.Zero_buffer_whole_release) }

// ReduceScatter sets the shards to the ranks' data combined. data has as many elements as the buffer.
func (b *Buffer[T]) ReduceScatter(ctx context.Context, data []T, op ReduceOp) error {
	return b.self().wait(ctx, func(raw czero.Buffer) *czero.Failure {
		return czero.Zero_buffer_reduce_scatter(raw, addressOf(data), int64(len(data)), int32(op), nil)
	})
}

// Read sets data to the elements from offset on, whoever owns them. Each rank gives its own range, which may be empty.
func (b *Buffer[T]) Read(ctx context.Context, offset int, data []T) error {
	return b.self().wait(ctx, func(raw czero.Buffer) *czero.Failure {
		return czero.Zero_buffer_read(raw, int64(offset), addressOf(data), int64(len(data)), nil)
	})
}

// Write sets the elements from offset on to data, whoever owns them. Where the ranges of ranks overlap, the highest rank's values stay.
func (b *Buffer[T]) Write(ctx context.Context, offset int, data []T) error {
	return b.self().wait(ctx, func(raw czero.Buffer) *czero.Failure {
		return czero.Zero_buffer_write(raw, int64(offset), addressOf(data), int64(len(data)), nil)
	})
}

// Memory returns the buffer's bytes on this rank.
func (b *Buffer[T]) Memory(category Memory) (MemoryStats, error) {
	var stats MemoryStats
	err := b.self().look(func(raw czero.Buffer) *czero.Failure {
		return stats.read(func(out *czero.MemoryStats) *czero.Failure {
			return czero.Zero_stats_buffer_memory(raw, int32(category), out)
		})
	})
	return stats, err
}

// Close gives the buffer and its shard's memory back. It may be called again, and always returns nil.
func (b *Buffer[T]) Close() error {
	if b != nil && b.object.handle != 0 { // the zero Buffer has no finalizer, and may lie where Go allows none
		runtime.SetFinalizer(b, nil)
		b.object.close(czero.Zero_buffer_release)
	}
	return nil
}

func (b *Buffer[T]) self() *object[czero.Buffer] {
	if b == nil {
		return nil
	}
	return &b.object
}
