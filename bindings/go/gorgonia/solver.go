package zerogorgonia

import (
	"context"
	"errors"
	"fmt"

	zero "example.org/libzero/bindings/go"
	"gorgonia.org/gorgonia"
)

// Solver is a gorgonia.Solver that reduces the gradients of all ranks and updates a shard of the parameters on each.
//
// All ranks call the same methods in the same order, with the same model. A Solver is for one goroutine at a time.
type Solver struct {
	ctx       context.Context
	group     *zero.Group
	optimizer *zero.Optimizer
	tensors   []tensorInfo // of the model, once it is registered
	begun     bool
	result    zero.StepResult
}

var _ gorgonia.Solver = (*Solver)(nil)

// NewSolver makes a solver on a group. The settings are those of zero.NewConfig for an optimizer: KeyAlgorithm names the update rule ("adam",
// "adamw", "sgd", "adagrad", "lion", "lamb", "muon"), KeyLR and the like are its hyper-parameters. The stage is 3 where no setting says
// otherwise. The group must outlive the solver's use. When ctx ends, a Step under way fails on all ranks, and the group is lost. Not a
// collective.
func NewSolver(ctx context.Context, group *zero.Group, settings ...zero.Setting) (*Solver, error) {
	config, err := zero.NewConfig(append([]zero.Setting{zero.Int(zero.KeyStage, 3)}, settings...)...)
	if err != nil {
		return nil, err
	}
	defer config.Close()
	optimizer, err := zero.NewOptimizer(group, config)
	if err != nil {
		return nil, err
	}
	return &Solver{ctx: ctx, group: group, optimizer: optimizer}, nil
}

// Begin registers the nodes of a model and gives all ranks the values that rank 0's have. Before the graph runs for the first time. Without
// it the first Step registers the nodes, and fails if the ranks' values differ. A collective.
func (s *Solver) Begin(model []gorgonia.ValueGrad) error { return s.begin(model, true) }

// Resume registers the nodes of a model and sets them, and the states of the update rule, to the newest valid save in folder. False where
// there is none: Begin follows then. The number of ranks and the stage may differ from those of the save. A collective.
func (s *Solver) Resume(folder string, model []gorgonia.ValueGrad) (bool, error) {
	if s.begun {
		return false, errors.New("zerogorgonia: Resume comes before Begin and the first Step")
	}
	if err := s.register(model); err != nil {
		return false, err
	}
	found, err := s.optimizer.Resume(s.ctx, folder)
	if err != nil || !found {
		return false, err
	}
	s.begun = true
	return true, s.fetch(model)
}

// Save writes the values and the states of the update rule into a folder of their own inside folder, which must exist. A collective between
// steps.
func (s *Solver) Save(folder string) error { return s.optimizer.Save(s.ctx, folder) }

// Step updates the values of the nodes with the mean of the ranks' gradients, and sets these gradients to zero. The nodes are those of the
// first call in the same order, on all ranks. They may belong to another graph. A gradient that is not finite on some rank makes all ranks
// skip the step, which Result tells. A collective.
func (s *Solver) Step(model []gorgonia.ValueGrad) error {
	if !s.begun {
		if err := s.begin(model, false); err != nil {
			return err
		}
	}
	if err := s.compare(model); err != nil {
		return err
	}
	gradients := make([]elements, len(model))
	for i, node := range model {
		var err error
		if gradients[i], err = s.tensors[i].gradientOf(node); err != nil {
			return err
		}
	}
	for i := len(gradients) - 1; i >= 0; i-- { // in the order in which libzero reduces them
		if err := zero.GiveGrad(s.ctx, s.optimizer, i, 0, gradients[i].toFloat32s()); err != nil {
			return err
		}
	}
	var err error
	if s.result, err = s.optimizer.Step(s.ctx); err != nil {
		return err
	}
	for _, gradient := range gradients {
		gradient.zero()
	}
	if s.result.Skipped {
		return nil
	}
	return s.fetch(model)
}

// Result is the outcome of the last Step.
func (s *Solver) Result() zero.StepResult { return s.result }

// Optimizer is what the solver works with: for hyper-parameters (SetF64(0, zero.KeyLR, rate)), statistics and checkpoints. Node i of the model
// is parameter i. It belongs to the solver.
func (s *Solver) Optimizer() *zero.Optimizer { return s.optimizer }

// Close gives the optimizer back. The values stay as they are. It may be called again, and always returns nil.
func (s *Solver) Close() error { return s.optimizer.Close() }

// begin takes over the values of rank 0. Only a Begin that was called changes those of the other ranks.
func (s *Solver) begin(model []gorgonia.ValueGrad, asked bool) error {
	if s.begun {
		return errors.New("zerogorgonia: Begin comes once, before the first Step")
	}
	if err := s.register(model); err != nil {
		return err
	}
	for id, node := range model {
		if err := s.write(id, node); err != nil {
			return err
		}
	}
	if err := s.optimizer.Begin(s.ctx, zero.SourceShards); err != nil {
		return err
	}
	takeOver := s.compareValues
	if asked {
		takeOver = s.fetch
	}
	if err := takeOver(model); err != nil {
		return err
	}
	s.begun = true
	return nil
}

// write gives libzero the value of a node, as rank 0 has it.
func (s *Solver) write(id int, node gorgonia.ValueGrad) error {
	rank, err := s.group.Rank()
	if err != nil {
		return err
	}
	value, err := s.tensors[id].valueOf(node)
	if err != nil {
		return err
	}
	var given []float32
	if rank == 0 {
		given = value.toFloat32s()
	}
	return zero.WriteSlot(s.ctx, s.optimizer, id, zero.SlotParam, 0, given)
}

// compareValues finds the first node whose value on some rank is not that of rank 0, to the precision of libzero's parameters.
func (s *Solver) compareValues(model []gorgonia.ValueGrad) error {
	first := []int64{int64(len(model))}
	for id := len(model) - 1; id >= 0; id-- {
		value, err := s.tensors[id].valueOf(model[id])
		if err != nil {
			return err
		}
		zeroth := make([]float32, countOf(s.tensors[id].shape))
		if err := zero.CopyParam(s.ctx, s.optimizer, id, zeroth); err != nil {
			return err
		}
		if !sameBits(value.toFloat32s(), zeroth) {
			first[0] = int64(id)
		}
		value.widen(zeroth)
	}
	if err := zero.AllReduce(s.ctx, s.group, first, first, zero.Min); err != nil {
		return err
	}
	if id := int(first[0]); id < len(model) {
		return fmt.Errorf("zerogorgonia: the ranks' values of node %d of the model, %q, differ; call Begin before the graph first runs, or give all ranks the same values",
			id, s.tensors[id].name)
	}
	return nil
}

// register adds the nodes as parameters, unless Resume did and found nothing. Seal compares their names and shapes over the ranks.
func (s *Solver) register(model []gorgonia.ValueGrad) error {
	if s.tensors != nil {
		return s.compare(model)
	}
	tensors, err := describe(model)
	if err != nil {
		return err
	}
	for _, tensor := range tensors {
		if _, err := s.optimizer.AddParam(tensor.name, zero.DTypeF32, tensor.shape, nil); err != nil {
			return err
		}
	}
	if err := s.optimizer.Seal(s.ctx); err != nil {
		return err
	}
	s.tensors = tensors
	return nil
}

// compare tells the first difference between a model and the registered one.
func (s *Solver) compare(model []gorgonia.ValueGrad) error {
	tensors, err := describe(model)
	if err != nil {
		return err
	}
	if difference := firstDifference(tensors, s.tensors); difference != "" {
		return fmt.Errorf("zerogorgonia: the model is not the one that was registered: %s; give all steps the same nodes in the same order", difference)
	}
	return nil
}

// fetch sets the values of the nodes to libzero's parameters.
func (s *Solver) fetch(model []gorgonia.ValueGrad) error {
	for id, node := range model {
		value, err := s.tensors[id].valueOf(node)
		if err != nil {
			return err
		}
		place := value.f32
		if place == nil {
			place = make([]float32, len(value.f64))
		}
		if err := zero.CopyParam(s.ctx, s.optimizer, id, place); err != nil {
			return err
		}
		value.widen(place)
	}
	return nil
}
