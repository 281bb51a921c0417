package zero

import (
	"context"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Scope says which ranks have a tensor of the program.
type Scope int32

// Scopes.
const (
	ScopeOne  = Scope(czero.ZERO_SCOPE_ONE)  // rank 0's is saved; a load gives it to all ranks
	ScopeEach = Scope(czero.ZERO_SCOPE_EACH) // every rank saves its own
)

// String returns its name, for example "each".
func (s Scope) String() string { return nameOf("ZERO_SCOPE_", int64(s)) }

// Part says what a load takes out of a save.
type Part int32

// Parts.
const (
	PartAll    = Part(czero.ZERO_PART_ALL)
	PartParams = Part(czero.ZERO_PART_PARAMS) // values of parameters alone
)

// String returns its name, for example "params".
func (p Part) String() string { return nameOf("ZERO_PART_", int64(p)) }

// AsKept makes Export write each parameter as the optimizer keeps it.
const AsKept = DType(czero.ZERO_EXPORT_AS_KEPT)

// CheckpointResult is the outcome of a save, a load or an export.
type CheckpointResult struct {
	Step      int           // steps applied, of the first optimizer
	Bytes     int           // of all files of the save; of a load: bytes that this rank read
	Files     int           // without the manifest
	Direct    bool          // files went past the page cache
	Missing   int           // names that the save lacks, with KeyCheckpointMissing
	Extra     int           // names that only the save has, with KeyCheckpointExtra
	Converted int           // tensors whose values were rounded into another dtype
	Fallback  int           // damaged saves that are newer than the one that was taken
	Copied    int           // bytes of the optimizers that an asynchronous save copied on this rank
	Stall     time.Duration // in which a save kept this rank from using the optimizers
}

// Checkpoint holds things that are saved and loaded together. All ranks add the same in the same order.
type Checkpoint struct {
	object object[czero.Checkpoint]
	held   []any    // what is saved, which lives for as long
	memory [][]byte // of AddTensor, outside of Go's heap: libzero keeps its addresses
}

// NewCheckpoint makes a checkpoint of nothing; the config has KeyCheckpoint... keys. Not a collective.
func NewCheckpoint(g *Group, config *Config) (*Checkpoint, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	members, group := g.share()
	c := &Checkpoint{}
	c.object.members = members
	err := wrap(config.lend(func(options czero.Config) *czero.Failure {
		return czero.Zero_checkpoint_create(group, options, &c.object.handle)
	}))
	if err != nil {
		members.drop()
		return nil, err
	}
	runtime.SetFinalizer(c, func(c *Checkpoint) { go c.Close() })
	return c, nil
}

func (c *Checkpoint) self() *object[czero.Checkpoint] {
	if c == nil {
		return nil
	}
	return &c.object
}

// AddOptimizer adds an optimizer with all that belongs to it. The prefix stands before its names in files.
func (c *Checkpoint) AddOptimizer(prefix string, o *Optimizer) error {
	if err := checkText("prefix", prefix); err != nil {
		return err
	}
	return c.self().do(func(raw czero.Checkpoint) *czero.Failure {
		defer runtime.KeepAlive(o)
		var optimizer czero.Optimizer
		if o != nil {
			optimizer = o.object.handle
		}
		failure := czero.Zero_checkpoint_add_optimizer(raw, prefix, optimizer)
		if failure == nil {
			c.held = append(c.held, o)
		}
		return failure
	})
}

// AddBuffer adds a sharded buffer to a checkpoint.
func AddBuffer[T Element](c *Checkpoint, name string, b *Buffer[T]) error {
	if err := checkText("name", name); err != nil {
		return err
	}
	return c.self().do(func(raw czero.Checkpoint) *czero.Failure {
		defer runtime.KeepAlive(b)
		var buffer czero.Buffer
		if b != nil {
			buffer = b.object.handle
		}
		failure := czero.Zero_checkpoint_add_buffer(raw, name, buffer)
		if failure == nil {
			c.held = append(c.held, b)
		}
		return failure
	})
}

// AddTensor adds a tensor of the program and returns its memory, zero at first, which Save reads and Load writes. Valid until Close.
func AddTensor[T Element](c *Checkpoint, name string, shape []int, scope Scope) ([]T, error) {
	if err := checkText("name", name); err != nil {
		return nil, err
	}
	var element T
	count := countOf(shape)
	extents := toInt64s(shape)
	var memory []byte
	if nbytes := count * int(unsafe.Sizeof(element)); c != nil && nbytes > 0 {
		var err error
		if memory, err = syscall.Mmap(-1, 0, nbytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err != nil {
			return nil, err
		}
	}
	err := c.self().do(func(raw czero.Checkpoint) *czero.Failure {
		return czero.Zero_checkpoint_add_tensor(raw, name, int32(DTypeOf[T]()), (*int64)(addressOf(extents)), int64(len(extents)),
			addressOf(memory), int32(scope))
	})
	if err != nil || len(memory) == 0 {
		if len(memory) > 0 {
			_ = syscall.Munmap(memory)
		}
		return nil, err
	}
	c.memory = append(c.memory, memory)
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), count), nil
}

// SetText keeps a text of the program, such as its place in the data; those of rank 0 are saved.
func (c *Checkpoint) SetText(key, text string) error {
	if err := checkText("key", key); err != nil {
		return err
	}
	if err := checkText("text", text); err != nil {
		return err
	}
	return c.self().do(func(raw czero.Checkpoint) *czero.Failure { return czero.Zero_checkpoint_set_text(raw, key, text) })
}

// Text returns a text; ErrNotFound for a key that has none.
func (c *Checkpoint) Text(key string) (string, error) {
	if err := checkText("key", key); err != nil {
		return "", err
	}
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return c.self().do(func(raw czero.Checkpoint) *czero.Failure {
			return czero.Zero_checkpoint_get_text(raw, key, out, nbytes, needed)
		})
	})
}

// Rename says that a tensor of a save, or all with "old.*", has another name here.
func (c *Checkpoint) Rename(inFile, here string) error {
	if err := checkText("inFile", inFile); err != nil {
		return err
	}
	if err := checkText("here", here); err != nil {
		return err
	}
	return c.self().do(func(raw czero.Checkpoint) *czero.Failure { return czero.Zero_checkpoint_rename(raw, inFile, here) })
}

// Save saves everything into a folder of its own inside folder, which must exist. A collective between steps.
func (c *Checkpoint) Save(ctx context.Context, folder string) (CheckpointResult, error) {
	return c.files(ctx, folder, func(raw czero.Checkpoint, result *czero.CheckpointResult) *czero.Failure {
		return czero.Zero_checkpoint_save(raw, folder, nil, result)
	})
}

// Load loads the newest valid save in folder, or the save that folder is; ErrNotFound when there is none. With PartParams, folder may also
// name plain safetensors of any tool: a file, or a folder of files. A collective between steps.
func (c *Checkpoint) Load(ctx context.Context, folder string, part Part) (CheckpointResult, error) {
	return c.files(ctx, folder, func(raw czero.Checkpoint, result *czero.CheckpointResult) *czero.Failure {
		return czero.Zero_checkpoint_load(raw, folder, int32(part), nil, result)
	})
}

// Export writes the parameters as plain safetensors, which other tools read: one file if path ends with .safetensors, otherwise a folder.
// The type is AsKept, DTypeF32, DTypeF16 or DTypeBF16. A collective between steps.
func (c *Checkpoint) Export(ctx context.Context, path string, dtype DType) (CheckpointResult, error) {
	return c.files(ctx, path, func(raw czero.Checkpoint, result *czero.CheckpointResult) *czero.Failure {
		return czero.Zero_checkpoint_export(raw, path, int32(dtype), nil, result)
	})
}

// Skipped returns what the last Load passed over or converted, a line each.
func (c *Checkpoint) Skipped() (string, error) {
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return c.self().do(func(raw czero.Checkpoint) *czero.Failure {
			return czero.Zero_checkpoint_skipped(raw, out, nbytes, needed)
		})
	})
}

// Close gives the checkpoint back. It may be called again.
func (c *Checkpoint) Close() {
	if c != nil {
		c.object.close(czero.Zero_checkpoint_release)
		c.object.mutex.Lock() // a call in another goroutine still uses the memory
		for _, memory := range c.memory {
			_ = syscall.Munmap(memory)
		}
		c.memory = nil
		c.object.mutex.Unlock()
		runtime.SetFinalizer(c, nil)
	}
}

func (c *Checkpoint) files(
	ctx context.Context, folder string, call func(czero.Checkpoint, *czero.CheckpointResult) *czero.Failure,
) (CheckpointResult, error) {
	var result czero.CheckpointResult
	if err := checkText("folder", folder); err != nil {
		return CheckpointResult{}, err
	}
	err := c.self().wait(ctx, func(raw czero.Checkpoint) *czero.Failure {
		if failure := czero.Zero_checkpoint_result_init(&result, uint64(unsafe.Sizeof(result))); failure != nil {
			return failure
		}
		return call(raw, &result)
	})
	return resultOf(&result), err
}

func resultOf(result *czero.CheckpointResult) CheckpointResult {
	return CheckpointResult{
		Step: int(result.Step), Bytes: int(result.Nbytes), Files: int(result.FileCount), Direct: result.Direct != 0,
		Missing: int(result.Missing), Extra: int(result.Extra), Converted: int(result.Converted), Fallback: int(result.Fallback),
		Copied: int(result.SnapshotNbytes), Stall: time.Duration(result.StallNs),
	}
}

// RequestStop asks all ranks to stop: the next Step or Reduce of all of them has the largest reason as StopReason. At any time.
func (o *Optimizer) RequestStop(reason int) error {
	return o.self().look(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_request_stop(raw, int64(reason)) })
}

// Save saves the optimizer with all that belongs to it into a folder of its own inside folder, which must exist. A collective.
func (o *Optimizer) Save(ctx context.Context, folder string) error {
	if err := checkText("folder", folder); err != nil {
		return err
	}
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_save(raw, folder, o.onStream()) })
}

// Resume loads the newest valid save in folder, instead of Begin; false where there is none. A collective.
func (o *Optimizer) Resume(ctx context.Context, folder string) (bool, error) {
	var found int64
	if err := checkText("folder", folder); err != nil {
		return false, err
	}
	err := o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_resume(raw, folder, o.onStream(), &found)
	})
	return found != 0, err
}
