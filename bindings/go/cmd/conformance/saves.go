package main

import (
	"os"
	"path/filepath"
	"strings"

	zero "example.org/libzero/bindings/go"
)

const tensorCount = 10

// inFolder is a body of ranks that save to a folder or load from it.
type inFolder func(r *rank, folder string)

// runInFolder runs one world after the other in a new empty folder and prints what their ranks say. There may be no second one.
func runInFolder(scenario string, size int, first inFolder, nextSize int, second inFolder) {
	folder := must(os.MkdirTemp("", "zero-conformance-"))
	defer os.RemoveAll(folder)
	var whole line
	whole.addRanks(size, func(r *rank) { first(r, folder) })
	if second != nil {
		whole.addRanks(nextSize, func(r *rank) { second(r, folder) })
	}
	whole.print(scenario)
}

func saveScenarios() {
	runInFolder("save-resume", 3, trainAndSave, 2, resumeAndTrain)
	runInFolder("save-tensors", 2, saveTensors, 3, loadTensors)
	runInFolder("save-buffer", 3, saveTable, 2, loadTable)
	runInFolder("save-names", 1, saveAB, 1, loadBC)
	runInFolder("save-renamed", 1, saveOld, 1, loadNew)
	runInFolder("save-background", 2, saveInBackground, 1, resumeAlone)
	runInFolder("save-compare", 1, saveTwice, 1, compareSaves)
	runInFolder("save-remove", 1, saveTwice, 1, removeSaves)
	runInFolder("save-nothing", 1, findNothing, 1, nil)
	runRanks("stop", 3, stop)
}

// sealed returns a model that its caller closes.
func sealed(r *rank, stage int) *model[float32] {
	m := newModel[float32](r, configOf(stage))
	check(m.optimizer.Seal(background))
	return m
}

func (m *model[T]) train(from, to int) {
	for t := from; t < to; t++ {
		m.giveGradients(t)
		m.step()
	}
}

func (m *model[T]) resume(folder string) {
	if found := must(m.optimizer.Resume(background, folder)); m.id == 0 {
		m.add("%d", number(found))
	}
}

func (m *model[T]) saySteps() {
	if m.id == 0 {
		m.add("%d", must(m.optimizer.GetI64(zero.KeyStepCount)))
	}
}

func trainAndSave(r *rank, folder string) {
	m := sealed(r, 1)
	defer m.optimizer.Close()
	m.resume(folder)
	m.begin()
	m.train(0, steps)
	check(m.optimizer.Save(background, folder))
}

func resumeAndTrain(r *rank, folder string) {
	m := sealed(r, 3)
	defer m.optimizer.Close()
	m.resume(folder)
	m.saySteps()
	m.sayResult()
	m.train(steps, steps+1)
	m.sayResult()
}

func checkpointOf(r *rank, settings ...zero.Setting) *zero.Checkpoint {
	config := must(zero.NewConfig(settings...))
	defer config.Close()
	return must(zero.NewCheckpoint(r.group, config))
}

func addTensor[T zero.Element](c *zero.Checkpoint, name string, scope zero.Scope) []T {
	return must(zero.AddTensor[T](c, name, []int{tensorCount}, scope))
}

func saveTensors(r *rank, folder string) {
	c := checkpointOf(r)
	defer c.Close()
	fill(addTensor[float32](c, "one", zero.ScopeOne), r.id)
	fill(addTensor[int64](c, "each", zero.ScopeEach), r.id)
	check(c.SetText("epoch", "3/10"))
	must(c.Save(background, folder))
}

func loadTensors(r *rank, folder string) {
	c := checkpointOf(r)
	defer c.Close()
	one := addTensor[float32](c, "one", zero.ScopeOne)
	each := addTensor[int64](c, "each", zero.ScopeEach)
	must(c.Load(background, folder, zero.PartAll))
	if r.id == 0 {
		r.add("%s", must(c.Text("epoch")))
		_, err := c.Text("gone")
		r.addStatus(err)
	}
	addHash(&r.line, one)
	addHash(&r.line, each)
}

// tableOf returns a checkpoint with a buffer, which its caller closes.
func tableOf(r *rank) (*zero.Checkpoint, *zero.Buffer[float32]) {
	c := checkpointOf(r)
	buffer := must(zero.NewBuffer[float32](background, r.group, nil, bufferCount))
	check(zero.AddBuffer(c, "table", buffer))
	return c, buffer
}

func saveTable(r *rank, folder string) {
	c, buffer := tableOf(r)
	defer c.Close()
	defer buffer.Close()
	var data []float32
	if r.id == 0 {
		data = values[float32](bufferCount, 0)
	}
	check(buffer.Write(background, 0, data))
	must(c.Save(background, folder))
}

func loadTable(r *rank, folder string) {
	c, buffer := tableOf(r)
	defer c.Close()
	defer buffer.Close()
	if result := must(c.Load(background, folder, zero.PartAll)); r.id == 0 {
		r.add("%d", result.Step)
	}
	shard, _, err := buffer.Shard()
	check(err)
	addHash(&r.line, shard)
}

func saveAB(r *rank, folder string) {
	c := checkpointOf(r)
	defer c.Close()
	for series, name := range []string{"a", "b"} {
		fill(addTensor[float32](c, name, zero.ScopeOne), series)
	}
	must(c.Save(background, folder))
}

func loadBC(r *rank, folder string) {
	refuses := checkpointOf(r)
	defer refuses.Close()
	addTensor[float32](refuses, "b", zero.ScopeOne)
	addTensor[float32](refuses, "c", zero.ScopeOne)
	_, err := refuses.Load(background, folder, zero.PartAll)
	r.addStatus(err)
	allows := checkpointOf(r, zero.Int(zero.KeyCheckpointMissing, 1), zero.Int(zero.KeyCheckpointExtra, 1))
	defer allows.Close()
	b := addTensor[float32](allows, "b", zero.ScopeOne)
	c := addTensor[float32](allows, "c", zero.ScopeOne)
	fill(c, 2)
	result := must(allows.Load(background, folder, zero.PartAll))
	r.add("%d %d", result.Missing, result.Extra)
	r.add("%s", strings.Join(strings.Fields(must(allows.Skipped())), " "))
	addHash(&r.line, b)
	addHash(&r.line, c)
}

func saveOld(r *rank, folder string) {
	m, c := sealed(r, 1), checkpointOf(r)
	defer m.optimizer.Close()
	defer c.Close()
	m.begin()
	m.train(0, steps)
	check(c.AddOptimizer("old.", m.optimizer))
	must(c.Save(background, folder))
}

func loadNew(r *rank, folder string) {
	m, c := sealed(r, 1), checkpointOf(r)
	defer m.optimizer.Close()
	defer c.Close()
	check(c.AddOptimizer("new.", m.optimizer))
	check(c.Rename("old.*", "new.*"))
	result := must(c.Load(background, folder, zero.PartParams))
	r.add("%d %d", result.Missing, result.Extra)
	m.saySteps()
	m.sayResult()
}

func saveInBackground(r *rank, folder string) {
	m, c := sealed(r, 2), checkpointOf(r)
	defer m.optimizer.Close()
	defer c.Close()
	m.begin()
	check(c.AddOptimizer("", m.optimizer))
	m.train(0, 1)
	saving := must(c.SaveAsync(background, folder))
	m.train(1, 3)
	if result := must(saving.Wait(background)); r.id == 0 {
		r.add("%d", result.Step)
	}
}

func resumeAlone(r *rank, folder string) {
	m := sealed(r, 1)
	defer m.optimizer.Close()
	m.resume(folder)
	m.saySteps()
	m.sayResult()
}

// saveTwice saves after each of two steps.
func saveTwice(r *rank, folder string) {
	m := sealed(r, 1)
	defer m.optimizer.Close()
	m.begin()
	for t := 0; t < 2; t++ {
		m.train(t, t+1)
		check(m.optimizer.Save(background, folder))
	}
}

// namesOf returns the names of saves, newest first, which stand at the beginnings of the lines of the list.
func namesOf(folder string) []string {
	var names []string
	for _, one := range strings.Split(must(zero.ListSaves(folder, zero.TextPlain)), "\n") {
		if words := strings.Fields(one); len(words) > 0 {
			names = append(names, words[0])
		}
	}
	return names
}

func compareSaves(r *rank, folder string) {
	names := namesOf(folder)
	newest := must(zero.OpenSave(filepath.Join(folder, names[0])))
	defer newest.Close()
	older := must(zero.OpenSave(filepath.Join(folder, names[1])))
	defer older.Close()
	r.add("%d", len(names))
	r.addStatus(newest.Verify())
	r.add("%d %d", must(newest.Compare(older)), must(newest.Compare(newest)))
}

func removeSaves(r *rank, folder string) {
	names := namesOf(folder)
	r.add("%d", len(must(zero.PrunableSaves(folder, 1))))
	for _, i := range []int{1, 0, 1} {
		r.addStatus(zero.RemoveSave(folder, names[i]))
	}
}

func findNothing(r *rank, folder string) {
	m, c := sealed(r, 1), checkpointOf(r)
	defer m.optimizer.Close()
	defer c.Close()
	check(c.AddOptimizer("", m.optimizer))
	_, err := zero.OpenSave(folder)
	r.addStatus(err)
	_, err = c.Load(background, folder, zero.PartAll)
	r.addStatus(err)
	_, beforeBegin := c.Save(background, folder)
	m.begin()
	_, err = c.Save(background, filepath.Join(folder, "no"))
	r.addStatus(err)
	r.addStatus(beforeBegin)
}

func stop(r *rank) {
	m := sealed(r, 1)
	defer m.optimizer.Close()
	m.begin()
	for t := 0; t < 4; t++ {
		if t == 2 && r.id == 1 {
			check(m.optimizer.RequestStop(7))
		}
		m.train(t, t+1)
		if t >= 2 {
			r.add("%d", m.result.StopReason)
		}
	}
}
