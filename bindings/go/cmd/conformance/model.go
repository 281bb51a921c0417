package main

import zero "example.org/libzero/bindings/go"

// Ids in order of registration.
const (
	idW = iota
	idB
	paramCount
)

var counts = [paramCount]int{600, 7}

// model is the parameters `w` and `b` that optimizer scenarios train, on one rank.
type model[T zero.Element] struct {
	*rank
	optimizer *zero.Optimizer
	result    zero.StepResult // of the last step
}

// configOf returns a config of a stage, with buckets of 1024 bytes.
func configOf(stage int, settings ...zero.Setting) *zero.Config {
	settings = append([]zero.Setting{zero.Int(zero.KeyStage, stage), zero.Int(zero.KeyBucketBytes, 1024)}, settings...)
	return must(zero.NewConfig(settings...))
}

// newModel makes an optimizer with both parameters, not sealed, and closes the config.
func newModel[T zero.Element](r *rank, config *zero.Config) *model[T] {
	defer config.Close()
	m := &model[T]{rank: r, optimizer: must(zero.NewOptimizer(r.group, config))}
	must(m.optimizer.AddParam("w", zero.DTypeOf[T](), []int{20, 30}, nil))
	must(m.optimizer.AddParam("b", zero.DTypeOf[T](), []int{7}, nil))
	return m
}

// begin gives the first values v(i, id) of rank 0, after seal.
func (m *model[T]) begin() {
	for id := 0; m.id == 0 && id < paramCount; id++ {
		fill(must(zero.Acquire[T](background, m.optimizer, id)), id)
		check(m.optimizer.Release(id))
	}
	check(m.optimizer.Begin(background, zero.SourceRoot))
}

// gradient is that of step t.
func (m *model[T]) gradient(id, t int) []T { return values[T](counts[id], 10*t+3*id+m.id) }

// giveGradients gives those of step t, `b` before `w`, through acquired memory.
func (m *model[T]) giveGradients(t int) {
	for _, id := range []int{idB, idW} {
		to, add, err := zero.AcquireGrad[T](background, m.optimizer, id)
		check(err)
		if add {
			addFloats(any(to).([]float32), any(m.gradient(id, t)).([]float32))
		} else {
			copy(to, m.gradient(id, t))
		}
		check(m.optimizer.GradReady(background, id))
	}
}

func addFloats(to, from []float32) {
	for i, value := range from {
		to[i] += value
	}
}

func (m *model[T]) step() { m.result = must(m.optimizer.Step(background)) }

// sayResult says the hashes of both parameters, which rank 0 reads.
func (m *model[T]) sayResult() {
	for id := 0; id < paramCount; id++ {
		var data []T
		if m.id == 0 {
			data = make([]T, counts[id])
		}
		check(zero.ReadSlot(background, m.optimizer, id, zero.SlotParam, 0, data))
		if m.id == 0 {
			addHash(&m.line, data)
		}
	}
}
