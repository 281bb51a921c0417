package zero_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	zero "example.org/libzero/bindings/go"
)

// libzero keeps the text of an error per thread; a goroutine changes threads between its calls.
func TestEveryGoroutineGetsItsOwnError(t *testing.T) {
	const goroutines, failures = 64, 100000
	alone(t, func(r rank) {
		var wrong, failed atomic.Int64
		var running sync.WaitGroup
		for id := 0; id < goroutines; id++ {
			running.Add(1)
			go func(id int) {
				defer running.Done()
				for i := id; i < failures; i += goroutines {
					_, _, err := r.Share(10, i+1)
					failed.Add(1)
					var e *zero.Error
					if !errors.As(err, &e) || e.Code != zero.ErrInvalidArgument ||
						e.Text != fmt.Sprintf("rank is %d, but must be in 0 .. 0", i+1) {
						wrong.Add(1)
					}
					if i%4 == 0 {
						runtime.Gosched()
					}
				}
			}(id)
		}
		running.Wait()
		wantEqual(r, "failures", failed.Load(), failures)
		wantEqual(r, "wrong errors", wrong.Load(), 0)
	})
}

func TestGoroutinesMayShareAnOptimizer(t *testing.T) {
	want := trained(t, usualStep)
	got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
		var running sync.WaitGroup
		errs := make([]error, len(shapes))
		for id, count := range []int{1200, 30, 1} {
			running.Add(1)
			go func(id, count int) {
				defer running.Done()
				errs[id] = zero.GiveGrad(ctx, optimizer, id, 0, gradient(r, id, step, count))
			}(id, count)
		}
		running.Wait()
		for _, err := range errs {
			check(err)
		}
		must(optimizer.Step(ctx))
	})
	wantSlices(t, "parameters", got, want)
}

// What comes after the Close of another goroutine is refused; nothing is lost or freed twice.
func TestGoroutinesMayCloseWhatOthersUse(t *testing.T) {
	before := collect(liveHandles, 0)
	for round := 0; round < 100; round++ {
		group := must(zero.CreateLocal(ctx, "", 0, 1, nil))
		optimizer := must(zero.NewOptimizer(group, nil))
		var running sync.WaitGroup
		for _, call := range calls(group, nil, optimizer) {
			running.Add(1)
			go func(call func() error) {
				defer running.Done()
				call()
			}(call)
		}
		check(group.Close())
		check(optimizer.Close())
		running.Wait()
	}
	wantNoMore(t, "live handles", collect(liveHandles, before), before)
}

// The dtypes that slices are checked with are those that libzero read, also while another goroutine sets them.
func TestAConfigMayBeSetWhileOptimizersAreMadeFromIt(t *testing.T) {
	alone(t, func(r rank) {
		config := must(zero.NewConfig())
		defer config.Close()
		var makers, setter sync.WaitGroup
		var made, wrong atomic.Int64
		setter.Add(1)
		go func() {
			defer setter.Done()
			for made.Load() < 1000 {
				check(config.SetI64(zero.KeyGradDType, int64(zero.DTypeF32)))
				check(config.SetI64(zero.KeyGradDType, int64(zero.DTypeBF16)))
			}
		}()
		for _, configs := range [][2]*zero.Config{{config, nil}, {nil, config}} { // of the optimizer, of the parameter
			makers.Add(1)
			go func(configs [2]*zero.Config) {
				defer makers.Done()
				for i := 0; i < 500; i++ {
					optimizer := must(zero.NewOptimizer(r.Group, configs[0]))
					id := must(optimizer.AddParam("w", zero.DTypeBF16, []int{1000}, configs[1]))
					check(optimizer.Seal(ctx))
					check(optimizer.Begin(ctx, zero.SourceLocal))
					_, _, err := zero.AcquireGrad[float32](ctx, optimizer, id)
					if f32 := must(optimizer.Memory(zero.MemoryGrad)).Formula == 4000; f32 != (err == nil) {
						wrong.Add(1)
					}
					optimizer.Close()
					made.Add(1)
				}
			}(configs)
		}
		makers.Wait()
		setter.Wait()
		wantEqual(r, "wrong dtypes", wrong.Load(), 0)
	})
}

func TestAModelGroupThatComesWithCloseIsGivenBack(t *testing.T) {
	before := collect(liveHandles, 0)
	group := must(zero.CreateLocal(ctx, "", 0, 1, nil))
	for round := 0; round < 20000; round++ {
		optimizer := must(zero.NewOptimizer(group, nil))
		model := must(zero.CreateLocal(ctx, "", 0, 1, nil))
		var running sync.WaitGroup
		running.Add(1)
		go func() {
			defer running.Done()
			optimizer.SetModelGroup(model)
		}()
		check(model.Close())
		check(optimizer.Close())
		running.Wait()
	}
	check(group.Close())
	wantNoMore(t, "live handles", collect(liveHandles, before), before)
}
