package main

import "math"

const (
	imageSide   = 28
	imagePixels = imageSide * imageSide
	classes     = 10
	layers      = 4

	kernel    = 3
	channels1 = 8
	channels2 = 16
	pooled2   = imageSide / 4 * (imageSide / 4) * channels2
	hidden    = 64
)

// tensor is a parameter of the model: weight 2l and bias 2l+1 of layer l. Weights are stored input-major: [kernel row][kernel
// column][input][output] or [input][output].
type tensor struct {
	name  string
	shape []int
}

var tensors = []tensor{
	{"conv1.weight", []int{kernel, kernel, 1, channels1}},
	{"conv1.bias", []int{channels1}},
	{"conv2.weight", []int{kernel, kernel, channels1, channels2}},
	{"conv2.bias", []int{channels2}},
	{"dense1.weight", []int{pooled2, hidden}},
	{"dense1.bias", []int{hidden}},
	{"dense2.weight", []int{hidden, classes}},
	{"dense2.bias", []int{classes}},
}

// firstValues fills the parameters of a layer: the weight uniform with the variance 2 / inputs (He et al., "Delving Deep into Rectifiers",
// 2015), the bias zero.
func firstValues(layer int, seed uint64, weight, bias []float32) {
	inputs := len(weight) / len(bias)
	bound := float32(math.Sqrt(6.0 / float64(inputs)))
	state := stream(seed, uint64(2*layer))
	for i := range weight {
		weight[i] = (float32(state.next()>>40)/8388608 - 1) * bound
	}
	clear(bias)
}

// conv is a convolution of kernel 3 that keeps the image's size, then the maximum over 2 x 2 pixels, then max(0, x). Its input has a border
// of one zero pixel.
type conv struct{ side, inputs, outputs int }

var (
	conv1 = conv{imageSide, 1, channels1}
	conv2 = conv{imageSide / 2, channels1, channels2}
)

// padded returns the elements of a square image with a border of one pixel.
func padded(side, channels int) int { return (side + 2) * (side + 2) * channels }

// pooled returns the elements of the output.
func (c conv) pooled() int { return c.side / 2 * (c.side / 2) * c.outputs }

// model is the classifier of 28 x 28 images with its own forward and backward, layer by layer over a batch of samples. It knows nothing of
// ranks or of libzero; parameters and gradients are its caller's. Sums run in a fixed order, so equal inputs give equal bits.
type model struct {
	capacity int // samples at once
	labels   []uint8
	input    []float32 // [sample] padded image
	pooled1  []float32 // [sample] padded, the input of conv2
	pooled2  []float32 // [sample][pooled2]
	hidden   []float32 // [sample][hidden]
	logits   []float32 // [sample][classes]

	gradient1, gradient2, gradient3, gradient4 []float32 // of pooled1 (not padded), pooled2, hidden, logits

	full           []float32 // one sample: a convolution's output before pooling, or its gradient, padded
	turned         []float32 // weights transposed for the gradient of a layer's input
	picks1, picks2 []uint8   // which of four pixels was the maximum
}

// newModel makes a model of up to capacity samples at once.
func newModel(capacity int) *model {
	floats := func(perSample int) []float32 { return make([]float32, capacity*perSample) }
	return &model{
		capacity: capacity,
		input:    floats(padded(imageSide, 1)), pooled1: floats(padded(conv2.side, channels1)), pooled2: floats(pooled2),
		hidden: floats(hidden), logits: floats(classes),
		gradient1: floats(conv1.pooled()), gradient2: floats(pooled2), gradient3: floats(hidden), gradient4: floats(classes),
		full: make([]float32, padded(imageSide, channels1)), turned: make([]float32, pooled2*hidden),
		picks1: make([]uint8, capacity*conv1.pooled()), picks2: make([]uint8, capacity*conv2.pooled()),
	}
}

// begin takes the samples of a batch.
func (m *model) begin(data *dataset, samples []int) {
	m.labels = m.labels[:0]
	for s, sample := range samples {
		m.labels = append(m.labels, data.labels[sample])
		to := of(m.input, padded(imageSide, 1), s)
		for i, pixel := range data.image(sample) {
			to[(i/imageSide+1)*(imageSide+2)+i%imageSide+1] = float32(pixel) / 256
		}
	}
}

// of returns the part of an array that belongs to a sample.
func of[T any](array []T, perSample, sample int) []T { return array[sample*perSample:][:perSample] }

func clear(values []float32) {
	for i := range values {
		values[i] = 0
	}
}

// forward computes a layer of all samples; layers run from 0 on.
func (m *model) forward(layer int, weight, bias []float32) {
	count := len(m.labels)
	switch layer {
	case 0:
		for s := 0; s < count; s++ {
			m.convForward(conv1, of(m.input, padded(imageSide, 1), s), weight, bias, m.inner1(s), inner1Row, of(m.picks1, conv1.pooled(), s))
		}
	case 1:
		for s := 0; s < count; s++ {
			in := of(m.pooled1, padded(conv2.side, channels1), s)
			m.convForward(conv2, in, weight, bias, of(m.pooled2, pooled2, s), conv2.side/2*channels2, of(m.picks2, pooled2, s))
		}
	case 2:
		denseForward(count, pooled2, hidden, m.pooled2, weight, bias, m.hidden)
		for i := range m.hidden[:count*hidden] {
			m.hidden[i] = positive(m.hidden[i])
		}
	case 3:
		denseForward(count, hidden, classes, m.hidden, weight, bias, m.logits)
	}
}

// inner1Row is a row of pooled1 with its border.
const inner1Row = (imageSide/2 + 2) * channels1

// inner1 is pooled1 of a sample from its first pixel inside of the border on.
func (m *model) inner1(sample int) []float32 {
	return of(m.pooled1, padded(conv2.side, channels1), sample)[inner1Row+channels1:]
}

func positive(x float32) float32 {
	if x > 0 {
		return x
	}
	return 0
}

// loss returns the sum over the samples of the cross-entropy, and how many were classified correctly.
func (m *model) loss() (total float64, correct int) {
	for s, label := range m.labels {
		z := of(m.logits, classes, s)
		best := 0
		for i := range z {
			if z[i] > z[best] {
				best = i
			}
		}
		sum := 0.0
		for _, value := range z {
			sum += math.Exp(float64(value) - float64(z[best]))
		}
		total += math.Log(sum) + float64(z[best]) - float64(z[label])
		if best == int(label) {
			correct++
		}
	}
	return total, correct
}

// backward adds to both gradients those of the mean of the cross-entropies; layers run from the last to 0.
func (m *model) backward(layer int, weight, weightGrad, biasGrad []float32) {
	switch layer {
	case 3:
		m.lossBackward()
		m.denseBackward(hidden, classes, m.hidden, m.gradient4, weight, m.gradient3, weightGrad, biasGrad)
	case 2:
		for i := range m.gradient3[:len(m.labels)*hidden] {
			if !(m.hidden[i] > 0) {
				m.gradient3[i] = 0
			}
		}
		m.denseBackward(pooled2, hidden, m.pooled2, m.gradient3, weight, m.gradient2, weightGrad, biasGrad)
	case 1:
		m.conv2Backward(weight, weightGrad, biasGrad)
	case 0:
		m.conv1Backward(weightGrad, biasGrad)
	}
}

// lossBackward sets gradient4 to (softmax - one at the label) / samples.
func (m *model) lossBackward() {
	for s, label := range m.labels {
		z, g := of(m.logits, classes, s), of(m.gradient4, classes, s)
		top := z[0]
		for _, value := range z {
			if value > top {
				top = value
			}
		}
		sum := 0.0
		for _, value := range z {
			sum += math.Exp(float64(value) - float64(top))
		}
		for i, value := range z {
			target := 0.0
			if i == int(label) {
				target = 1
			}
			g[i] = float32((math.Exp(float64(value)-float64(top))/sum - target) / float64(len(m.labels)))
		}
	}
}

func (m *model) conv2Backward(weight, weightGrad, biasGrad []float32) {
	clear(m.full[:padded(conv2.side, channels2)])
	turnKernels(conv2, weight, m.turned)
	for s := range m.labels {
		inGrad := of(m.gradient1, conv1.pooled(), s)
		conv2.unpool(of(m.gradient2, pooled2, s), of(m.pooled2, pooled2, s), conv2.side/2*channels2, of(m.picks2, pooled2, s), m.full)
		conv2.weightGrad(of(m.pooled1, padded(conv2.side, channels1), s), m.full, weightGrad, biasGrad)
		clear(inGrad)
		convolve(conv2.side, channels2, channels1, m.full, m.turned, inGrad, conv2.side*channels1)
	}
}

func (m *model) conv1Backward(weightGrad, biasGrad []float32) {
	clear(m.full[:padded(imageSide, channels1)])
	for s := range m.labels {
		conv1.unpool(of(m.gradient1, conv1.pooled(), s), m.inner1(s), inner1Row, of(m.picks1, conv1.pooled(), s), m.full)
		conv1.weightGrad(of(m.input, padded(imageSide, 1), s), m.full, weightGrad, biasGrad)
	}
}

// convForward does one sample: convolution, bias, pooling.
func (m *model) convForward(c conv, in, weight, bias, out []float32, outRow int, picks []uint8) {
	for pixel := 0; pixel < c.side*c.side; pixel++ {
		copy(m.full[pixel*c.outputs:], bias)
	}
	convolve(c.side, c.inputs, c.outputs, in, weight, m.full, c.side*c.outputs)
	c.pool(m.full, out, outRow, picks)
}

// convolve adds to out, whose rows are outRow apart, the convolution of a padded image with kernels [3][3][inputs][outputs].
func convolve(side, inputs, outputs int, in, kernels, out []float32, outRow int) {
	inRow := (side + 2) * inputs
	factors := right{kernels, kernel, kernel * inputs, kernel * inputs * outputs, outputs}
	for y := 0; y < side; y++ {
		window := strided{in[y*inRow:], inputs, inRow, 1}
		productAdd(side, outputs, window, factors, out[y*outRow:], outputs)
	}
}

// pool takes the maximum over 2 x 2 pixels, of equal ones the first, then max(0, x).
func (c conv) pool(full, out []float32, outRow int, picks []uint8) {
	row := c.side * c.outputs
	for pixel := 0; pixel < c.pooled()/c.outputs; pixel++ {
		y, x := pixel/(c.side/2), pixel%(c.side/2)
		from := full[2*y*row+2*x*c.outputs:]
		to, pick := out[y*outRow+x*c.outputs:], picks[pixel*c.outputs:]
		for i := 0; i < c.outputs; i++ {
			best, at := from[i], uint8(0)
			for k, value := range [...]float32{from[i+c.outputs], from[i+row], from[i+row+c.outputs]} {
				if value > best {
					best, at = value, uint8(k+1)
				}
			}
			to[i], pick[i] = positive(best), at
		}
	}
}

// unpool undoes pool for a gradient, which goes to the pixel that was picked unless its output was cut at 0. full is padded; out is what pool
// wrote.
func (c conv) unpool(gradient, out []float32, outRow int, picks []uint8, full []float32) {
	row := (c.side + 2) * c.outputs
	places := [...]int{0, c.outputs, row, row + c.outputs}
	for pixel := 0; pixel < c.pooled()/c.outputs; pixel++ {
		y, x := pixel/(c.side/2), pixel%(c.side/2)
		to := full[(2*y+1)*row+(2*x+1)*c.outputs:]
		for i := 0; i < c.outputs; i++ {
			for _, place := range places {
				to[place+i] = 0
			}
			if out[y*outRow+x*c.outputs+i] > 0 {
				to[places[picks[pixel*c.outputs+i]]+i] = gradient[pixel*c.outputs+i]
			}
		}
	}
}

// weightGrad adds the gradients of weight and bias of one sample, whose padded gradient is in full.
func (c conv) weightGrad(in, full, weightGrad, biasGrad []float32) {
	inRow, fullRow := (c.side+2)*c.inputs, (c.side+2)*c.outputs
	first := full[fullRow+c.outputs:]
	for ky := 0; ky < kernel; ky++ {
		turned := strided{in[ky*inRow:], 1, inRow, c.inputs}
		factors := right{first, c.side, c.side, fullRow, c.outputs}
		productAdd(kernel*c.inputs, c.outputs, turned, factors, weightGrad[ky*kernel*c.inputs*c.outputs:], c.outputs)
	}
	for y := 0; y < c.side; y++ {
		for x := 0; x < c.side; x++ {
			for i := range biasGrad {
				biasGrad[i] += first[y*fullRow+x*c.outputs+i]
			}
		}
	}
}

// turnKernels makes kernels for the gradient of a convolution's input: rotated by half a turn, inputs and outputs swapped.
func turnKernels(c conv, weight, turned []float32) {
	for k := 0; k < kernel*kernel; k++ {
		from := weight[(kernel*kernel-1-k)*c.inputs*c.outputs:]
		for i := 0; i < c.inputs; i++ {
			for o := 0; o < c.outputs; o++ {
				turned[(k*c.outputs+o)*c.inputs+i] = from[i*c.outputs+o]
			}
		}
	}
}

// denseForward: out[sample][outputs] = in[sample][inputs] * weight + bias.
func denseForward(count, inputs, outputs int, in, weight, bias, out []float32) {
	for s := 0; s < count; s++ {
		copy(of(out, outputs, s), bias)
	}
	productAdd(count, outputs, strided{in, inputs, 0, 1}, right{weight, 1, inputs, 0, outputs}, out, outputs)
}

// denseBackward adds the gradients of a dense layer's weight and bias, and sets that of its input.
func (m *model) denseBackward(inputs, outputs int, in, outGrad, weight, inGrad, weightGrad, biasGrad []float32) {
	count := len(m.labels)
	for s := 0; s < count; s++ {
		for o, value := range of(outGrad, outputs, s) {
			biasGrad[o] += value
		}
	}
	productAdd(inputs, outputs, strided{in, 1, 0, inputs}, right{outGrad, 1, count, 0, outputs}, weightGrad, outputs)
	for i := 0; i < inputs; i++ {
		for o := 0; o < outputs; o++ {
			m.turned[o*inputs+i] = weight[i*outputs+o]
		}
	}
	clear(inGrad[:count*inputs])
	productAdd(count, inputs, strided{outGrad, outputs, 0, 1}, right{m.turned, 1, outputs, 0, inputs}, inGrad, inputs)
}
