package zero

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"example.org/libzero/bindings/go/internal/czero"
)

// MPIWorld is the communicator of all ranks of an MPI program.
const MPIWorld = int(czero.ZERO_MPI_WORLD)

// Group is a rank's place in a group of ranks that make the same collectives in the same order.
type Group struct {
	members *membership
	closed  atomic.Bool
}

// CreateLocal makes a group of ranks on this host, goroutines or processes, that meet by name. A world of one needs no name. Waits for all
// ranks, at most KeyRendezvousMS.
func CreateLocal(ctx context.Context, name string, rank, size int, config *Config) (*Group, error) {
	if err := checkText("name", name); err != nil {
		return nil, err
	}
	return createGroup(ctx, config, func(raw czero.Config, out *czero.Group) *czero.Failure {
		return czero.Zero_group_create_local(name, int64(rank), int64(size), raw, out)
	})
}

// CreateMPI makes a group of the ranks of an MPI communicator: a Fortran handle (MPI_Comm_c2f) or MPIWorld.
func CreateMPI(ctx context.Context, comm int, config *Config) (*Group, error) {
	return createGroup(ctx, config, func(raw czero.Config, out *czero.Group) *czero.Failure {
		return czero.Zero_group_create_mpi(int64(comm), raw, out)
	})
}

// CreateNCCL makes a group of ranks of any hosts, each with the CUDA device of KeyDevice, that meet by an id: rank 0's process gets one from
// UniqueID and the program carries it to the others. Slices lie on the host: what is more than 4 KiB passes through the device.
func CreateNCCL(ctx context.Context, id string, rank, size int, config *Config) (*Group, error) {
	if err := checkText("id", id); err != nil {
		return nil, err
	}
	return createGroup(ctx, config, func(raw czero.Config, out *czero.Group) *czero.Failure {
		return czero.Zero_group_create_nccl(id, int64(rank), int64(size), raw, out)
	})
}

// UniqueID makes an id for CreateNCCL. This process listens from now on, and is where rank 0 must be created.
func UniqueID(config *Config) (string, error) {
	if err := Check(); err != nil {
		return "", err
	}
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return wrap(config.lend(func(raw czero.Config) *czero.Failure { return czero.Zero_group_unique_id(raw, out, nbytes, needed) }))
	})
}

// CreateEnv makes the group that the launcher's variables describe (Open MPI, MPICH, Slurm, torchrun), or a world of one without any.
func CreateEnv(ctx context.Context, config *Config) (*Group, error) {
	return createGroup(ctx, config, czero.Zero_group_create_env)
}

// Launcher names the variable in which a launcher says how many ranks it started, for example
// "OMPI_COMM_WORLD_SIZE"; "" where none started this process. A program that starts ranks of its
// own asks first.
func Launcher() (string, error) {
	if err := Check(); err != nil {
		return "", err
	}
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return wrap(czero.Zero_group_launcher(out, nbytes, needed))
	})
}

type groupMaker func(czero.Config, *czero.Group) *czero.Failure

// createGroup waits until the group is made or ctx ends.
func createGroup(ctx context.Context, config *Config, create groupMaker) (*Group, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if ctx != nil && ctx.Err() != nil {
		return nil, notWaitedFor(ctx.Err())
	}
	raw, err := config.snapshot()
	if err != nil {
		return nil, err
	}
	wait := func() (*Group, error) {
		defer czero.Zero_config_release(raw)
		var group czero.Group
		if err := wrap(create(raw, &group)); err != nil {
			return nil, err
		}
		return newGroup(group), nil
	}
	if ctx == nil || ctx.Done() == nil {
		return wait()
	}
	return makeUntil(ctx, wait)
}

// makeUntil waits until the group is made or ctx ends. There is nothing to abort yet: the creation is left to end by itself, and what it makes
// is closed. Over MPI that may be the process's last group, with which MPI ends for good.
func makeUntil(ctx context.Context, create func() (*Group, error)) (*Group, error) {
	var group *Group
	var err error
	made := make(chan struct{})
	go func() {
		group, err = create()
		close(made)
	}()
	select {
	case <-made:
		return group, err
	case <-ctx.Done():
		go func() {
			<-made
			group.Close()
		}()
		return nil, notWaitedFor(ctx.Err())
	}
}

// notWaitedFor is the error of a creation whose context has ended.
func notWaitedFor(reason error) error {
	return &Error{Code: ErrAborted, Text: "the group was not waited for: " + reason.Error(), cause: reason}
}

func newGroup(raw czero.Group) *Group {
	g := &Group{members: &membership{handle: raw}}
	g.members.holders.Store(1)
	// Giving a group back may wait for other ranks (under MPI, for the end of MPI), and all finalizers share a goroutine.
	runtime.SetFinalizer(g, func(g *Group) { go g.Close() })
	return g
}

// Close gives the group back. What was made from it keeps it alive; when the last of them is closed too, ranks that still wait in the group
// get ErrPeerLeft. It may be called again, and always returns nil.
func (g *Group) Close() error {
	if g != nil && g.members != nil && g.closed.CompareAndSwap(false, true) {
		runtime.SetFinalizer(g, nil)
		g.members.drop()
	}
	return nil
}

// Split makes a group of the ranks that give the same color, ordered by key and then by rank here; nil for a negative color. A collective.
func (g *Group) Split(ctx context.Context, color, key int) (*Group, error) {
	var raw czero.Group
	err := g.wait(ctx, func(parent czero.Group) *czero.Failure {
		return czero.Zero_group_split(parent, int64(color), int64(key), &raw)
	})
	if raw == 0 {
		return nil, err
	}
	part := newGroup(raw)
	if err != nil {
		part.Close()
		return nil, err
	}
	return part, nil
}

// Rank returns this rank's number, from 0.
func (g *Group) Rank() (int, error) { return g.number(czero.Zero_group_rank) }

// Size returns the number of ranks.
func (g *Group) Size() (int, error) { return g.number(czero.Zero_group_size) }

// LocalRank returns this rank's number among those of its host.
func (g *Group) LocalRank() (int, error) { return g.number(czero.Zero_group_local_rank) }

// LocalSize returns the number of ranks on this rank's host.
func (g *Group) LocalSize() (int, error) { return g.number(czero.Zero_group_local_size) }

// HostCount returns the number of hosts.
func (g *Group) HostCount() (int, error) { return g.number(czero.Zero_group_host_count) }

// Share returns the part of count elements that a rank owns in ReduceScatter, AllGather, Gather and Scatter.
func (g *Group) Share(count, rank int) (offset, own int, err error) {
	var first, elements int64
	err = g.call(func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_share(raw, int64(count), int64(rank), &first, &elements)
	})
	return int(first), int(elements), err
}

// Status returns nil while the group works and afterwards the error that ended it.
func (g *Group) Status() error { return g.call(czero.Zero_group_status) }

// Abort ends the group, what was split from it and the optimizers made from it, on every rank: calls that wait return ErrAborted with this
// reason.
func (g *Group) Abort(reason string) error {
	if err := checkText("reason", reason); err != nil {
		return err
	}
	return g.call(func(raw czero.Group) *czero.Failure { return czero.Zero_group_abort(raw, reason) })
}

// SetDeadline sets how long later calls of this rank wait for others, in whole milliseconds, rounded up.
func (g *Group) SetDeadline(deadline time.Duration) error {
	ms := deadline / time.Millisecond
	if deadline%time.Millisecond > 0 {
		ms++
	}
	return g.call(func(raw czero.Group) *czero.Failure { return czero.Zero_group_set_deadline(raw, int64(ms)) })
}

// Quiet tells whether memory that was given to calls is the caller's again after a failure. Without KeyNCCL it always is; with it not while
// NCCL, in this process, may still read or write memory of a call that failed: such memory must then not be freed or used.
func (g *Group) Quiet() (bool, error) {
	quiet, err := g.number(czero.Zero_group_quiet)
	return quiet == 1, err
}

// Barrier returns when every rank has called it.
func (g *Group) Barrier(ctx context.Context) error { return g.wait(ctx, czero.Zero_group_barrier) }

// Balance returns this rank's share of total items for the next step, by the speeds of all ranks: a multiple of unit. seconds is what this
// rank's newest items took, without waits for other ranks; 0 where nothing was measured.
func (g *Group) Balance(ctx context.Context, seconds float64, items, total, unit int) (int, error) {
	var share int64
	err := g.wait(ctx, func(raw czero.Group) *czero.Failure {
		return czero.Zero_group_balance(raw, seconds, int64(items), int64(total), int64(unit), &share)
	})
	return int(share), err
}

// Traffic returns what this rank sent in a kind of collective.
func (g *Group) Traffic(operation Operation) (TrafficStats, error) {
	var stats TrafficStats
	err := g.call(func(raw czero.Group) *czero.Failure {
		return stats.read(func(out *czero.TrafficStats) *czero.Failure {
			return czero.Zero_stats_group_traffic(raw, int32(operation), out)
		})
	})
	return stats, err
}

// Describe tells what was chosen for the group and why: transport, hosts, kernel target, threads.
func (g *Group) Describe() (string, error) {
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return g.call(func(raw czero.Group) *czero.Failure { return czero.Zero_describe_group(raw, out, nbytes, needed) })
	})
}

// raw returns the handle, or one that libzero refuses when the group was closed.
func (g *Group) raw() czero.Group {
	if g == nil || g.members == nil || g.closed.Load() && g.members.holders.Load() > 0 {
		return 0
	}
	return g.members.handle
}

// open returns what a call that waits needs to abort the group; nil when the group was closed.
func (g *Group) open() *membership {
	if g == nil || g.closed.Load() {
		return nil
	}
	return g.members
}

// share returns the handle for a new object that is made from the group and its membership, which the object drops in the end.
func (g *Group) share() (*membership, czero.Group) {
	if m := g.open(); m.hold() {
		return m, m.handle
	}
	return nil, g.raw()
}

// call makes a call that does not wait.
func (g *Group) call(use func(czero.Group) *czero.Failure) error {
	defer runtime.KeepAlive(g)
	return wrap(use(g.raw()))
}

// wait makes a call that may wait for other ranks.
func (g *Group) wait(ctx context.Context, use func(czero.Group) *czero.Failure) error {
	defer runtime.KeepAlive(g)
	return g.open().wait(ctx, nil, func() *czero.Failure { return use(g.raw()) })
}

func (g *Group) number(read func(czero.Group, *int64) *czero.Failure) (int, error) {
	var number int64
	err := g.call(func(raw czero.Group) *czero.Failure { return read(raw, &number) })
	return int(number), err
}
