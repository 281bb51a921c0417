package main

import (
	"fmt"
	"math"
	"strings"

	zero "example.org/libzero/bindings/go"
)

const steps = 5

// training is a run that differs from the usual one where a field is set.
type training[T zero.Element] struct {
	name        string
	stage       int
	settings    []zero.Setting
	firstValues func(*model[T])
	step        func(*model[T], int)
	say         func(*model[T])
}

func (it training[T]) run() {
	runRanks(it.name, 3, func(r *rank) {
		m := newModel[T](r, configOf(it.stage, it.settings...))
		defer m.optimizer.Close()
		check(m.optimizer.Seal(background))
		it.firstValues(m)
		for t := 0; t < steps; t++ {
			it.step(m, t)
		}
		it.say(m)
	})
}

func usual[T zero.Element](name string, stage int, settings ...zero.Setting) training[T] {
	return training[T]{name, stage, settings, (*model[T]).begin, usualStep[T], (*model[T]).sayResult}
}

func (it training[T]) withStep(step func(*model[T], int)) training[T] {
	it.step = step
	return it
}

func (it training[T]) withSay(say func(*model[T])) training[T] {
	it.say = say
	return it
}

func optimizerScenarios() {
	clip := zero.Float(zero.KeyClipNorm, 1)
	custom := []zero.Setting{zero.Text(zero.KeyAlgorithm, "custom"), zero.Int(zero.KeyCustomSlots, 1)}
	for stage := 0; stage <= 3; stage++ {
		usual[float32](fmt.Sprintf("train-stage%d", stage), stage).run()
	}
	usual[float32]("train-sgd", 1, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyMomentum, 0.9)).run()
	usual[float32]("train-private", 1).withStep(privateStep).run()
	for stage := 0; stage <= 3; stage++ {
		usual[float32](fmt.Sprintf("train-bulk%d", stage), stage).withStep(bulkStep).run()
	}
	training[float32]{"train-device", 2, onDevice(), initNormal, privateStep, (*model[float32]).sayResult}.run()
	usual[float32]("train-clip", 1, clip).withSay(sayNorm).run()
	usual[float32]("train-micro", 2).withStep(microStep).run()
	usual[float32]("train-rate", 1).withStep(rateStep).run()
	usual[float32]("train-skip", 1).withStep(skipStep).withSay(saySkipped).run()
	usual[float32]("train-weights", 1, zero.Int(zero.KeyDivisor, zero.DivisorWeights)).withStep(weightedStep).run()
	usual[float32]("train-replicas", 1, zero.Int(zero.KeyReplicaRanks, 1), zero.Int(zero.KeySyncPeriod, 2),
		zero.Float(zero.KeyOuterLR, 0.7), zero.Float(zero.KeyOuterMomentum, 0.9)).withStep(replicaStep).withSay(saySynced).run()
	usual[float32]("train-custom", 1, custom...).withStep(customStep).run()
	usual[float32]("train-custom-views", 1, custom...).withStep(customStep).withSay(sayViews).run()
	usual[float32]("train-acquired", 3).withSay(sayAcquired).run()
	usual[zero.BF16]("precision-bf16", 1).run()
	usual[zero.BF16]("slots", 1).withSay(saySlots).run()
	usual[float32]("scalars", 1).withSay(sayScalars).run()
	usual[float32]("moments", 1).withSay(sayMoments).run()
	training[float32]{"init-normal", 1, nil, initNormal, func(*model[float32], int) {}, (*model[float32]).sayResult}.run()
	runRanks("rows", 3, rows)
	runRanks("rows-error", 1, rowsError)
	runRanks("module-buffer", 3, moduleBuffer)
	usual[float32]("verify", 1).withSay(sayVerified).run()
	usual[float32]("traffic", 1, zero.Int(zero.KeyOverlap, 0)).withSay(sayTraffic).run()
	usual[float32]("memory-formula", 1).withSay(sayFormula).run()
	usual[float32]("describe", 1).withSay(sayDescribed).run()
}

// onDevice puts everything into a device's memory, if there is a device.
func onDevice() []zero.Setting {
	if !zero.HasFeature(zero.FeatureCUDA) {
		return nil
	}
	return []zero.Setting{zero.Int(zero.KeyDevice, 0), zero.Int(zero.KeyTier, zero.TierDevice)}
}

func usualStep[T zero.Element](m *model[T], t int) {
	m.giveGradients(t)
	m.step()
}

// privateStep gives gradients from memory of its own: `b`, then `w` in two halves of which the second comes first.
func privateStep(m *model[float32], t int) {
	w := m.gradient(idW, t)
	check(zero.GiveGrad(background, m.optimizer, idB, 0, m.gradient(idB, t)))
	check(zero.GiveGrad(background, m.optimizer, idW, 300, w[300:]))
	check(zero.GiveGrad(background, m.optimizer, idW, 0, w[:300]))
	m.step()
}

// bulkStep gives gradients from memory of its own, of both parameters in one call.
func bulkStep(m *model[float32], t int) {
	grads := [][]float32{m.gradient(idB, t), m.gradient(idW, t)}
	check(must(zero.NewGradients(m.optimizer, []int{idB, idW}, grads)).Ready(background))
	m.step()
}

func microStep(m *model[float32], t int) {
	check(m.optimizer.MicroStep(background, zero.MicroStepLocal))
	m.giveGradients(t)
	check(m.optimizer.MicroStep(background, zero.MicroStepLast))
	usualStep(m, t)
}

func rateStep(m *model[float32], t int) {
	check(m.optimizer.SetF64(0, zero.KeyLR, 0.01/float64(t+1)))
	usualStep(m, t)
}

// skipStep gives a gradient of `b` with a NaN in step 2 on rank 1.
func skipStep(m *model[float32], t int) {
	if t == 2 && m.id == 1 {
		b := m.gradient(idB, t)
		b[0] = float32(math.NaN())
		check(zero.GiveGrad(background, m.optimizer, idB, 0, b))
		check(zero.GiveGrad(background, m.optimizer, idW, 0, m.gradient(idW, t)))
		m.step()
	} else {
		usualStep(m, t)
	}
	if t == 2 && m.id == 0 {
		m.add("%d %d", m.result.Step, number(m.result.Skipped))
	}
}

func weightedStep(m *model[float32], t int) {
	check(m.optimizer.SetWeight(float64(m.id)))
	usualStep(m, t)
}

// replicaStep ends the period in steps 1 and 3, and the run behind step 4.
func replicaStep(m *model[float32], t int) {
	usualStep(m, t)
	if m.id == 0 {
		m.add("%d", number(m.result.Synced))
	}
	if t == steps-1 {
		m.result = must(m.optimizer.Sync(background))
	}
}

func saySynced(m *model[float32]) {
	if m.id == 0 {
		m.add("%d", number(m.result.Synced))
		m.addDouble(m.result.Spread)
	}
	m.sayResult()
}

// customStep: slot += gradient, parameter -= 0.125 slot. The conversion keeps a compiler from fusing the product with the difference.
func customStep(m *model[float32], t int) {
	m.giveGradients(t)
	m.result = must(m.optimizer.Reduce(background))
	grads := must(zero.Views[float32](m.optimizer, zero.SlotGrad))
	slots := must(zero.Views[float32](m.optimizer, zero.SlotCustom))
	params := must(zero.Views[float32](m.optimizer, zero.SlotParam))
	for v := range params {
		for i, grad := range grads[v].Data {
			slots[v].Data[i] += grad
			params[v].Data[i] -= float32(0.125 * slots[v].Data[i])
		}
	}
	check(m.optimizer.Gather(background))
}

func initNormal(m *model[float32]) {
	for id := 0; id < paramCount; id++ {
		check(m.optimizer.InitParam(id, zero.InitialiserNormal, 0.5, 2, int64(7+id)))
	}
	check(m.optimizer.Begin(background, zero.SourceShards))
}

func sayNorm(m *model[float32]) {
	if m.id == 0 {
		m.addDouble(m.result.GradNorm)
	}
	m.sayResult()
}

func saySkipped(m *model[float32]) {
	if m.id == 0 {
		m.add("%d", m.result.SkippedTotal)
	}
	m.sayResult()
}

func sayViews(m *model[float32]) {
	var places []string
	for _, view := range must(zero.Views[float32](m.optimizer, zero.SlotParam)) {
		places = append(places, fmt.Sprintf("%d:%d:%d", view.Param, view.Offset, len(view.Data)))
	}
	m.add("%s", strings.Join(places, ","))
}

func sayAcquired(m *model[float32]) {
	addHash(&m.line, must(zero.Acquire[float32](background, m.optimizer, idW)))
	check(m.optimizer.Release(idW))
}

func saySlots(m *model[zero.BF16]) {
	slots := must(m.optimizer.Slots(idW))
	for _, slot := range slots {
		if m.id == 0 {
			m.add("%d:%d:%d", int32(slot.Slot), int32(slot.DType), slot.Count)
		}
	}
}

func sayScalars(m *model[float32]) {
	if m.id == 0 {
		m.addDouble(must(m.optimizer.GetF64(0, zero.KeyLR)))
		m.add("%d", must(m.optimizer.GetI64(zero.KeyStepCount)))
	}
}

func sayMoments(m *model[float32]) {
	var moments []float32
	if m.id == 0 {
		moments = make([]float32, counts[idW])
	}
	check(zero.ReadSlot(background, m.optimizer, idW, zero.SlotSecondMoment, 0, moments))
	if m.id == 0 {
		addHash(&m.line, moments)
	}
}

func moduleBuffer(r *rank) {
	m := newModel[float32](r, configOf(1))
	defer m.optimizer.Close()
	id := must(m.optimizer.AddModuleBuffer("m", zero.DTypeF32, []int{9}, zero.SyncAverage))
	check(m.optimizer.Seal(background))
	data := must(zero.ModuleBuffer[float32](m.optimizer, id))
	fill(data, r.id)
	check(m.optimizer.SyncModuleBuffers(background))
	addHash(&r.line, data)
}

// newTable makes an optimizer of a table of which gradients are given by rows, begun with zeros.
func newTable(r *rank) *zero.Optimizer {
	config, byRows := configOf(1), must(zero.NewConfig(zero.Int(zero.KeyRows, 1)))
	defer config.Close()
	defer byRows.Close()
	optimizer := must(zero.NewOptimizer(r.group, config))
	must(optimizer.AddParam("t", zero.DTypeF32, []int{40, 10}, byRows))
	check(optimizer.Seal(background))
	check(optimizer.Begin(background, zero.SourceLocal))
	return optimizer
}

func rows(r *rank) {
	optimizer := newTable(r)
	defer optimizer.Close()
	check(zero.GiveGradRows(background, optimizer, 0, []int{r.id, 7, r.id}, values[float32](30, r.id)))
	must(optimizer.Step(background))
	var table []float32
	if r.id == 0 {
		table = make([]float32, 400)
	}
	check(zero.ReadSlot(background, optimizer, 0, zero.SlotParam, 0, table))
	if r.id == 0 {
		addHash(&r.line, table)
	}
}

func rowsError(r *rank) {
	optimizer := newTable(r)
	defer optimizer.Close()
	r.addError(zero.GiveGradRows(background, optimizer, 0, []int{40}, values[float32](10, 0)))
}

func sayVerified(m *model[float32]) {
	result := must(m.optimizer.Verify(background))
	if m.id == 0 {
		m.add("%d %d", int64(result.Found), result.Chunks)
	}
}

func sayTraffic(m *model[float32]) {
	reductions := must(m.optimizer.Traffic(zero.OperationReduceScatter))
	gathers := must(m.optimizer.Traffic(zero.OperationAllGather))
	m.add("%d/%d", reductions.SentElements, gathers.SentElements)
}

func sayFormula(m *model[float32]) { m.add("%d", must(m.optimizer.Memory(zero.MemoryTotal)).Formula) }

func sayDescribed(m *model[float32]) {
	if text := must(m.optimizer.Describe()); m.id == 0 {
		m.add("%d", number(len(text) > 100))
	}
}

func number(condition bool) int {
	if condition {
		return 1
	}
	return 0
}
