package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"os"

	zero "example.org/libzero/bindings/go"
)

var (
	ranks  = flag.Int("ranks", 4, "ranks, each a goroutine; not under a launcher (mpirun, srun, torchrun), whose ranks count")
	stage  = flag.Int("stage", 3, "what is sharded: 0 nothing, 1 optimizer states, 2 + gradients, 3 + parameters")
	epochs = flag.Int("epochs", 1, "passes over the images")
	batch  = flag.Int("batch", 192, "samples per step of all ranks together")
	limit  = flag.Int("limit", 0, "train on the first images only; 0 = all")
	lr     = flag.Float64("lr", 0.004, "first learning rate, falling to 0 over all epochs")
	seed   = flag.Uint64("seed", 1, "of first values and shuffles")
	losses = flag.String("losses", "", "file for the loss of every step, one per line")
	data   = flag.String("data", "/usr/share/datasets/fashion-mnist", "folder of the *-ubyte.gz files")
)

// trainer is one rank.
type trainer struct {
	ctx         context.Context
	train, test *dataset
	launched    bool // by a launcher, which knows the ranks
	group       *zero.Group
	rank, size  int
	optimizer   *zero.Optimizer
	model       *model
}

func (t *trainer) run() {
	t.openGroup()
	defer t.group.Close()
	t.buildOptimizer()
	defer t.optimizer.Close()
	t.model = newModel(max((*batch+t.size-1)/t.size, 32)) // so many that evaluation does not crawl when batches are tiny
	t.fit()
	if accuracy, hash := t.evaluate(), t.hash(); t.rank == 0 {
		fmt.Printf("accuracy=%.2f hash=%016x\n", accuracy, hash)
	}
}

func (t *trainer) openGroup() {
	if t.launched {
		t.group = must(zero.CreateEnv(t.ctx, nil))
		t.rank, t.size = must(t.group.Rank()), must(t.group.Size())
	} else {
		t.group = must(zero.CreateLocal(t.ctx, fmt.Sprintf("train_fashion.%d", os.Getpid()), t.rank, t.size, nil))
	}
}

// buildOptimizer registers the parameters. Rank 0 writes their first values, the others receive their part of them.
func (t *trainer) buildOptimizer() {
	config := must(zero.NewConfig(zero.Int(zero.KeyStage, *stage), zero.Int(zero.KeyBucketBytes, 65536),
		zero.Int(zero.KeyDivisor, zero.DivisorWeights)))
	defer config.Close()
	t.optimizer = must(zero.NewOptimizer(t.group, config))
	for _, tensor := range tensors {
		must(t.optimizer.AddParam(tensor.name, zero.DTypeF32, tensor.shape, nil))
	}
	check(t.optimizer.Seal(t.ctx))
	for layer := 0; t.rank == 0 && layer < layers; layer++ {
		t.use(layer, func(weight, bias []float32) { firstValues(layer, *seed, weight, bias) })
	}
	check(t.optimizer.Begin(t.ctx, zero.SourceRoot))
}

// use lends the parameters of a layer. In stage 3 they are gathered now, so all ranks do this alike, with or without samples.
func (t *trainer) use(layer int, body func(weight, bias []float32)) {
	body(must(zero.Acquire[float32](t.ctx, t.optimizer, 2*layer)), must(zero.Acquire[float32](t.ctx, t.optimizer, 2*layer+1)))
	check(t.optimizer.Release(2 * layer))
	check(t.optimizer.Release(2*layer + 1))
}

// grad returns where to add a gradient.
func (t *trainer) grad(id int) []float32 {
	grad, add, err := zero.AcquireGrad[float32](t.ctx, t.optimizer, id)
	check(err)
	if !add {
		clear(grad)
	}
	return grad
}

// fit takes all steps; rank 0 records the losses.
func (t *trainer) fit() {
	record := newRecord(*losses, t.rank == 0)
	sampler := newSampler(t.train.count(), *batch, *seed)
	steps := sampler.stepsPerEpoch() * *epochs
	for step := 0; step < steps; step++ {
		check(t.optimizer.SetF64(0, zero.KeyLR, *lr*(1-float64(step)/float64(steps))))
		record.add(t.step(sampler.of(step)))
	}
	record.close()
}

// step returns the mean loss over the samples of all ranks. The gradient of a rank is the mean over its share, which counts by its samples.
func (t *trainer) step(samples []int) float64 {
	offset, count, err := t.group.Share(len(samples), t.rank)
	check(err)
	check(t.optimizer.SetWeight(float64(count)))
	loss, _ := t.forward(t.train, samples[offset:offset+count])
	for layer := layers - 1; layer >= 0; layer-- {
		t.use(layer, func(weight, _ []float32) { t.model.backward(layer, weight, t.grad(2*layer), t.grad(2*layer+1)) })
		check(t.optimizer.GradReady(t.ctx, 2*layer+1)) // libzero may reduce them from now on
		check(t.optimizer.GradReady(t.ctx, 2*layer))
	}
	sum := []float64{loss}
	check(zero.AllReduce(t.ctx, t.group, sum, sum, zero.Sum))
	if must(t.optimizer.Step(t.ctx)).Skipped {
		log.Fatal("a gradient is not finite; try a smaller -lr")
	}
	return sum[0] / float64(len(samples))
}

func (t *trainer) forward(data *dataset, samples []int) (loss float64, correct int) {
	t.model.begin(data, samples)
	for layer := 0; layer < layers; layer++ {
		t.use(layer, func(weight, bias []float32) { t.model.forward(layer, weight, bias) })
	}
	return t.model.loss()
}

// evaluate returns the percentage of the test images classified correctly. Each rank looks at its share.
func (t *trainer) evaluate() float64 {
	offset, count, err := t.group.Share(t.test.count(), t.rank)
	check(err)
	correct := []int64{0}
	for done := 0; done*t.size < t.test.count(); done += t.model.capacity {
		_, right := t.forward(t.test, numbers(offset+done, offset+min(done+t.model.capacity, count)))
		correct[0] += int64(right)
	}
	check(zero.AllReduce(t.ctx, t.group, correct, correct, zero.Sum))
	return 100 * float64(correct[0]) / float64(t.test.count())
}

// hash returns the FNV-1a hash of all parameters.
func (t *trainer) hash() uint64 {
	hash := fnv.New64a()
	for layer := 0; layer < layers; layer++ {
		t.use(layer, func(weight, bias []float32) { addBytes(hash, weight, bias) })
	}
	return hash.Sum64()
}
