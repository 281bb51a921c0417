package zero

import (
	"context"
	"syscall"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Saving is a save in the background, begun by SaveAsync of an Optimizer or a Checkpoint. It holds the state at the time of that call.
//
// The save goes on to its end whether anybody waits for it or not, also when its optimizer, checkpoint or group is closed meanwhile.
type Saving struct {
	done   chan struct{}
	result CheckpointResult
	err    error
}

// Done returns a channel that is closed when the save has ended.
func (s *Saving) Done() <-chan struct{} { return s.done }

// Wait waits until all ranks have committed the save, and returns its outcome. That of Optimizer.SaveAsync has an empty result. When ctx ends
// first, Wait returns its error and the save goes on: Wait may be called again.
func (s *Saving) Wait(ctx context.Context) (CheckpointResult, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	select {
	case <-s.done:
		return s.result, s.err
	default:
	}
	select {
	case <-s.done:
		return s.result, s.err
	case <-ctx.Done():
		return CheckpointResult{}, ctx.Err()
	}
}

// SaveAsync begins Save and returns once this rank has a snapshot of what it saves; steps may follow at once. KeyCheckpointSnapshot says what
// is copied. Later saves and loads of the run wait until this one has ended. The end of ctx counts until SaveAsync has returned.
func (c *Checkpoint) SaveAsync(ctx context.Context, folder string) (*Saving, error) {
	return saveAsync(ctx, c.self(), folder, func(raw czero.Checkpoint, result *czero.CheckpointResult, request *czero.Request) *czero.Failure {
		return czero.Zero_checkpoint_save_async(raw, folder, nil, result, request)
	})
}

// SaveAsync begins Save and returns once this rank has a copy of what it saves; steps may follow at once. Later saves and loads of the run
// wait until this one has ended. The end of ctx counts until SaveAsync has returned.
func (o *Optimizer) SaveAsync(ctx context.Context, folder string) (*Saving, error) {
	return saveAsync(ctx, o.self(), folder, func(raw czero.Optimizer, _ *czero.CheckpointResult, request *czero.Request) *czero.Failure {
		return czero.Zero_optimizer_save_async(raw, folder, o.onStream(), request)
	})
}

func saveAsync[H ~uintptr](
	ctx context.Context, o *object[H], folder string, begin func(H, *czero.CheckpointResult, *czero.Request) *czero.Failure,
) (*Saving, error) {
	if err := checkText("folder", folder); err != nil {
		return nil, err
	}
	// libzero keeps the address of the result until the save has ended, so it lies outside of Go's heap.
	memory, err := syscall.Mmap(-1, 0, int(unsafe.Sizeof(czero.CheckpointResult{})), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	result := (*czero.CheckpointResult)(unsafe.Pointer(&memory[0]))
	var request czero.Request
	err = o.wait(ctx, func(raw H) *czero.Failure {
		if failure := czero.Zero_checkpoint_result_init(result, uint64(unsafe.Sizeof(*result))); failure != nil {
			return failure
		}
		return begin(raw, result, &request)
	})
	s := &Saving{done: make(chan struct{})}
	// Also when ctx has ended behind the begin.
	go s.finish(request, result, memory)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// finish waits for the save, if one was begun.
func (s *Saving) finish(request czero.Request, result *czero.CheckpointResult, memory []byte) {
	if request != 0 {
		s.err = wrap(czero.Zero_request_wait(request))
		czero.Zero_request_release(request)
	}
	s.result = resultOf(result)
	_ = syscall.Munmap(memory)
	close(s.done)
}
