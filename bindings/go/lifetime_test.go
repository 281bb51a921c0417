package zero_test

import (
	"math/rand"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	zero "example.org/libzero/bindings/go"
)

// liveHandles returns the handles that the library counts.
func liveHandles() int {
	text := must(zero.Describe())
	return must(strconv.Atoi(regexp.MustCompile(`live handles: (\d+)`).FindStringSubmatch(text)[1]))
}

// collect runs finalizers, which close in goroutines of their own, until a count is no more than `want`.
func collect(count func() int, want int) int {
	left := count()
	for end := time.Now().Add(20 * time.Second); left > want && time.Now().Before(end); left = count() {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	return left
}

// wantNoMore takes fewer, because what earlier tests left may end meanwhile.
func wantNoMore(t *testing.T, what string, got, before int) {
	t.Helper()
	if got > before {
		t.Errorf("%s: %d, but %d before", what, got, before)
	}
}

// forget makes objects of all kinds and drops them in random order, some closed before.
func forget(count int) {
	random := rand.New(rand.NewSource(1))
	before := liveHandles()
	var objects []any
	for made := 0; made < count; made += 5 {
		config := must(zero.NewConfig(zero.Int(zero.KeyStage, 3)))
		group := must(zero.CreateLocal(ctx, "", 0, 1, nil))
		part := must(group.Split(ctx, 0, 0))
		buffer := must(zero.NewBuffer[float32](ctx, part, config, 10))
		optimizer := must(zero.NewOptimizer(group, config))
		must(optimizer.AddParam("w", zero.DTypeF32, []int{10}, nil))
		check(optimizer.Seal(ctx))
		if random.Intn(2) == 0 {
			check(group.Close())
		}
		objects = append(objects, config, group, part, buffer, optimizer)
		if len(objects) == 200 { // in parts: a process may open few files
			random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
			objects = append([]any(nil), objects[:100]...)
			collect(liveHandles, before+300) // what is left, and what that keeps
		}
	}
}

// status returns a number of this process's status in the proc file system.
func status(name string) int {
	text := must(os.ReadFile("/proc/self/status"))
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name+":" {
			return must(strconv.Atoi(fields[1]))
		}
	}
	panic("no " + name)
}

func TestFinalizersGiveEverythingBackInAnyOrder(t *testing.T) {
	before := collect(liveHandles, 0)
	status("Threads") // reading the first file opens others that stay
	files := openFiles()
	forget(10000)
	wantNoMore(t, "live handles", collect(liveHandles, before), before)
	resident, threads := status("VmRSS"), status("Threads")
	forget(10000)
	wantNoMore(t, "live handles", collect(liveHandles, before), before)
	if grown := status("VmRSS") - resident; grown > 32<<10 {
		t.Errorf("resident memory grew by %d KiB", grown)
	}
	if grown := status("Threads") - threads; grown > 300 { // Go keeps the threads of calls that waited at the same time
		t.Errorf("%d threads more", grown)
	}
	wantNoMore(t, "open files", collect(openFiles, files), files)
}

func openFiles() int { return len(must(os.ReadDir("/proc/self/fd"))) }

func TestCloseOrderDoesNotMatter(t *testing.T) {
	for order := 0; order < 6; order++ {
		onRanks(t, 2, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyStage, 3))
			begin(r, optimizer)
			buffer := must(zero.NewBuffer[float32](ctx, r.Group, nil, 1000))
			closers := []func() error{r.Close, buffer.Close, optimizer.Close}
			first := closers[order%3]
			closers = append(closers[:order%3], closers[order%3+1:]...)
			check(first())
			if order%3 == 0 { // what was made from the group still works
				train(r, optimizer, 1)
				must(buffer.AcquireWhole(ctx))
				check(buffer.ReleaseWhole())
			}
			check(closers[order/3]())
			check(closers[1-order/3]())
			check(first())
		})
	}
}

// calls are all methods of an object; each must refuse one that was closed, nil, or never made.
func calls(g *zero.Group, b *zero.Buffer[float32], o *zero.Optimizer) map[string]func() error {
	data := make([]float32, 1)
	second := func(_ any, err error) error { return err }
	third := func(_, _ any, err error) error { return err }
	return map[string]func() error{
		"Split": func() error { return second(g.Split(ctx, 0, 0)) }, "Rank": func() error { return second(g.Rank()) },
		"Size": func() error { return second(g.Size()) }, "LocalRank": func() error { return second(g.LocalRank()) },
		"LocalSize": func() error { return second(g.LocalSize()) }, "HostCount": func() error { return second(g.HostCount()) },
		"Share": func() error { return third(g.Share(1, 0)) }, "Status": func() error { return g.Status() },
		"Abort": func() error { return g.Abort("") }, "SetDeadline": func() error { return g.SetDeadline(time.Second) },
		"Quiet":   func() error { return second(g.Quiet()) },
		"Barrier": func() error { return g.Barrier(ctx) }, "Traffic": func() error { return second(g.Traffic(zero.OperationBarrier)) },
		"Describe":      func() error { return second(g.Describe()) },
		"AllReduce":     func() error { return zero.AllReduce(ctx, g, data, data, zero.Sum) },
		"ReduceScatter": func() error { return zero.ReduceScatter(ctx, g, data, data, zero.Sum) },
		"AllGather":     func() error { return zero.AllGather(ctx, g, data, data) },
		"Broadcast":     func() error { return zero.Broadcast(ctx, g, data, 0) },
		"Reduce":        func() error { return zero.Reduce(ctx, g, data, data, zero.Sum, 0) },
		"Gather":        func() error { return zero.Gather(ctx, g, data, data, 1, 0) },
		"Scatter":       func() error { return zero.Scatter(ctx, g, data, data, 1, 0) },
		"AllToAll":      func() error { return zero.AllToAll(ctx, g, data, data) },
		"Send":          func() error { return zero.Send(ctx, g, data, 0) },
		"Recv":          func() error { return zero.Recv(ctx, g, data, 0) },
		"NewBuffer":     func() error { return second(zero.NewBuffer[float32](ctx, g, nil, 1)) },
		"NewOptimizer":  func() error { return second(zero.NewOptimizer(g, nil)) },

		"Shard": func() error { return third(b.Shard()) }, "AcquireWhole": func() error { return second(b.AcquireWhole(ctx)) },
		"ReleaseWhole": func() error { return b.ReleaseWhole() }, "Buffer.Read": func() error { return b.Read(ctx, 0, data) },
		"Buffer.Write": func() error { return b.Write(ctx, 0, data) }, "Buffer.Memory": func() error { return second(b.Memory(zero.MemoryTotal)) },
		"Buffer.ReduceScatter": func() error { return b.ReduceScatter(ctx, data, zero.Sum) },

		"AddSet":            func() error { return second(o.AddSet(nil)) },
		"AddParam":          func() error { return second(o.AddParam("w", zero.DTypeF32, nil, nil)) },
		"SetOrder":          func() error { return o.SetOrder(nil) },
		"SetGatherOrder":    func() error { return o.SetGatherOrder(nil) },
		"SetModelGroup":     func() error { return o.SetModelGroup(g) },
		"Seal":              func() error { return o.Seal(ctx) },
		"Optimizer.Text":    func() error { return second(o.Describe()) },
		"Trace":             func() error { return second(o.Trace()) },
		"Optimizer.Memory":  func() error { return second(o.Memory(zero.MemoryTotal)) },
		"Optimizer.Traffic": func() error { return second(o.Traffic(zero.OperationBarrier)) },
		"StepStats":         func() error { return second(o.StepStats()) },
		"InitParam":         func() error { return o.InitParam(0, zero.InitialiserConstant, 0, 0, 0) },
		"Begin":             func() error { return o.Begin(ctx, zero.SourceLocal) },
		"Acquire":           func() error { return second(zero.Acquire[float32](ctx, o, 0)) },
		"Release":           func() error { return o.Release(0) },
		"CopyParam":         func() error { return zero.CopyParam(ctx, o, 0, data) },
		"MicroStep":         func() error { return o.MicroStep(ctx, zero.MicroStepLast) },
		"SetWeight":         func() error { return o.SetWeight(1) },
		"AcquireGrad":       func() error { return third(zero.AcquireGrad[float32](ctx, o, 0)) },
		"GradReady":         func() error { return o.GradReady(ctx, 0) },
		"GradRangeReady":    func() error { return o.GradRangeReady(ctx, 0, 0, 1) },
		"GiveGrad":          func() error { return zero.GiveGrad(ctx, o, 0, 0, data) },
		"Step":              func() error { return second(o.Step(ctx)) },
		"Reduce of a step":  func() error { return second(o.Reduce(ctx)) },
		"Apply":             func() error { return o.Apply(ctx) },
		"Gather of a step":  func() error { return o.Gather(ctx) },
		"Verify":            func() error { return second(o.Verify(ctx)) },
		"Slots":             func() error { return second(o.Slots(0)) },
		"ReadSlot":          func() error { return zero.ReadSlot(ctx, o, 0, zero.SlotParam, 0, data) },
		"WriteSlot":         func() error { return zero.WriteSlot(ctx, o, 0, zero.SlotParam, 0, data) },
		"ViewCount":         func() error { return second(o.ViewCount()) },
		"ViewAt":            func() error { return second(zero.ViewAt[float32](o, 0, zero.SlotParam)) },
		"Views":             func() error { return second(zero.Views[float32](o, zero.SlotParam)) },
		"AddModuleBuffer":   func() error { return second(o.AddModuleBuffer("m", zero.DTypeF32, nil, zero.SyncNone)) },
		"ModuleBuffer":      func() error { return second(zero.ModuleBuffer[float32](o, 0)) },
		"SyncModuleBuffers": func() error { return o.SyncModuleBuffers(ctx) },
		"SetF64":            func() error { return o.SetF64(0, zero.KeyLR, 1) },
		"GetF64":            func() error { return second(o.GetF64(0, zero.KeyLR)) },
		"SetI64":            func() error { return o.SetI64(zero.KeyStepCount, 1) },
		"GetI64":            func() error { return second(o.GetI64(zero.KeyStepCount)) },
	}
}

func TestCallsAfterCloseAreErrors(t *testing.T) {
	group := must(zero.CreateLocal(ctx, "", 0, 1, nil))
	buffer := must(zero.NewBuffer[float32](ctx, group, nil, 10))
	optimizer := must(zero.NewOptimizer(group, nil))
	must(optimizer.AddParam("w", zero.DTypeF32, []int{1}, nil))
	check(optimizer.Seal(ctx))
	check(optimizer.Begin(ctx, zero.SourceLocal))
	for i := 0; i < 2; i++ {
		check(group.Close())
		check(buffer.Close())
		check(optimizer.Close())
	}
	for name, call := range calls(group, buffer, optimizer) {
		wantError(t, name, call(), zero.ErrBadHandle)
	}
	_, err := group.Size()
	if !strings.Contains(err.Error(), "which was released") {
		t.Errorf("got %v", err)
	}
}

func TestANilObjectIsAnError(t *testing.T) {
	for name, call := range calls(nil, nil, nil) {
		wantError(t, name, call(), zero.ErrBadHandle)
	}
	for name, call := range calls(new(zero.Group), new(zero.Buffer[float32]), new(zero.Optimizer)) {
		wantError(t, name+" of an object that was not made", call(), zero.ErrBadHandle)
	}
	for _, config := range []*zero.Config{nil, new(zero.Config)} {
		wantError(t, "SetI64", config.SetI64(zero.KeyStage, 1), zero.ErrBadHandle)
		wantError(t, "SetF64", config.SetF64(zero.KeyLR, 1), zero.ErrBadHandle)
		wantError(t, "SetStr", config.SetStr(zero.KeyAlgorithm, "sgd"), zero.ErrBadHandle)
		wantError(t, "SetAllocator", config.SetAllocator(zero.Allocator{}), zero.ErrBadHandle)
		check(config.Close())
	}
	check((*zero.Group)(nil).Close())
	check((*zero.Buffer[float32])(nil).Close())
	check((*zero.Optimizer)(nil).Close())
}

// Objects that were not made may lie within others, where Go allows no finalizers.
func TestObjectsThatWereNotMadeAreClosedWhereverTheyLie(t *testing.T) {
	var within struct {
		name      string
		config    zero.Config
		group     zero.Group
		buffer    zero.Buffer[float32]
		optimizer zero.Optimizer
	}
	for _, object := range []interface{ Close() error }{&within.config, &within.group, &within.buffer, &within.optimizer} {
		check(object.Close())
	}
	check(must(zero.CreateLocal(ctx, within.name, 0, 1, &within.config)).Close())
}

func TestAClosedConfigIsAnErrorWhereItIsUsed(t *testing.T) {
	alone(t, func(r rank) {
		config := must(zero.NewConfig())
		check(config.Close())
		check(config.Close())
		wantError(r, "SetI64", config.SetI64(zero.KeyStage, 1), zero.ErrBadHandle)
		optimizer := must(zero.NewOptimizer(r.Group, nil))
		defer optimizer.Close()
		for name, call := range map[string]func() (any, error){
			"CreateLocal":  func() (any, error) { return zero.CreateLocal(ctx, "", 0, 1, config) },
			"CreateEnv":    func() (any, error) { return zero.CreateEnv(ctx, config) },
			"NewBuffer":    func() (any, error) { return zero.NewBuffer[float32](ctx, r.Group, config, 1) },
			"NewOptimizer": func() (any, error) { return zero.NewOptimizer(r.Group, config) },
			"AddSet":       func() (any, error) { return optimizer.AddSet(config) },
			"AddParam":     func() (any, error) { return optimizer.AddParam("w", zero.DTypeF32, nil, config) },
		} {
			_, err := call()
			wantError(r, name, err, zero.ErrBadHandle)
		}
	})
}

// A group that was closed is refused although its optimizer keeps it alive.
func TestAClosedGroupStaysClosedWhileItsOptimizerLives(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		check(r.Close())
		_, err := r.Rank()
		wantError(r, "Rank", err, zero.ErrBadHandle)
		_, err = zero.NewOptimizer(r.Group, nil)
		wantError(r, "NewOptimizer", err, zero.ErrBadHandle)
		wantError(r, "Barrier", r.Barrier(ctx), zero.ErrBadHandle)
		begin(r, optimizer)
		wantEqual(r, "step", train(r, optimizer, 1).Step, 1)
		check(optimizer.Close())
	})
}

func TestFailedConstructorsLeaveNothing(t *testing.T) {
	before := collect(liveHandles, 0)
	alone(t, func(r rank) {
		for i := 0; i < 100; i++ {
			if _, err := zero.NewBuffer[float32](ctx, r.Group, nil, -1); err == nil {
				t.Fatal("a buffer of -1 elements")
			}
			if _, err := zero.NewConfig(zero.Int(zero.KeyStage, 9)); err == nil {
				t.Fatal("stage 9")
			}
		}
	})
	wantNoMore(t, "live handles", liveHandles(), before)
}
