// Package classifier is the model and the data of the programs in cmd, and knows nothing of libzero: a perceptron that tells 10 clouds of
// points in 32 dimensions apart.
package classifier

import (
	"fmt"
	"math/rand"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

const (
	dimensions = 32
	classes    = 10
)

// Sizes of the layers of a model, the input first.
var Sizes = []int{dimensions, 512, 512, classes}

// Batch is a batch of points with the classes they belong to.
type Batch struct {
	points, classes []float32
	count           int
}

// NewBatch draws the batch of a step; all programs and ranks draw the same.
func NewBatch(step, count int) Batch {
	centres := rand.New(rand.NewSource(1))
	var centre [classes][dimensions]float32
	for c := range centre {
		for d := range centre[c] {
			centre[c][d] = float32(centres.NormFloat64())
		}
	}
	random := rand.New(rand.NewSource(int64(1000 + step)))
	batch := Batch{make([]float32, count*dimensions), make([]float32, count*classes), count}
	for i := 0; i < count; i++ {
		class := random.Intn(classes)
		batch.classes[i*classes+class] = 1
		for d := 0; d < dimensions; d++ {
			batch.points[i*dimensions+d] = centre[class][d] + 2*float32(random.NormFloat64())
		}
	}
	return batch
}

// Part is one of so many equal parts.
func (b Batch) Part(rank, ranks int) Batch {
	count := b.count / ranks
	first := rank * count
	return Batch{b.points[first*dimensions : (first+count)*dimensions], b.classes[first*classes : (first+count)*classes], count}
}

// Model is a graph with its machine.
type Model struct {
	Params          []gorgonia.ValueGrad
	points, classes *gorgonia.Node
	loss            gorgonia.Value
	machine         gorgonia.VM
}

// NewModel makes a model for batches of count points; its first values follow from the seed.
func NewModel(count int, seed int64) (*Model, error) {
	g := gorgonia.NewGraph()
	m := &Model{
		points:  gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(count, dimensions), gorgonia.WithName("points")),
		classes: gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(count, classes), gorgonia.WithName("classes")),
	}
	random := rand.New(rand.NewSource(seed))
	layer := m.points
	var params gorgonia.Nodes
	for i := 1; i < len(Sizes); i++ {
		weight := newMatrix(g, fmt.Sprint("weight", i), Sizes[i-1], Sizes[i], random)
		bias := newMatrix(g, fmt.Sprint("bias", i), 1, Sizes[i], nil)
		params = append(params, weight, bias)
		layer = gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(layer, weight)), bias, nil, []byte{0}))
		if i+1 < len(Sizes) {
			layer = gorgonia.Must(gorgonia.Tanh(layer))
		}
	}
	chosen := gorgonia.Must(gorgonia.HadamardProd(gorgonia.Must(gorgonia.LogSoftMax(layer)), m.classes))
	loss := gorgonia.Must(gorgonia.Neg(gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Sum(chosen, 1))))))
	gorgonia.Read(loss, &m.loss)
	if _, err := gorgonia.Grad(loss, params...); err != nil {
		return nil, err
	}
	m.machine = gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(params...))
	m.Params = gorgonia.NodesToValueGrads(params)
	return m, nil
}

// newMatrix is a parameter of normal values, or zeros without a source of them.
func newMatrix(g *gorgonia.ExprGraph, name string, rows, columns int, random *rand.Rand) *gorgonia.Node {
	values := make([]float32, rows*columns)
	for i := range values {
		if random != nil {
			values[i] = float32(random.NormFloat64() / 16)
		}
	}
	dense := tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(values))
	return gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(rows, columns), gorgonia.WithName(name), gorgonia.WithValue(dense))
}

// Run computes loss and gradients of a batch, which has as many points as the model is for.
func (m *Model) Run(batch Batch) (loss float32, err error) {
	defer m.machine.Reset()
	points := tensor.New(tensor.WithShape(batch.count, dimensions), tensor.WithBacking(batch.points))
	if err = gorgonia.Let(m.points, points); err != nil {
		return 0, err
	}
	known := tensor.New(tensor.WithShape(batch.count, classes), tensor.WithBacking(batch.classes))
	if err = gorgonia.Let(m.classes, known); err != nil {
		return 0, err
	}
	if err = m.machine.RunAll(); err != nil {
		return 0, err
	}
	return m.loss.Data().(float32), nil
}
