package main

import (
	"math"
	"testing"
)

// productByDefinition is productAdd without tiles.
func productByDefinition(rows, columns int, a strided, b right, c []float32, cRow int) {
	for m := 0; m < rows; m++ {
		for n := 0; n < columns; n++ {
			sum := c[m*cRow+n]
			for s := 0; s < b.segments; s++ {
				for k := 0; k < b.terms; k++ {
					sum += float32(a.data[m*a.row+s*a.segment+k*a.term] * b.data[s*b.segment+k*b.row+n])
				}
			}
			c[m*cRow+n] = sum
		}
	}
}

func noise(count int, seed uint64) []float32 {
	values := make([]float32, count)
	state := stream(seed, 0)
	for i := range values {
		values[i] = float32(state.next()>>40)/8388608 - 1
	}
	return values
}

func TestProductHasTheBitsOfItsDefinition(t *testing.T) {
	for rows := 0; rows <= 5; rows++ {
		for columns := 0; columns <= 10; columns++ {
			for segments := 0; segments <= 2; segments++ {
				a := strided{noise(100, 1), 3, 20, 2}
				b := right{noise(200, 2), segments, 7, 90, 12}
				got, want := noise(60, 3), noise(60, 3)
				productAdd(rows, columns, a, b, got, 11)
				productByDefinition(rows, columns, a, b, want, 11)
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("%d x %d, %d segments: element %d is %v, want %v", rows, columns, segments, i, got[i], want[i])
					}
				}
			}
		}
	}
}

// network is a model with parameters of its own and a batch of noise.
type network struct {
	*model
	params [layers][2][]float32
	data   *dataset
}

func newNetwork() network {
	const samples = 3
	n := network{model: newModel(samples), data: &dataset{images: make([]uint8, samples*imagePixels), labels: []uint8{1, 7, 1}}}
	for i, value := range noise(len(n.data.images), 4) {
		n.data.images[i] = uint8(128 + 127*value)
	}
	for layer := range n.params {
		for i := range n.params[layer] {
			count := 1
			for _, extent := range tensors[2*layer+i].shape {
				count *= extent
			}
			n.params[layer][i] = make([]float32, count)
		}
		firstValues(layer, 1, n.params[layer][0], n.params[layer][1])
	}
	return n
}

func (n network) mean() float64 {
	n.begin(n.data, []int{0, 1, 2})
	for layer, param := range n.params {
		n.forward(layer, param[0], param[1])
	}
	total, _ := n.loss()
	return total / 3
}

// Slopes are measured over a width in which some maxima change hands, hence the bound.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	n := newNetwork()
	n.mean()
	var grads [layers][2][]float32
	for layer := layers - 1; layer >= 0; layer-- {
		for i, param := range n.params[layer] {
			grads[layer][i] = make([]float32, len(param))
		}
		n.backward(layer, n.params[layer][0], grads[layer][0], grads[layer][1])
	}
	const width = 1.0 / 1024
	for layer, param := range n.params {
		for i, values := range param {
			for at := 0; at < len(values); at += len(values)/7 + 1 {
				kept := values[at]
				values[at] = kept + width
				above := n.mean()
				values[at] = kept - width
				below := n.mean()
				values[at] = kept
				want := (above - below) / (2 * width)
				if got := float64(grads[layer][i][at]); math.Abs(got-want) > 1e-2+0.02*math.Abs(want) {
					t.Errorf("%s[%d]: gradient is %v, want about %v", tensors[2*layer+i].name, at, got, want)
				}
			}
		}
	}
}

func TestASamplerGivesEverySampleOncePerEpoch(t *testing.T) {
	s := newSampler(10, 4, 1)
	var epochs [2][10]int
	for step := 0; step < 6; step++ {
		samples := s.of(step)
		if want := []int{4, 4, 2}[step%3]; len(samples) != want {
			t.Errorf("step %d has %d samples, want %d", step, len(samples), want)
		}
		for _, sample := range samples {
			epochs[step/3][sample]++
		}
	}
	for _, epoch := range epochs {
		if epoch != [10]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
			t.Errorf("samples were drawn %v times", epoch)
		}
	}
}
