package zero_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
)

// checkpointOf returns a checkpoint of the optimizer.
func checkpointOf(r rank, o *zero.Optimizer, settings ...zero.Setting) *zero.Checkpoint {
	config := must(zero.NewConfig(settings...))
	defer config.Close()
	c := must(zero.NewCheckpoint(r.Group, config))
	check(c.AddOptimizer("", o))
	return c
}

// wantSaved tells when the newest save of folder does not hold this step and these first values.
func wantSaved(t *testing.T, folder string, step int64, values []float32) {
	t.Helper()
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		wantEqual(r, "found", must(optimizer.Resume(ctx, folder)), true)
		wantEqual(r, "step", must(optimizer.GetI64(zero.KeyStepCount)), step)
		for i, value := range firstParam(optimizer, len(values)) {
			wantEqual(r, "value", value, values[i])
		}
	})
}

func TestStepsGoOnAndTheSaveHoldsTheStepOfTheCall(t *testing.T) {
	for _, snapshot := range []zero.Snapshot{zero.SnapshotCopy, zero.SnapshotLazy} {
		folder := t.TempDir()
		var saved []float32
		onRanks(t, 2, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32)
			defer optimizer.Close()
			begin(r, optimizer)
			checkpoint := checkpointOf(r, optimizer, zero.Int(zero.KeyCheckpointSnapshot, snapshot))
			defer checkpoint.Close()
			train(r, optimizer, 2)
			values := firstParam(optimizer, 100)
			saving := must(checkpoint.SaveAsync(ctx, folder))
			train(r, optimizer, 3)
			result := must(saving.Wait(ctx))
			wantEqual(r, "step", result.Step, 2)
			wantEqual(r, "has copied", result.Copied > 0 || snapshot == zero.SnapshotLazy, true)
			if later := firstParam(optimizer, 1); r.id == 0 {
				wantEqual(r, "the parameter has moved", later[0] != values[0], true)
				saved = values
			}
		})
		wantSaved(t, folder, 2, saved)
	}
}

// Rank 1 takes no part before rank 0 has looked.
func TestAWaitThatEndsWithItsContextCostsNothing(t *testing.T) {
	folder := t.TempDir()
	looked := make(chan struct{})
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		if r.id == 1 {
			<-looked
		}
		saving := must(optimizer.SaveAsync(ctx, folder))
		if r.id == 0 {
			ending, cancel := soon()
			defer cancel()
			_, err := saving.Wait(ending)
			wantEqual(r, "the error of the context", errors.Is(err, context.DeadlineExceeded), true)
			select {
			case <-saving.Done():
				t.Error("the save is done without rank 1")
			default:
			}
			close(looked)
		}
		must(saving.Wait(nil))
		<-saving.Done()
		wantEqual(r, "step", train(r, optimizer, 1).Step, 1)
	})
	wantSaved(t, folder, 0, []float32{1, 2, 3})
}

func TestWhatIsClosedMeanwhileIsSaved(t *testing.T) {
	folder := t.TempDir()
	before := collect(liveHandles, 0)
	savings := make(chan *zero.Saving, 4)
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		begin(r, optimizer)
		checkpoint := checkpointOf(r, optimizer)
		seen := must(zero.AddTensor[int64](checkpoint, "seen", []int{1 << 20}, zero.ScopeEach))
		seen[len(seen)-1] = 5
		train(r, optimizer, 2)
		must(checkpoint.SaveAsync(ctx, folder)) // nobody waits for this one
		savings <- must(checkpoint.SaveAsync(ctx, folder))
		checkpoint.Close()
		check(optimizer.Close())
		check(r.Close())
	})
	for i := 0; i < 2; i++ {
		wantEqual(t, "step", must((<-savings).Wait(ctx)).Step, 2)
	}
	wantEqual(t, "saves", strings.Count(must(zero.ListSaves(folder, zero.TextPlain)), "\n"), 2)
	wantNoMore(t, "live handles", collect(liveHandles, before), before)
}

func TestASaveInTheBackgroundThatFailsCostsNothing(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		saving := must(optimizer.SaveAsync(ctx, nowhere))
		_, err := saving.Wait(ctx)
		wantError(r, "wait", err, zero.ErrNotFound)
		_, err = saving.Wait(ctx)
		wantError(r, "wait again", err, zero.ErrNotFound)
		wantEqual(r, "step", train(r, optimizer, 1).Step, 1)
	})
}

func TestASaveThatCannotBeginIsAnErrorOfTheCall(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		begin(r, optimizer)
		checkpoint := checkpointOf(r, optimizer)
		_, err := checkpoint.SaveAsync(ctx, "")
		wantError(r, "no folder", err, zero.ErrInvalidArgument)
		_, err = checkpoint.SaveAsync(ctx, "a\x00b")
		wantError(r, "a NUL", err, zero.ErrInvalidArgument)
		checkpoint.Close()
		_, err = checkpoint.SaveAsync(ctx, t.TempDir())
		wantError(r, "closed", err, zero.ErrBadHandle)
		_, err = (*zero.Optimizer)(nil).SaveAsync(ctx, t.TempDir())
		wantError(r, "nil", err, zero.ErrBadHandle)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = optimizer.SaveAsync(ended, t.TempDir())
		wantError(r, "context", err, zero.ErrAborted)
		wantEqual(r, "its reason", errors.Is(err, context.Canceled), true)
		check(optimizer.Close())
	})
}
