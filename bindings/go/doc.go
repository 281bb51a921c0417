/*
Package zero trains models whose parameters, gradients and optimizer states are sharded over ranks (ZeRO stages 0 to 3), with the C library
libzero. A rank is a goroutine or a process; nothing here depends on a framework, memory is slices.

	group, err := zero.CreateLocal(ctx, "demo", rank, 4, nil)    // or CreateEnv under mpirun
	config, err := zero.NewConfig(zero.Int(zero.KeyStage, 3))
	optimizer, err := zero.NewOptimizer(group, config)
	id, err := optimizer.AddParam("w", zero.DTypeF32, []int{20, 30}, nil)
	err = optimizer.Seal(ctx)
	err = optimizer.Begin(ctx, zero.SourceRoot)
	for ... {
		w, err := zero.Acquire[float32](ctx, optimizer, id)      // forward and backward use w
		err = optimizer.Release(id)
		grad, add, err := zero.AcquireGrad[float32](ctx, optimizer, id)
		err = optimizer.GradReady(ctx, id)                       // the reduction starts
		result, err := optimizer.Step(ctx)
	}

What each call means for the ranks, which are collectives, and in which order they come is written in libzero's headers, include/zero/*.h;
names here are theirs.

# Errors

Every error of libzero is an *Error with its code and text, and errors.Is finds the code:

	if errors.Is(err, zero.ErrTimeout) { ... }

# Contexts

Calls that may wait for other ranks take a context. When it ends, the group is aborted on every rank with the context's reason, the call
returns, and its error satisfies errors.Is(err, ctx.Err()). A collective cannot be taken back on the ranks that have begun it, so there is no
gentler way: a group whose call was cancelled is lost, on all ranks, with everything made from it. A context that has ended before the call
does the same. context.Background() costs nothing; a context that can end costs a goroutine per call.

CreateLocal, CreateMPI, CreateNCCL and CreateEnv have no group to abort yet: when their context ends they return, and what they had begun
ends by itself after KeyRendezvousMS at the latest. They begin nothing when it had ended before.

# MPI

Goroutines change threads, so MPI should grant MPI_THREAD_MULTIPLE; libzero asks for it where it starts MPI. Without it groups over MPI work
only on the thread that made the first of them, and a collective on another moves nothing until its deadline. One goroutine then does it all
behind runtime.LockOSThread, and CreateMPI and CreateEnv get a context that cannot end: for one that can, they make the group on another
thread.

# Memory

Slices given to calls are read and written in place, and belong to the caller again on return. Slices that calls hand out (parameters,
gradients, shards, views, module buffers) are libzero's memory: valid until what their function says, at the latest until Close of their
object, and they do not keep that object alive. Defer its Close, which does, or use runtime.KeepAlive.

# Lifetime

Config, Group, Buffer and Optimizer have a Close that may be called any number of times, in any order, from any goroutine. Whatever was made
from a group keeps it alive. Calls after Close return ErrBadHandle. A finalizer closes what the program forgot; a program under MPI must
close its groups itself, because finalizers do not run at its end.

# Goroutines

All calls may come from any goroutine. Those of one Config, Buffer or Optimizer run one after another, and so do the collectives of a group,
in the order in which they came in, which must be the same on all ranks.
*/
package zero
