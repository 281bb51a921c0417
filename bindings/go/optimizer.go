package zero

import (
	"context"
	"runtime"
	"sync"

	"example.org/libzero/bindings/go/internal/czero"
)

// Optimizer holds the parameters of a model, their gradients and the states of an update rule, sharded over a group by KeyStage.
//
// Its life: NewOptimizer, AddParam for each tensor, Seal, first values, Begin; then for each step Acquire and Release of parameters around
// their use, AcquireGrad, GradReady, Step. All ranks add the same tensors in the same order.
//
// With KeyDevice, functions with Device in their names take memory of that CUDA device; with TierDevice they return libzero's there.
type Optimizer struct {
	object object[czero.Optimizer]

	device   int64   // KeyDevice; -1 = none
	onDevice bool    // KeyTier is TierDevice
	stream   uintptr // of SetStream; object's mutex guards it

	layouts       sync.Mutex // of what follows; nobody waits with it
	grad          DType      // KeyGradDType of the optimizer's config; 0 = that of the parameter
	params        []layout
	moduleBuffers []layout
}

// layout is what slices of a parameter or module buffer are checked with.
type layout struct {
	dtype, grad DType
	count       int
	width       int        // elements with the same first index
	slots       []SlotInfo // of a parameter, when somebody has asked
}

// layoutOf returns nothing for an unknown id.
func layoutOf(tensors []layout, id int) layout {
	if id < 0 || id >= len(tensors) {
		return layout{}
	}
	return tensors[id]
}

// NewOptimizer makes an optimizer without parameters; an empty config means adamw and stage 1. Not a collective.
func NewOptimizer(g *Group, config *Config) (*Optimizer, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	members, group := g.share()
	o := &Optimizer{}
	o.object.members = members
	err := wrap(config.lend(func(options czero.Config) *czero.Failure {
		known := config.known()
		o.grad, o.device, o.onDevice = known.grad, -1, known.onDevice
		if known.deviceSet {
			o.device = known.device
		}
		return czero.Zero_optimizer_create(group, options, &o.object.handle)
	}))
	if err != nil {
		members.drop()
		return nil, err
	}
	// Giving an optimizer back may wait for other ranks, and all finalizers share a goroutine.
	runtime.SetFinalizer(o, func(o *Optimizer) { go o.Close() })
	return o, nil
}

// AddSet makes a parameter set, whose parameters share an algorithm and hyper-parameters, and returns its number for KeySet. Set 0 has those
// of the optimizer's own config. Before Seal.
func (o *Optimizer) AddSet(config *Config) (int, error) {
	var set int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return config.lend(func(options czero.Config) *czero.Failure { return czero.Zero_optimizer_add_set(raw, options, &set) })
	})
	return int(set), err
}

// AddParam registers a tensor in row-major order and returns its id: 0, 1, 2 ... dtype is f32, f16 or bf16. Before Seal.
func (o *Optimizer) AddParam(name string, dtype DType, shape []int, config *Config) (int, error) {
	if err := checkText("name", name); err != nil {
		return 0, err
	}
	extents := toInt64s(shape)
	var id int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return config.lend(func(options czero.Config) *czero.Failure {
			failure := czero.Zero_optimizer_add_param(raw, options, name, int32(dtype), (*int64)(addressOf(extents)), int64(len(extents)), &id)
			if failure == nil {
				o.layouts.Lock()
				defer o.layouts.Unlock()
				o.params = append(o.params, layout{dtype: dtype, grad: o.gradOf(dtype, config.known()), count: countOf(shape), width: widthOf(shape)})
			}
			return failure
		})
	})
	return int(id), err
}

// widthOf returns the elements of a row.
func widthOf(shape []int) int {
	if len(shape) == 0 {
		return 1
	}
	return countOf(shape[1:])
}

// gradOf returns the dtype of the gradient of a parameter that is about to be added.
func (o *Optimizer) gradOf(dtype DType, known storedDTypes) DType {
	switch {
	case known.tied && known.tiedTo < len(o.params):
		return o.params[known.tiedTo].grad
	case known.gradSet && known.grad != 0:
		return known.grad
	case !known.gradSet && o.grad != 0:
		return o.grad
	}
	return dtype
}

func countOf(shape []int) int {
	count := 1
	for _, extent := range shape {
		count *= extent
	}
	return count
}

// SetOrder gives the order in which gradients become ready, and so are reduced; without it, last added first. Before Seal.
func (o *Optimizer) SetOrder(ids []int) error {
	order := toInt64s(ids)
	return o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_set_order(raw, (*int64)(addressOf(order)), int64(len(order)))
	})
}

// SetGatherOrder gives the order in which the first step of stage 3 acquires parameters, so that they are gathered ahead. Before Seal.
func (o *Optimizer) SetGatherOrder(ids []int) error {
	order := toInt64s(ids)
	return o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_set_gather_order(raw, (*int64)(addressOf(order)), int64(len(order)))
	})
}

// SetModelGroup names the ranks that together hold one replica of a model that is cut itself (tensor, pipeline or expert parallel), so that
// norms and skipped steps are those of the whole model. Before Seal.
func (o *Optimizer) SetModelGroup(model *Group) error {
	members, group := model.share()
	return o.self().do(func(raw czero.Optimizer) *czero.Failure {
		failure := czero.Zero_optimizer_set_model_group(raw, group)
		if failure != nil {
			members.drop()
			return failure
		}
		o.object.setModel(members)
		return nil
	})
}

// Seal cuts the parameters into shards, agrees with all ranks that they have the same, and allocates everything. A collective.
func (o *Optimizer) Seal(ctx context.Context) error {
	return o.self().wait(ctx, czero.Zero_optimizer_seal)
}

// Describe tells what was chosen and why: transport, kernel target, threads, buckets, the memory formula.
func (o *Optimizer) Describe() (string, error) { return o.text(czero.Zero_describe_optimizer) }

// Trace returns what the optimizer did and when on this rank, the newest KeyTraceEvents events since Seal, as JSON in the Chrome trace
// format.
func (o *Optimizer) Trace() (string, error) { return o.text(czero.Zero_stats_optimizer_trace) }

// Memory returns the optimizer's bytes on this rank.
func (o *Optimizer) Memory(category Memory) (MemoryStats, error) {
	var stats MemoryStats
	err := o.self().look(func(raw czero.Optimizer) *czero.Failure {
		return stats.read(func(out *czero.MemoryStats) *czero.Failure {
			return czero.Zero_stats_optimizer_memory(raw, int32(category), out)
		})
	})
	return stats, err
}

// Traffic returns what this rank sent for the optimizer: OperationReduceScatter gradients, OperationAllGather parameters, OperationAllReduce
// votes.
func (o *Optimizer) Traffic(operation Operation) (TrafficStats, error) {
	var stats TrafficStats
	err := o.self().look(func(raw czero.Optimizer) *czero.Failure {
		return stats.read(func(out *czero.TrafficStats) *czero.Failure {
			return czero.Zero_stats_optimizer_traffic(raw, int32(operation), out)
		})
	})
	return stats, err
}

// StepStats returns the time spent in steps.
func (o *Optimizer) StepStats() (StepStats, error) {
	var stats StepStats
	err := o.self().look(func(raw czero.Optimizer) *czero.Failure {
		return stats.read(func(out *czero.StepStats) *czero.Failure { return czero.Zero_stats_optimizer_step(raw, out) })
	})
	return stats, err
}

// Close gives the optimizer and all memory that it handed out back. It may wait for other ranks where parameters are being gathered. It may
// be called again, and always returns nil.
func (o *Optimizer) Close() error {
	if o != nil && o.object.handle != 0 { // the zero Optimizer has no finalizer, and may lie where Go allows none
		runtime.SetFinalizer(o, nil)
		o.object.close(czero.Zero_optimizer_release)
	}
	return nil
}

func (o *Optimizer) self() *object[czero.Optimizer] {
	if o == nil {
		return nil
	}
	return &o.object
}

func (o *Optimizer) text(read func(czero.Optimizer, *byte, int64, *int64) *czero.Failure) (string, error) {
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return o.self().look(func(raw czero.Optimizer) *czero.Failure { return read(raw, out, nbytes, needed) })
	})
}
