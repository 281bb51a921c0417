package zero_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/ranks"
)

// wantEnded tells that err is not that of a call whose context ended with reason.
func wantEnded(t testing.TB, what string, err, reason error) {
	t.Helper()
	wantError(t, what, err, zero.ErrAborted)
	if !errors.Is(err, reason) || !strings.Contains(err.Error(), reason.Error()) {
		t.Errorf("%s: got %v, want %v", what, err, reason)
	}
}

// soon returns a context that ends while a call waits.
func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 20*time.Millisecond)
}

func TestTheEndOfAContextEndsTheGroupOnAllRanks(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		if r.id == 0 {
			ending, cancel := soon()
			defer cancel()
			wantEnded(r, "barrier", r.Barrier(ending), context.DeadlineExceeded)
			return
		}
		for r.Status() == nil {
			time.Sleep(time.Millisecond)
		}
		err := r.Barrier(ctx)
		wantError(r, "the other rank", err, zero.ErrAborted)
		if errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank 0 called zero_group_abort: context deadline exceeded") {
			t.Errorf("the other rank: got %v", err)
		}
	})
}

// Every call that waits returns when its context ends, also when the Group itself was closed before.
func TestEveryWaitingCallEndsWithItsContext(t *testing.T) {
	data := make([]float32, 1200)
	for name, wait := range map[string]func(context.Context, rank, *zero.Optimizer, *zero.Buffer[float32]) error{
		"Split": func(ctx context.Context, r rank, _ *zero.Optimizer, _ *zero.Buffer[float32]) error {
			_, err := r.Split(ctx, 0, 0)
			return err
		},
		"AllReduce": func(ctx context.Context, r rank, _ *zero.Optimizer, _ *zero.Buffer[float32]) error {
			return zero.AllReduce(ctx, r.Group, data, data, zero.Sum)
		},
		"Recv": func(ctx context.Context, r rank, _ *zero.Optimizer, _ *zero.Buffer[float32]) error {
			return zero.Recv(ctx, r.Group, data, 1)
		},
		"NewBuffer": func(ctx context.Context, r rank, _ *zero.Optimizer, _ *zero.Buffer[float32]) error {
			_, err := zero.NewBuffer[float32](ctx, r.Group, nil, 10)
			return err
		},
		"Buffer.Read": func(ctx context.Context, r rank, _ *zero.Optimizer, b *zero.Buffer[float32]) error {
			r.Close()
			return b.Read(ctx, 0, data[:10])
		},
		"AcquireWhole": func(ctx context.Context, _ rank, _ *zero.Optimizer, b *zero.Buffer[float32]) error {
			_, err := b.AcquireWhole(ctx)
			return err
		},
		"Acquire": func(ctx context.Context, _ rank, o *zero.Optimizer, _ *zero.Buffer[float32]) error {
			_, err := zero.Acquire[float32](ctx, o, 0)
			return err
		},
		"CopyParam": func(ctx context.Context, _ rank, o *zero.Optimizer, _ *zero.Buffer[float32]) error {
			return zero.CopyParam(ctx, o, 0, data)
		},
		"ReadSlot": func(ctx context.Context, _ rank, o *zero.Optimizer, _ *zero.Buffer[float32]) error {
			return zero.ReadSlot(ctx, o, 0, zero.SlotParam, 0, data)
		},
		"Step": func(ctx context.Context, r rank, o *zero.Optimizer, _ *zero.Buffer[float32]) error {
			r.Close()
			_, err := o.Step(ctx)
			return err
		},
		"Verify": func(ctx context.Context, _ rank, o *zero.Optimizer, _ *zero.Buffer[float32]) error {
			_, err := o.Verify(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 2, func(r rank) {
				optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyStage, 3))
				defer optimizer.Close()
				buffer := must(zero.NewBuffer[float32](ctx, r.Group, nil, 1000))
				defer buffer.Close()
				begin(r, optimizer)
				if r.id == 0 {
					ending, cancel := soon()
					defer cancel()
					wantEnded(r, name, wait(ending, r, optimizer, buffer), context.DeadlineExceeded)
					return
				}
				for r.Status() == nil {
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// Calls of one optimizer come one after another, but each has a context of its own.
func TestACallBehindAnotherEndsWithItsContext(t *testing.T) {
	data := make([]float32, 10)
	for name, call := range map[string]func(context.Context, *zero.Optimizer) error{
		"GiveGrad": func(ctx context.Context, o *zero.Optimizer) error { return zero.GiveGrad(ctx, o, 0, 0, data) },
		"ReadSlot": func(ctx context.Context, o *zero.Optimizer) error {
			return zero.ReadSlot(ctx, o, 0, zero.SlotParam, 0, data)
		},
		"WriteSlot": func(ctx context.Context, o *zero.Optimizer) error {
			return zero.WriteSlot(ctx, o, 0, zero.SlotParam, 0, data)
		},
	} {
		t.Run(name, func(t *testing.T) { endBehindAnother(t, call) })
	}
}

func endBehindAnother(t *testing.T, call func(context.Context, *zero.Optimizer) error) {
	onRanks(t, 2, func(r rank) {
		check(r.SetDeadline(10 * time.Second))
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		if r.id == 1 {
			for r.Status() == nil {
				time.Sleep(time.Millisecond)
			}
			return
		}
		stepped := make(chan error)
		go func() {
			_, err := optimizer.Step(ctx)
			stepped <- err
		}()
		time.Sleep(20 * time.Millisecond)
		ending, cancel := soon()
		defer cancel()
		wantEnded(r, "the call behind", call(ending, optimizer), context.DeadlineExceeded)
		wantError(r, "the step", <-stepped, zero.ErrAborted)
	})
}

func TestTheModelGroupIsEndedToo(t *testing.T) {
	onHalves(t, func(r rank, optimizer *zero.Optimizer) {
		if r.id == 1 {
			for r.Status() == nil {
				time.Sleep(time.Millisecond)
			}
			return
		}
		ending, cancel := soon()
		defer cancel()
		_, err := optimizer.Step(ending)
		wantEnded(r, "step", err, context.DeadlineExceeded)
	})
}

func TestAContextThatHasEndedEndsTheGroupToo(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		if r.id == 1 {
			wantError(r, "the other rank", r.Barrier(ctx), zero.ErrAborted)
			return
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		wantEnded(r, "barrier", r.Barrier(ended), context.Canceled)
		wantError(r, "status", r.Status(), zero.ErrAborted)
	})
}

// Whether a call or its context ends first is a matter of chance, but both tell the same.
func TestACallTellsWhenItsContextHasEndedTheGroup(t *testing.T) {
	for i := 0; i < 5000; i++ {
		alone(t, func(r rank) {
			ending, cancel := context.WithCancel(ctx)
			go cancel()
			part, err := r.Split(ending, 0, 0)
			defer part.Close()
			if status := r.Status(); (err == nil) != (status == nil) {
				t.Errorf("the call returns %v, the group has %v", err, status)
			}
			if err != nil {
				wantEnded(r, "split", err, context.Canceled)
			}
		})
	}
}

func TestAContextThatDoesNotEndChangesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	onRanks(t, 2, func(r rank) {
		lasting, cancel := context.WithTimeout(ctx, time.Hour)
		for i := 0; i < 1000; i++ {
			value := []float32{1}
			check(zero.AllReduce(lasting, r.Group, value, value, zero.Sum))
			wantEqual(r, "sum", value[0], 2)
		}
		cancel()
		check(r.Barrier(ctx))
		check(r.Barrier(nil)) // one that does not end either
		err := zero.AllReduce(context.WithValue(ctx, rank{}, 1), r.Group, make([]float32, 2), nil, zero.Sum)
		wantError(r, "error of its own", err, zero.ErrInvalidArgument)
	})
	// A goroutine is counted until it has ended, which is a moment after it has said that it is done.
	after := runtime.NumGoroutine()
	for deadline := time.Now().Add(10 * time.Second); after > before && time.Now().Before(deadline); after = runtime.NumGoroutine() {
		time.Sleep(time.Millisecond)
	}
	if after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestCreationEndsWithItsContext(t *testing.T) {
	config := must(zero.NewConfig(zero.Int(zero.KeyRendezvousMS, 20000)))
	defer config.Close()
	ending, cancel := soon()
	defer cancel()
	name := ranks.Name()
	start := time.Now()
	group, err := zero.CreateLocal(ending, name, 0, 2, config)
	wantEnded(t, "CreateLocal", err, context.DeadlineExceeded)
	if elapsed := time.Since(start); group != nil || elapsed > 10*time.Second {
		t.Errorf("got %v after %v", group, elapsed)
	}
	lasting, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	group, err = zero.CreateLocal(lasting, "", 0, 1, nil)
	check(err)
	check(group.Close())
	group, err = zero.CreateLocal(ctx, name, 1, 2, config) // the other rank comes after all: what was left to end by itself ends now
	check(err)
	check(group.Close())
}

func TestCreationDoesNotBeginWhenItsContextHasEnded(t *testing.T) {
	config := must(zero.NewConfig(zero.Int(zero.KeyRendezvousMS, 100)))
	defer config.Close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	name := ranks.Name()
	_, err := zero.CreateLocal(ended, name, 0, 2, config)
	wantEnded(t, "rank 0", err, context.Canceled)
	_, err = zero.CreateLocal(ctx, name, 1, 2, config)
	wantError(t, "rank 1, which nobody meets", err, zero.ErrRendezvous)
}
