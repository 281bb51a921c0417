//! A convolutional classifier of 28 x 28 images with its own forward and backward, layer by layer over a batch of samples. Knows nothing of
//! ranks or of libzero. Sums run over samples and pixels in a fixed order, so equal inputs give equal bits.

mod product;

use crate::data::{Dataset, Random};
use product::{product_add, Extents, Left, Right};

pub const SIDE: usize = 28;
pub const PIXELS: usize = SIDE * SIDE;
pub const CLASSES: usize = 10;
pub const LAYERS: usize = 4;

const KERNEL: usize = 3;
const POOLED: usize = SIDE / 4 * (SIDE / 4) * 16;
const HIDDEN: usize = 64;

/// Names and shapes of weight and bias, layer by layer. Weights are stored input-major: [kernel row][kernel column][input][output] or
/// [input][output].
pub const TENSORS: [(&str, &[i64]); 2 * LAYERS] = [
    ("conv1.weight", &[3, 3, 1, 8]),
    ("conv1.bias", &[8]),
    ("conv2.weight", &[3, 3, 8, 16]),
    ("conv2.bias", &[16]),
    ("dense1.weight", &[POOLED as i64, HIDDEN as i64]),
    ("dense1.bias", &[HIDDEN as i64]),
    ("dense2.weight", &[HIDDEN as i64, CLASSES as i64]),
    ("dense2.bias", &[CLASSES as i64]),
];

/// A convolution of kernel 3 that keeps the image's size, then the maximum over 2 x 2 pixels, then max(0, x).
#[derive(Clone, Copy)]
struct Conv {
    /// Of the input, in pixels.
    side: usize,
    inputs: usize,
    outputs: usize,
}

const CONV1: Conv = Conv { side: SIDE, inputs: 1, outputs: 8 };
const CONV2: Conv = Conv { side: SIDE / 2, inputs: 8, outputs: 16 };

/// Elements of an image with a border of one zero pixel around it.
const fn padded(side: usize, channels: usize) -> usize {
    (side + 2) * (side + 2) * channels
}

impl Conv {
    const fn pooled(self) -> usize {
        self.side / 2 * (self.side / 2) * self.outputs
    }

    const fn padded_input(self) -> usize {
        padded(self.side, self.inputs)
    }
}

/// Where the first pixel of conv2's padded input lies, and how far apart its rows are.
const POOLED1_ROW: usize = (CONV2.side + 2) * CONV2.inputs;
const POOLED1_FIRST: usize = POOLED1_ROW + CONV2.inputs;
const POOLED2_ROW: usize = SIDE / 4 * CONV2.outputs;

/// First values of a tensor: weights uniform with the variance 2 / inputs (He et al., "Delving Deep into Rectifiers", 2015), biases zero.
pub fn first_values(tensor: usize, seed: u64, out: &mut [f32]) {
    let (_, shape) = TENSORS[tensor];
    out.fill(0.0);
    if shape.len() == 1 {
        return;
    }
    let inputs = out.len() / shape[shape.len() - 1] as usize;
    let bound = (6.0 / inputs as f64).sqrt() as f32;
    let mut random = Random::new(seed, tensor as u64);
    for value in out {
        *value = ((random.next() >> 40) as f32 / 8_388_608.0 - 1.0) * bound;
    }
}

/// FNV-1a of values, going on from the hash of those before.
pub fn hash(before: u64, values: &[f32]) -> u64 {
    let bytes = values.iter().flat_map(|value| value.to_ne_bytes());
    bytes.fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a hash begins with.
pub const FIRST_HASH: u64 = 0xcbf2_9ce4_8422_2325;

/// Activations of up to a capacity of samples.
pub struct Model {
    pub capacity: usize,
    count: usize,
    /// Of the gradient of the sum of losses.
    divisor: f64,
    labels: Vec<u8>,
    input: Vec<f32>,
    pooled1: Vec<f32>,
    pooled2: Vec<f32>,
    hidden: Vec<f32>,
    logits: Vec<f32>,
    gradient1: Vec<f32>,
    gradient2: Vec<f32>,
    gradient3: Vec<f32>,
    gradient4: Vec<f32>,
    /// Which of four pixels was the maximum.
    picks1: Vec<u8>,
    picks2: Vec<u8>,
    /// One sample: output of a convolution before pooling, or its gradient, padded.
    full: Vec<f32>,
    /// Weights transposed for the gradient of a layer's input.
    turned: Vec<f32>,
}

impl Model {
    pub fn new(capacity: usize) -> Self {
        let zeros = |count: usize| vec![0f32; capacity * count];
        Model {
            capacity,
            count: 0,
            divisor: 0.0,
            labels: Vec::with_capacity(capacity),
            input: zeros(CONV1.padded_input()),
            pooled1: zeros(CONV2.padded_input()),
            pooled2: zeros(POOLED),
            hidden: zeros(HIDDEN),
            logits: zeros(CLASSES),
            gradient1: zeros(CONV1.pooled()),
            gradient2: zeros(POOLED),
            gradient3: zeros(HIDDEN),
            gradient4: zeros(CLASSES),
            picks1: vec![0; capacity * CONV1.pooled()],
            picks2: vec![0; capacity * CONV2.pooled()],
            full: vec![0.0; padded(CONV1.side, CONV1.outputs)],
            turned: vec![0.0; POOLED * HIDDEN],
        }
    }

    /// Takes samples of a data set; gradients are those of the mean loss over them.
    pub fn load(&mut self, data: &Dataset, samples: impl Iterator<Item = usize>) {
        self.labels.clear();
        for (sample, to) in samples.zip(self.input.chunks_mut(CONV1.padded_input())) {
            self.labels.push(data.labels[sample]);
            for (row, to) in data.image(sample).chunks(SIDE).zip(to.chunks_mut(SIDE + 2).skip(1)) {
                for (pixel, to) in row.iter().zip(&mut to[1..]) {
                    *to = f32::from(*pixel) / 256.0;
                }
            }
        }
        self.count = self.labels.len();
        self.divisor = self.count as f64;
    }

    /// Layer `layer` of all samples; layers run from 0 to LAYERS - 1.
    pub fn forward(&mut self, layer: usize, weight: &[f32], bias: &[f32]) {
        match layer {
            0 => self.conv1_forward(weight, bias),
            1 => self.conv2_forward(weight, bias),
            2 => {
                dense_forward(self.count, &self.pooled2, weight, bias, &mut self.hidden);
                self.hidden.iter_mut().for_each(|value| *value = if *value > 0.0 { *value } else { 0.0 });
            }
            _ => dense_forward(self.count, &self.hidden, weight, bias, &mut self.logits),
        }
    }

    /// After the last layer: sum over the samples of the cross-entropy, and how many were classified correctly.
    pub fn loss(&self) -> (f64, i64) {
        let (mut total, mut correct) = (0.0, 0);
        for (logits, &label) in self.logits.chunks(CLASSES).zip(&self.labels) {
            let mut best = 0;
            for class in 1..CLASSES {
                best = if logits[class] > logits[best] { class } else { best };
            }
            let top = f64::from(logits[best]);
            let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - top).exp()).sum();
            total += sum.ln() + top - f64::from(logits[usize::from(label)]);
            correct += i64::from(best == usize::from(label));
        }
        (total, correct)
    }

    /// The gradients of the mean of cross-entropies; layers run from LAYERS - 1 to 0.
    pub fn backward(&mut self, layer: usize, weight: &[f32], weight_grad: &mut [f32], bias_grad: &mut [f32]) {
        weight_grad.fill(0.0);
        bias_grad.fill(0.0);
        let grads = (weight_grad, bias_grad);
        match layer {
            0 => self.conv1_backward(grads),
            1 => self.conv2_backward(weight, grads),
            2 => {
                for (gradient, hidden) in self.gradient3.iter_mut().zip(&self.hidden) {
                    *gradient = if *hidden > 0.0 { *gradient } else { 0.0 };
                }
                let (turned, gradient2) = (&mut self.turned, &mut self.gradient2);
                dense_backward(self.count, &self.pooled2, &self.gradient3, weight, turned, gradient2, grads);
            }
            _ => {
                self.loss_backward();
                let (turned, gradient3) = (&mut self.turned, &mut self.gradient3);
                dense_backward(self.count, &self.hidden, &self.gradient4, weight, turned, gradient3, grads);
            }
        }
    }

    fn conv1_forward(&mut self, weight: &[f32], bias: &[f32]) {
        let samples = self.input.chunks(CONV1.padded_input()).zip(self.pooled1.chunks_mut(CONV2.padded_input()));
        for ((input, out), picks) in samples.zip(self.picks1.chunks_mut(CONV1.pooled())).take(self.count) {
            conv_forward(CONV1, input, (weight, bias), &mut self.full, (&mut out[POOLED1_FIRST..], POOLED1_ROW), picks);
        }
    }

    fn conv2_forward(&mut self, weight: &[f32], bias: &[f32]) {
        let samples = self.pooled1.chunks(CONV2.padded_input()).zip(self.pooled2.chunks_mut(POOLED));
        for ((input, out), picks) in samples.zip(self.picks2.chunks_mut(CONV2.pooled())).take(self.count) {
            conv_forward(CONV2, input, (weight, bias), &mut self.full, (out, POOLED2_ROW), picks);
        }
    }

    /// (softmax - one at the label) / divisor.
    fn loss_backward(&mut self) {
        let samples = self.logits.chunks(CLASSES).zip(self.gradient4.chunks_mut(CLASSES));
        for ((logits, gradients), &label) in samples.zip(&self.labels) {
            let top = logits.iter().fold(f64::from(logits[0]), |top, &logit| if f64::from(logit) > top { f64::from(logit) } else { top });
            let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - top).exp()).sum();
            for (class, (gradient, &logit)) in gradients.iter_mut().zip(logits).enumerate() {
                let hit = f64::from(u8::from(class == usize::from(label)));
                *gradient = (((f64::from(logit) - top).exp() / sum - hit) / self.divisor) as f32;
            }
        }
    }

    fn conv2_backward(&mut self, weight: &[f32], (weight_grad, bias_grad): (&mut [f32], &mut [f32])) {
        let full = &mut self.full[..padded(CONV2.side, CONV2.outputs)];
        full.fill(0.0);
        turn_kernels(CONV2, weight, &mut self.turned);
        for s in 0..self.count {
            let own = s * POOLED..(s + 1) * POOLED;
            let in_grad = &mut self.gradient1[s * CONV1.pooled()..][..CONV1.pooled()];
            unpool(CONV2, &self.gradient2[own.clone()], (&self.pooled2[own.clone()], POOLED2_ROW), &self.picks2[own], full);
            conv_weight_grad(CONV2, &self.pooled1[s * CONV2.padded_input()..], full, weight_grad, bias_grad);
            in_grad.fill(0.0);
            let turned = Conv { side: CONV2.side, inputs: CONV2.outputs, outputs: CONV2.inputs };
            convolve(turned, full, &self.turned, in_grad);
        }
    }

    fn conv1_backward(&mut self, (weight_grad, bias_grad): (&mut [f32], &mut [f32])) {
        self.full.fill(0.0);
        for s in 0..self.count {
            let own = s * CONV1.pooled()..(s + 1) * CONV1.pooled();
            let out = &self.pooled1[s * CONV2.padded_input() + POOLED1_FIRST..];
            unpool(CONV1, &self.gradient1[own.clone()], (out, POOLED1_ROW), &self.picks1[own], &mut self.full);
            conv_weight_grad(CONV1, &self.input[s * CONV1.padded_input()..], &self.full, weight_grad, bias_grad);
        }
    }
}

/// `out` += the convolution of a padded image with kernels [3][3][inputs][outputs].
fn convolve(conv: Conv, padded: &[f32], kernels: &[f32], out: &mut [f32]) {
    let row = (conv.side + 2) * conv.inputs;
    let out_row = conv.side * conv.outputs;
    let extents = Extents { rows: conv.side, columns: conv.outputs, segments: KERNEL, terms: KERNEL * conv.inputs };
    let right = Right { data: kernels, segment: KERNEL * conv.inputs * conv.outputs, row: conv.outputs };
    for y in 0..conv.side {
        let window = Left { data: &padded[y * row..], row: conv.inputs, segment: row, term: 1 };
        product_add(extents, window, right, &mut out[y * out_row..], conv.outputs);
    }
}

/// One sample: convolution, bias, pooling.
fn conv_forward(
    conv: Conv,
    padded: &[f32],
    (weight, bias): (&[f32], &[f32]),
    full: &mut [f32],
    out: (&mut [f32], usize),
    picks: &mut [u8],
) {
    let full = &mut full[..conv.side * conv.side * conv.outputs];
    full.chunks_mut(conv.outputs).for_each(|pixel| pixel.copy_from_slice(bias));
    convolve(conv, padded, weight, full);
    pool(conv, full, out, picks);
}

/// Maximum over 2 x 2 pixels, of equal ones the first, then max(0, x). Rows of `out` are `out_row` apart.
fn pool(conv: Conv, full: &[f32], (out, out_row): (&mut [f32], usize), picks: &mut [u8]) {
    let (row, half) = (conv.side * conv.outputs, conv.side / 2);
    for (pixel, picks) in picks.chunks_mut(conv.outputs).enumerate() {
        let (y, x) = (pixel / half, pixel % half);
        let from = &full[2 * y * row + 2 * x * conv.outputs..];
        let to = &mut out[y * out_row + x * conv.outputs..][..conv.outputs];
        for (i, (to, pick)) in to.iter_mut().zip(picks).enumerate() {
            let [a, b, c, d] = [from[i], from[i + conv.outputs], from[i + row], from[i + row + conv.outputs]];
            let top = if b > a { b } else { a };
            let low = if d > c { d } else { c };
            let best = if low > top { low } else { top };
            *to = if best > 0.0 { best } else { 0.0 };
            *pick = if low > top { 2 + u8::from(d > c) } else { u8::from(b > a) };
        }
    }
}

/// Undoes `pool` for a gradient: it goes to the pixel that was picked, unless its output was cut at 0. `full` is padded.
fn unpool(conv: Conv, gradient: &[f32], (out, out_row): (&[f32], usize), picks: &[u8], full: &mut [f32]) {
    let (row, half) = ((conv.side + 2) * conv.outputs, conv.side / 2);
    for (pixel, (gradient, picks)) in gradient.chunks(conv.outputs).zip(picks.chunks(conv.outputs)).enumerate() {
        let (y, x) = (pixel / half, pixel % half);
        let to = &mut full[(2 * y + 1) * row + (2 * x + 1) * conv.outputs..];
        let out = &out[y * out_row + x * conv.outputs..];
        for (i, (&gradient, &pick)) in gradient.iter().zip(picks).enumerate() {
            let value = if out[i] > 0.0 { gradient } else { 0.0 };
            let places = [i, i + conv.outputs, i + row, i + row + conv.outputs];
            for (place, number) in places.into_iter().zip(0u8..) {
                to[place] = if pick == number { value } else { 0.0 };
            }
        }
    }
}

/// One sample, after `unpool`: gradients of weight and bias from the padded gradient in `full`.
fn conv_weight_grad(conv: Conv, padded: &[f32], full: &[f32], weight_grad: &mut [f32], bias_grad: &mut [f32]) {
    let (in_row, full_row) = ((conv.side + 2) * conv.inputs, (conv.side + 2) * conv.outputs);
    let first = &full[full_row + conv.outputs..];
    let extents = Extents { rows: KERNEL * conv.inputs, columns: conv.outputs, segments: conv.side, terms: conv.side };
    for ky in 0..KERNEL {
        let turned = Left { data: &padded[ky * in_row..], row: 1, segment: in_row, term: conv.inputs };
        let right = Right { data: first, segment: full_row, row: conv.outputs };
        product_add(extents, turned, right, &mut weight_grad[ky * KERNEL * conv.inputs * conv.outputs..], conv.outputs);
    }
    for row in first.chunks(full_row).take(conv.side) {
        for pixel in row.chunks(conv.outputs).take(conv.side) {
            bias_grad.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// Kernels for the gradient of a convolution's input: rotated by half a turn, inputs and outputs swapped.
fn turn_kernels(conv: Conv, weight: &[f32], turned: &mut [f32]) {
    let kernels = weight.chunks(conv.inputs * conv.outputs).rev();
    for (from, to) in kernels.zip(turned.chunks_mut(conv.inputs * conv.outputs)) {
        transpose(conv.inputs, conv.outputs, from, to);
    }
}

fn transpose(rows: usize, columns: usize, from: &[f32], to: &mut [f32]) {
    for row in 0..rows {
        for column in 0..columns {
            to[column * rows + row] = from[row * columns + column];
        }
    }
}

/// out[sample][outputs] = in[sample][inputs] * weight + bias
fn dense_forward(count: usize, input: &[f32], weight: &[f32], bias: &[f32], out: &mut [f32]) {
    let (inputs, outputs) = (weight.len() / bias.len(), bias.len());
    out.chunks_mut(outputs).take(count).for_each(|row| row.copy_from_slice(bias));
    let extents = Extents { rows: count, columns: outputs, segments: 1, terms: inputs };
    let rows = Left { data: input, row: inputs, segment: 0, term: 1 };
    product_add(extents, rows, Right { data: weight, segment: 0, row: outputs }, out, outputs);
}

/// Gradients of a dense layer; `in_grad` is overwritten.
fn dense_backward(
    count: usize,
    input: &[f32],
    out_grad: &[f32],
    weight: &[f32],
    turned: &mut [f32],
    in_grad: &mut [f32],
    (weight_grad, bias_grad): (&mut [f32], &mut [f32]),
) {
    let (inputs, outputs) = (weight.len() / bias_grad.len(), bias_grad.len());
    for row in out_grad.chunks(outputs).take(count) {
        bias_grad.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let extents = Extents { rows: inputs, columns: outputs, segments: 1, terms: count };
    let columns = Left { data: input, row: 1, segment: 0, term: inputs };
    product_add(extents, columns, Right { data: out_grad, segment: 0, row: outputs }, weight_grad, outputs);
    transpose(inputs, outputs, weight, turned);
    in_grad[..count * inputs].fill(0.0);
    let extents = Extents { rows: count, columns: inputs, segments: 1, terms: outputs };
    let rows = Left { data: out_grad, row: outputs, segment: 0, term: 1 };
    product_add(extents, rows, Right { data: turned, segment: 0, row: inputs }, in_grad, inputs);
}
