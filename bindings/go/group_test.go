package zero_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/ranks"
)

func TestRanksKnowTheirPlaces(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		wantEqual(r, "rank", must(r.Rank()), r.id)
		wantEqual(r, "size", must(r.Size()), 3)
		wantEqual(r, "local rank", must(r.LocalRank()), r.id)
		wantEqual(r, "local size", must(r.LocalSize()), 3)
		wantEqual(r, "hosts", must(r.HostCount()), 1)
		wantEqual(r, "quiet", must(r.Quiet()), true)
	})
}

func TestSharesCoverTheWhole(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		next := 0
		for id := 0; id < 3; id++ {
			offset, count, err := r.Share(10, id)
			check(err)
			wantEqual(r, "offset", offset, next)
			next += count
		}
		wantEqual(r, "end", next, 10)
		_, _, err := r.Share(10, 3)
		wantError(r, "rank 3", err, zero.ErrInvalidArgument)
	})
}

func TestSplitMakesGroupsByColor(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		group := must(r.Split(ctx, []int{0, -1, 0}[r.id], -r.id))
		if r.id == 1 {
			if group != nil {
				t.Error("a negative color made a group")
			}
			return
		}
		defer group.Close()
		wantEqual(r, "size", must(group.Size()), 2)
		wantEqual(r, "rank", must(group.Rank()), 1-r.id/2)
		sum := []int64{int64(r.id)}
		check(zero.AllReduce(ctx, group, sum, sum, zero.Sum))
		wantEqual(r, "sum", sum[0], 2)
	})
}

func TestAllReduceCombinesEveryElementType(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		allReduce[float32](r)
		allReduce[float64](r)
		allReduce[int32](r)
		allReduce[int64](r)
		allReduce[uint8](r)
		// 1, 2 and 3 as bits of the 16-bit types; their sum is 6.
		half := []zero.F16{[]zero.F16{0x3c00, 0x4000, 0x4200}[r.id]}
		check(zero.AllReduce(ctx, r.Group, half, half, zero.Sum))
		wantEqual(r, "f16", half[0], 0x4600)
		brain := []zero.BF16{[]zero.BF16{0x3f80, 0x4000, 0x4040}[r.id]}
		check(zero.AllReduce(ctx, r.Group, brain, brain, zero.Sum))
		wantEqual(r, "bf16", brain[0], 0x40c0)
	})
}

func allReduce[V float32 | float64 | int32 | int64 | uint8](r rank) {
	send := ramp[V](5, r.id)
	for _, test := range []struct {
		op   zero.ReduceOp
		want []V
	}{
		{zero.Sum, []V{3, 6, 9, 12, 15}},
		{zero.Avg, []V{1, 2, 3, 4, 5}},
		{zero.Min, []V{0, 1, 2, 3, 4}},
		{zero.Max, []V{2, 3, 4, 5, 6}},
		{zero.Prod, []V{0, 6, 24, 60, 120}},
	} {
		recv := make([]V, 5)
		check(zero.AllReduce(ctx, r.Group, send, recv, test.op))
		wantSlices(r, fmt.Sprintf("%v of %v", test.op, zero.DTypeOf[V]()), recv, test.want)
	}
}

func TestAllReduceWorksInPlaceAndOnNothing(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		data := ramp[float32](3, r.id)
		check(zero.AllReduce(ctx, r.Group, data, data, zero.Sum))
		wantSlices(r, "in place", data, []float32{1, 3, 5})
		check(zero.AllReduce[float32](ctx, r.Group, nil, nil, zero.Sum))
	})
}

func TestCollectivesMoveShares(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		offset, count, err := r.Share(10, r.id)
		check(err)
		own := ramp[float32](count, offset)
		all := ramp[float32](10, 0)

		recv := make([]float32, count)
		check(zero.ReduceScatter(ctx, r.Group, all, recv, zero.Avg))
		wantSlices(r, "reduce-scatter", recv, own)

		gathered := make([]float32, 10)
		check(zero.AllGather(ctx, r.Group, own, gathered))
		wantSlices(r, "all-gather", gathered, all)

		clear(recv)
		check(zero.Scatter(ctx, r.Group, onRoot(r, 1, all), recv, 10, 1))
		wantSlices(r, "scatter", recv, own)

		whole := onRoot(r, 2, make([]float32, 10))
		check(zero.Gather(ctx, r.Group, own, whole, 10, 2))
		wantSlices(r, "gather", whole, onRoot(r, 2, all))

		most := onRoot(r, 0, make([]float32, 10))
		check(zero.Reduce(ctx, r.Group, ramp[float32](10, r.id-2), most, zero.Max, 0))
		wantSlices(r, "reduce", most, onRoot(r, 0, all))
	})
}

// onRoot returns the values on root and nothing elsewhere.
func onRoot(r rank, root int, values []float32) []float32 {
	if r.id == root {
		return values
	}
	return nil
}

func clear(values []float32) {
	for i := range values {
		values[i] = 0
	}
}

func TestBroadcastGivesWhatRootHas(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		data := ramp[int64](4, 10*r.id)
		check(zero.Broadcast(ctx, r.Group, data, 2))
		wantSlices(r, "data", data, []int64{20, 21, 22, 23})
	})
}

func TestAllToAllTransposesBlocks(t *testing.T) {
	onRanks(t, 3, func(r rank) {
		recv := make([]int32, 6)
		check(zero.AllToAll(ctx, r.Group, ramp[int32](6, 10*r.id), recv))
		first := int32(2 * r.id)
		wantSlices(r, "recv", recv, []int32{first, first + 1, first + 10, first + 11, first + 20, first + 21})
	})
}

func TestTwoRanksExchangeMessages(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		sent := make(chan error)
		go func() { sent <- zero.Send(ctx, r.Group, []float64{float64(r.id)}, 1-r.id) }()
		recv := make([]float64, 1)
		check(zero.Recv(ctx, r.Group, recv, 1-r.id))
		check(<-sent)
		wantEqual(r, "message", recv[0], float64(1-r.id))
	})
}

func TestBarrierWaitsForAll(t *testing.T) {
	arrived := make(chan int, 2)
	onRanks(t, 2, func(r rank) {
		time.Sleep(time.Duration(r.id) * 50 * time.Millisecond)
		arrived <- r.id
		check(r.Barrier(ctx))
		wantEqual(r, "ranks that had arrived", len(arrived), 2)
	})
}

func TestAbortEndsWaitingRanksWithItsReason(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		if r.id == 0 {
			check(r.Abort("the disk is full"))
			return
		}
		err := r.Barrier(ctx)
		wantError(r, "barrier", err, zero.ErrAborted)
		if !strings.Contains(err.Error(), "rank 0 called zero_group_abort: the disk is full") {
			t.Error(err)
		}
		wantEqual(r, "status", r.Status().Error(), err.Error())
		wantEqual(r, "quiet", must(r.Quiet()), true)
	})
}

func TestAbortNeedsNoReason(t *testing.T) {
	alone(t, func(r rank) {
		check(r.Status())
		check(r.Abort(""))
		if err := r.Status(); !strings.Contains(err.Error(), "no reason given") {
			t.Error(err)
		}
		wantError(r, "zero byte", r.Abort("a\x00b"), zero.ErrInvalidArgument)
	})
}

func TestDeadlineEndsWaiting(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		if r.id == 0 {
			check(r.SetDeadline(20 * time.Millisecond))
			wantError(r, "barrier", r.Barrier(ctx), zero.ErrTimeout)
		} else {
			for r.Status() == nil {
				time.Sleep(time.Millisecond)
			}
			wantError(r, "status", r.Status(), zero.ErrTimeout)
		}
	})
}

func TestDeadlineIsRoundedUpToMilliseconds(t *testing.T) {
	alone(t, func(r rank) {
		check(r.SetDeadline(time.Microsecond))
		wantError(r, "0", r.SetDeadline(0), zero.ErrInvalidArgument)
		wantError(r, "negative", r.SetDeadline(-time.Second), zero.ErrInvalidArgument)
		longest := r.SetDeadline(math.MaxInt64)
		wantError(r, "the longest", longest, zero.ErrInvalidArgument)
		if !strings.Contains(longest.Error(), "deadline_ms is 9223372036855,") {
			t.Errorf("the longest: got %v", longest)
		}
	})
}

func TestDifferentCallsAreAMismatchOnAllRanks(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		data := make([]float32, 10+r.id)
		wantError(r, "all-reduce", zero.AllReduce(ctx, r.Group, data, data, zero.Sum), zero.ErrMismatch)
	})
}

func TestARankThatLeavesIsNamed(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		if r.id == 1 {
			check(r.Close())
			return
		}
		wantError(r, "barrier", r.Barrier(ctx), zero.ErrPeerLeft)
	})
}

func TestWrongLengthsAndRootsAreErrors(t *testing.T) {
	alone(t, func(r rank) {
		ten, nine := make([]float32, 10), make([]float32, 9)
		for name, err := range map[string]error{
			"all-reduce":     zero.AllReduce(ctx, r.Group, ten, nine, zero.Sum),
			"overlap":        zero.AllReduce(ctx, r.Group, ten[:9], ten[1:], zero.Sum),
			"operation":      zero.AllReduce(ctx, r.Group, ten, ten, zero.ReduceOp(99)),
			"reduce-scatter": zero.ReduceScatter(ctx, r.Group, ten, nine, zero.Sum),
			"all-gather":     zero.AllGather(ctx, r.Group, ten, nine),
			"reduce":         zero.Reduce(ctx, r.Group, ten, nine, zero.Sum, 0),
			"gather":         zero.Gather(ctx, r.Group, ten, nine, 10, 0),
			"scatter":        zero.Scatter(ctx, r.Group, ten, nine, 10, 0),
			"all-to-all":     zero.AllToAll(ctx, r.Group, ten, nine),
			"root":           zero.Broadcast(ctx, r.Group, ten, 5),
			"send to itself": zero.Send(ctx, r.Group, ten, 0),
			"recv of nobody": zero.Recv(ctx, r.Group, ten, 7),
			"16-bit rest":    zero.Broadcast(ctx, r.Group, make([]uint16, 1), 0),
		} {
			wantError(r, name, err, zero.ErrInvalidArgument)
		}
		check(r.Status())
	})
}

// The memory of a slice is its elements, whatever lies beside them.
func TestSlicesOfStructsWithPointersAreTaken(t *testing.T) {
	type layer struct {
		name   *string
		weight [8]float32
	}
	alone(t, func(r rank) {
		name := "dense"
		l := &layer{name: &name, weight: [8]float32{1, 2, 3, 4, 5, 6, 7, 8}}
		recv := make([]float32, 8)
		check(zero.AllReduce(ctx, r.Group, l.weight[:], recv, zero.Sum))
		wantSlices(r, "recv", recv, l.weight[:])
	})
}

func TestGroupCountsItsTraffic(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		data := make([]float32, 100)
		check(zero.AllReduce(ctx, r.Group, data, data, zero.Sum))
		traffic := must(r.Traffic(zero.OperationAllReduce))
		wantEqual(r, "calls", traffic.Calls, 1)
		wantEqual(r, "bytes", traffic.SentBytes, 4*traffic.SentElements)
		if traffic.SentElements == 0 {
			t.Error("nothing was sent")
		}
		wantEqual(r, "barriers", must(r.Traffic(zero.OperationBarrier)), zero.TrafficStats{})
		_, err := r.Traffic(zero.Operation(99))
		wantError(r, "unknown operation", err, zero.ErrInvalidArgument)
	})
}

func TestGroupDescribesItself(t *testing.T) {
	alone(t, func(r rank) {
		if text := must(r.Group.Describe()); !strings.Contains(text, "local") {
			t.Errorf("got %q", text)
		}
	})
}

func TestAWorldOfOneNeedsNoName(t *testing.T) {
	group := must(zero.CreateLocal(ctx, "", 0, 1, nil))
	defer group.Close()
	value := []float64{math.Pi}
	check(zero.AllReduce(ctx, group, value, value, zero.Sum))
	wantEqual(t, "sum", value[0], math.Pi)
	for name, test := range map[string]struct {
		name       string
		rank, size int
	}{
		"no name": {"", 0, 2}, "zero byte": {"a\x00b", 0, 1}, "rank": {ranks.Name(), 2, 2}, "size": {ranks.Name(), 0, 0},
		"long name": {strings.Repeat("x", 65), 0, 1},
	} {
		_, err := zero.CreateLocal(ctx, test.name, test.rank, test.size, nil)
		wantError(t, name, err, zero.ErrInvalidArgument)
	}
}

func TestRanksThatDoNotMeetAreNamed(t *testing.T) {
	config := must(zero.NewConfig(zero.Int(zero.KeyRendezvousMS, 50)))
	defer config.Close()
	_, err := zero.CreateLocal(ctx, ranks.Name(), 0, 2, config)
	wantError(t, "alone of two", err, zero.ErrRendezvous)
}

func TestWithoutALauncherTheWorldIsOneRank(t *testing.T) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"} {
		t.Setenv(name, "")
	}
	wantEqual(t, "launcher", must(zero.Launcher()), "")
	group, err := zero.CreateEnv(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	wantEqual(t, "size", must(group.Size()), 1)
}

func TestAMissingModuleIsAnError(t *testing.T) {
	config := must(zero.NewConfig(zero.Text(zero.KeyMPIModule, "/nowhere/libzero_mpi.so")))
	defer config.Close()
	_, err := zero.CreateMPI(ctx, zero.MPIWorld, config)
	wantError(t, "CreateMPI", err, zero.ErrModule)
	_, err = zero.CreateMPI(ctx, -2, nil)
	wantError(t, "communicator", err, zero.ErrInvalidArgument)
}

func TestGroupsOverHostsNeedADevice(t *testing.T) {
	config := must(zero.NewConfig(zero.Text(zero.KeyRendezvousHost, "127.0.0.1")))
	defer config.Close()
	id := must(zero.UniqueID(config))
	if !strings.HasPrefix(id, "127.0.0.1:") || !strings.Contains(id, "/") {
		t.Errorf("id %q", id)
	}
	_, err := zero.CreateNCCL(ctx, id, 0, 1, config)
	wantError(t, "without a device", err, zero.ErrInvalidArgument)
	_, err = zero.CreateNCCL(ctx, "no id", 0, 1, config)
	wantError(t, "no id", err, zero.ErrInvalidArgument)
}

func TestErrorsAreFoundByCodeAndByType(t *testing.T) {
	alone(t, func(r rank) {
		err := fmt.Errorf("training: %w", zero.Broadcast(ctx, r.Group, []float32{1}, 5))
		if !errors.Is(err, zero.ErrInvalidArgument) || errors.Is(err, zero.ErrTimeout) {
			t.Errorf("errors.Is of %v", err)
		}
		var e *zero.Error
		if !errors.As(err, &e) || e.Code != zero.ErrInvalidArgument || e.Text != "root is 5, but must be in 0 .. 0" {
			t.Errorf("errors.As of %v gives %+v", err, e)
		}
		var code zero.Status
		if !errors.As(err, &code) || code != zero.ErrInvalidArgument {
			t.Errorf("errors.As of %v gives %v", err, code)
		}
		wantEqual(r, "text", e.Error(), "libzero: ZERO_E_INVALID_ARGUMENT: root is 5, but must be in 0 .. 0")
	})
}
