package main

import (
	"time"

	zero "example.org/libzero/bindings/go"
)

func misuseScenarios() {
	runSealed("step-before-begin", func(m *model[float32]) {
		_, err := m.optimizer.Step(background)
		m.addError(err)
	})
	runSealed("seal-twice", func(m *model[float32]) { m.addError(m.optimizer.Seal(background)) })
	runSealed("param-after-seal", func(m *model[float32]) { addParam(m, "c", zero.DTypeF32, 7) })
	runBuilt("param-dtype", func(m *model[float32]) { addParam(m, "c", zero.DTypeI32, 7) })
	runBuilt("param-shape", func(m *model[float32]) { addParam(m, "c", zero.DTypeF32, -1) })
	runBuilt("param-name-twice", func(m *model[float32]) { addParam(m, "w", zero.DTypeF32, 7) })
	runRanks("unknown-algorithm", 1, unknownAlgorithm)
	runBegun("gradient-twice", gradientTwice)
	runBegun("gradient-range", func(m *model[float32]) {
		m.addError(zero.GiveGrad(background, m.optimizer, idB, 0, values[float32](8, 0)))
	})
	runBegun("read-range", func(m *model[float32]) {
		m.addError(zero.ReadSlot(background, m.optimizer, idB, zero.SlotParam, 0, make([]float32, 8)))
	})
	runBegun("rate-unknown", func(m *model[float32]) { m.addError(m.optimizer.SetF64(0, zero.KeyStage, 1)) })
	runBegun("trace-off", func(m *model[float32]) {
		_, err := m.optimizer.Trace()
		m.addError(err)
	})
	runBegun("closed", closed)
	runRanks("mismatch", 3, mismatch)
	runRanks("timeout", 2, timeout)
	runRanks("aborted", 2, aborted)
	runRanks("peer-left", 2, peerLeft)
	runBegun("release-order", releaseOrder)
}

// runBuilt runs body on a rank with an optimizer that is not sealed.
func runBuilt(scenario string, body func(*model[float32])) {
	runRanks(scenario, 1, func(r *rank) {
		m := newModel[float32](r, configOf(1))
		defer m.optimizer.Close()
		body(m)
	})
}

func runSealed(scenario string, body func(*model[float32])) {
	runBuilt(scenario, func(m *model[float32]) {
		check(m.optimizer.Seal(background))
		body(m)
	})
}

func runBegun(scenario string, body func(*model[float32])) {
	runSealed(scenario, func(m *model[float32]) {
		m.begin()
		body(m)
	})
}

func addParam(m *model[float32], name string, dtype zero.DType, extent int) {
	_, err := m.optimizer.AddParam(name, dtype, []int{extent}, nil)
	m.addError(err)
}

func unknownAlgorithm(r *rank) {
	config := configOf(1, zero.Text(zero.KeyAlgorithm, "nothing"))
	defer config.Close()
	_, err := zero.NewOptimizer(r.group, config)
	r.addError(err)
}

func gradientTwice(m *model[float32]) {
	b := values[float32](7, 0)
	check(zero.GiveGrad(background, m.optimizer, idB, 0, b))
	m.addError(zero.GiveGrad(background, m.optimizer, idB, 0, b))
}

func closed(m *model[float32]) {
	check(m.group.Close())
	_, err := m.group.Size()
	m.addStatus(err)
	check(m.optimizer.Close())
	_, err = m.optimizer.Step(background)
	m.addStatus(err)
}

func mismatch(r *rank) {
	data := values[float32](elements+1, r.id)
	if r.id == 0 {
		data = data[:elements]
	}
	r.addStatus(zero.AllReduce(background, r.group, data, data, zero.Sum))
}

func timeout(r *rank) {
	if r.id == 0 {
		check(r.group.SetDeadline(200 * time.Millisecond))
		r.addStatus(r.group.Barrier(background))
	}
}

func aborted(r *rank) {
	if r.id == 0 {
		check(r.group.Abort(""))
	} else {
		r.addStatus(r.group.Barrier(background))
	}
}

func peerLeft(r *rank) {
	if r.id == 0 {
		r.addStatus(r.group.Barrier(background))
	} else {
		check(r.group.Close())
	}
}

func releaseOrder(m *model[float32]) {
	buffer := must(zero.NewBuffer[float32](background, m.group, nil, bufferCount))
	m.giveGradients(0)
	_, err := m.optimizer.Step(background)
	m.addStatus(err)
	check(m.group.Close())
	check(buffer.Close())
	check(m.optimizer.Close())
}
