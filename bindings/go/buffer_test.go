package zero_test

import (
	"testing"

	zero "example.org/libzero/bindings/go"
)

func TestBufferShardsCoverIt(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		buffer := must(zero.NewBuffer[float64](ctx, r.Group, nil, 1000))
		defer buffer.Close()
		shard, offset, err := buffer.Shard()
		check(err)
		wantEqual(r, "offset", offset, 256*r.id)
		wantEqual(r, "count", len(shard), []int{256, 256, 488}[r.id])
		for i := range shard {
			shard[i] = float64(offset + i)
		}
		check(r.Barrier(ctx))
		whole := must(buffer.AcquireWhole(ctx))
		wantSlices(r, "whole", whole, ramp[float64](1000, 0))
		_, err = buffer.AcquireWhole(ctx)
		wantError(r, "acquired twice", err, zero.ErrState)
		check(buffer.ReleaseWhole())
		wantError(r, "released twice", buffer.ReleaseWhole(), zero.ErrState)
	})
}

func TestBufferIsWrittenAndReadByRange(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		buffer := must(zero.NewBuffer[int32](ctx, r.Group, nil, 600))
		defer buffer.Close()
		check(buffer.Write(ctx, 300*r.id, ramp[int32](300, 300*r.id)))
		data := make([]int32, 400)
		check(buffer.Read(ctx, 100+100*r.id, data))
		wantSlices(r, "data", data, ramp[int32](400, 100+100*r.id))
		check(buffer.Read(ctx, 0, nil))
		wantError(r, "beyond the end", buffer.Read(ctx, 300, data), zero.ErrInvalidArgument)
		wantError(r, "write beyond the end", buffer.Write(ctx, 300, data), zero.ErrInvalidArgument)
	})
}

func TestBufferReducesIntoShards(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		buffer := must(zero.NewBuffer[float32](ctx, r.Group, nil, 512))
		defer buffer.Close()
		check(buffer.ReduceScatter(ctx, ramp[float32](512, 2*r.id), zero.Avg))
		shard, offset, err := buffer.Shard()
		check(err)
		wantSlices(r, "shard", shard, ramp[float32](256, offset+1))
		wantError(r, "length", buffer.ReduceScatter(ctx, make([]float32, 511), zero.Avg), zero.ErrInvalidArgument)
	})
}

func TestBufferTellsItsMemory(t *testing.T) {
	alone(t, func(r rank) {
		buffer := must(zero.NewBuffer[uint8](ctx, r.Group, nil, 1024))
		defer buffer.Close()
		memory := must(buffer.Memory(zero.MemoryBuffer))
		if memory.Now < 1024 || memory.Peak < memory.Now {
			t.Errorf("got %+v", memory)
		}
		_, err := buffer.Memory(zero.Memory(99))
		wantError(r, "unknown category", err, zero.ErrInvalidArgument)
	})
}

func TestAnEmptyBufferHasEmptyShards(t *testing.T) {
	alone(t, func(r rank) {
		buffer := must(zero.NewBuffer[float32](ctx, r.Group, nil, 0))
		defer buffer.Close()
		shard, _, err := buffer.Shard()
		check(err)
		wantEqual(r, "shard", len(shard), 0)
		wantEqual(r, "whole", len(must(buffer.AcquireWhole(ctx))), 0)
		_, err = zero.NewBuffer[float32](ctx, r.Group, nil, -1)
		wantError(r, "negative count", err, zero.ErrInvalidArgument)
		_, err = zero.NewBuffer[zero.F8E4M3](ctx, r.Group, nil, 1)
		wantError(r, "8-bit codes", err, zero.ErrInvalidArgument)
	})
}
