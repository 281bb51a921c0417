package zero_test

import (
	"testing"

	zero "example.org/libzero/bindings/go"
)

// firstParam reads the first elements of tensor 0.
func firstParam(o *zero.Optimizer, count int) []float32 {
	values := make([]float32, count)
	check(zero.ReadSlot(ctx, o, 0, zero.SlotParam, 0, values))
	return values
}

func TestARunGoesOnWithOtherRanks(t *testing.T) {
	folder := t.TempDir()
	var saved []float32
	onRanks(t, 3, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		wantEqual(r, "found", must(optimizer.Resume(ctx, folder)), false)
		begin(r, optimizer)
		train(r, optimizer, 2)
		check(optimizer.Save(ctx, folder))
		if values := firstParam(optimizer, 1); r.id == 0 {
			saved = values
		}
	})
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		wantEqual(r, "found", must(optimizer.Resume(ctx, folder)), true)
		wantEqual(r, "steps", must(optimizer.GetI64(zero.KeyStepCount)), 2)
		wantEqual(r, "parameter", firstParam(optimizer, 1)[0], saved[0])
	})
}

func TestTensorsAndTextsAreInTheSave(t *testing.T) {
	folder := t.TempDir()
	for _, loads := range []bool{false, true} {
		onRanks(t, 2, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32)
			defer optimizer.Close()
			begin(r, optimizer)
			config := must(zero.NewConfig(zero.Int(zero.KeyCheckpointKeep, 2)))
			defer config.Close()
			checkpoint := must(zero.NewCheckpoint(r.Group, config))
			defer checkpoint.Close()
			check(checkpoint.AddOptimizer("model.", optimizer))
			seen := must(zero.AddTensor[int64](checkpoint, "seen", []int{2}, zero.ScopeEach))
			if !loads {
				seen[1] = int64(5 + r.id)
				check(checkpoint.SetText("epoch", "3"))
				wantEqual(r, "step", must(checkpoint.Save(ctx, folder)).Step, 0)
				return
			}
			_, err := checkpoint.Text("epoch")
			wantError(r, "a text that is not there", err, zero.ErrNotFound)
			wantEqual(r, "fallback", must(checkpoint.Load(ctx, folder, zero.PartAll)).Fallback, 0)
			wantEqual(r, "seen", seen[1], int64(5+r.id))
			wantEqual(r, "text", must(checkpoint.Text("epoch")), "3")
			wantEqual(r, "skipped", must(checkpoint.Skipped()), "")
			check(checkpoint.Rename("old.*", "model.*"))
		})
	}
}

func TestParametersTravelAsPlainFiles(t *testing.T) {
	path := t.TempDir() + "/model.safetensors"
	for _, loads := range []bool{false, true} {
		onRanks(t, 2, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32)
			defer optimizer.Close()
			begin(r, optimizer)
			checkpoint := must(zero.NewCheckpoint(r.Group, nil))
			defer checkpoint.Close()
			check(checkpoint.AddOptimizer("", optimizer))
			if !loads {
				wantEqual(r, "files", must(checkpoint.Export(ctx, path, zero.AsKept)).Files, 1)
				_, err := checkpoint.Export(ctx, path, zero.DTypeI64)
				wantError(r, "a type of integers", err, zero.ErrInvalidArgument)
				return
			}
			_, err := checkpoint.Load(ctx, path, zero.PartAll)
			wantError(r, "states of plain files", err, zero.ErrInvalidArgument)
			wantEqual(r, "missing", must(checkpoint.Load(ctx, path, zero.PartParams)).Missing, 0)
		})
	}
}

func TestABufferIsSavedToo(t *testing.T) {
	folder := t.TempDir()
	for _, loads := range []bool{false, true} {
		onRanks(t, 2, func(r rank) {
			buffer := must(zero.NewBuffer[float64](ctx, r.Group, nil, 10))
			defer buffer.Close()
			checkpoint := must(zero.NewCheckpoint(r.Group, nil))
			defer checkpoint.Close()
			check(zero.AddBuffer(checkpoint, "table", buffer))
			shard, offset, err := buffer.Shard()
			check(err)
			for i := range shard {
				if !loads {
					shard[i] = float64(offset + i)
				}
			}
			if loads {
				must(checkpoint.Load(ctx, folder, zero.PartAll))
			} else {
				must(checkpoint.Save(ctx, folder))
			}
			for i := range shard {
				wantEqual(r, "element", shard[i], float64(offset+i))
			}
		})
	}
}

func TestAllRanksSeeAStop(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		if r.id == 1 {
			check(optimizer.RequestStop(7))
		}
		wantError(r, "no reason", optimizer.RequestStop(0), zero.ErrInvalidArgument)
		wantEqual(r, "reason", train(r, optimizer, 1).StopReason, 7)
		wantEqual(r, "reason after that", train(r, optimizer, 1).StopReason, 0)
	})
}
