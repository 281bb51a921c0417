# A convolutional classifier of 28 x 28 images with its own forward and backward, layer by layer over a batch of samples. Knows nothing of
# ranks or of libzero. Every sum is taken in the order of examples/fashion/model.c, so the bits are those of the C trainer.

const KERNEL = 3
const CHANNELS1 = 8
const CHANNELS2 = 16
const POOLED2 = (IMAGE_SIDE ÷ 4)^2 * CHANNELS2
const HIDDEN = 64
const LAYERS = 4

"Names and dimensions of weight and bias of each layer; C sees the dimensions reversed: [kernel row][kernel column][input][output]."
const TENSORS = (
    "conv1.weight" => (CHANNELS1, 1, KERNEL, KERNEL), "conv1.bias" => (CHANNELS1,),
    "conv2.weight" => (CHANNELS2, CHANNELS1, KERNEL, KERNEL), "conv2.bias" => (CHANNELS2,),
    "dense1.weight" => (HIDDEN, POOLED2), "dense1.bias" => (HIDDEN,),
    "dense2.weight" => (CLASSES, HIDDEN), "dense2.bias" => (CLASSES,),
)

"Weights uniform with the variance 2 / inputs (He et al., \"Delving Deep into Rectifiers\", 2015), biases zero; `tensor` counts from 0."
function first_values!(values, tensor, seed)
    ndims(values) == 1 && return fill!(values, 0)
    bound = Float32(sqrt(6.0 / (length(values) ÷ size(values, 1))))
    random = SplitMix(seed, tensor)
    return map!(_ -> (Float32(next!(random) >> 40) / 8388608.0f0 - 1.0f0) * bound, values, values)
end

"A convolution of kernel 3 that keeps the image's size, then the maximum over 2 x 2 pixels, then max(0, x)."
struct Conv
    side::Int # of the input, in pixels
    inputs::Int
    outputs::Int
end

const CONV1 = Conv(IMAGE_SIDE, 1, CHANNELS1)
const CONV2 = Conv(IMAGE_SIDE ÷ 2, CHANNELS1, CHANNELS2)

"Elements of a row, and of all, of an image with a border of one zero pixel around it."
padded_row(side, channels) = (side + 2) * channels
padded_count(side, channels) = (side + 2) * padded_row(side, channels)
pooled_count(c) = (c.side ÷ 2)^2 * c.outputs

"Activations of up to so many samples, one in each column; channels lie next to one another."
mutable struct Model
    count::Int
    divisor::Float64 # of the gradient of the sum of losses
    labels::Vector{UInt8}
    input::Matrix{Float32}   # padded
    pooled1::Matrix{Float32} # padded, the input of the second convolution
    pooled2::Matrix{Float32}
    hidden::Matrix{Float32}
    logits::Matrix{Float32}
    gradient1::Matrix{Float32} # of pooled1, not padded
    gradient2::Matrix{Float32}
    gradient3::Matrix{Float32}
    gradient4::Matrix{Float32}
    picks1::Matrix{UInt8} # which of four pixels was the maximum
    picks2::Matrix{UInt8}
    full::Vector{Float32}   # one sample: output of a convolution before pooling, or its gradient, padded
    turned::Vector{Float32} # weights transposed for the gradient of a layer's input
end

function Model(capacity)
    activations(count) = zeros(Float32, count, capacity)
    pooled1 = pooled_count(CONV1)
    return Model(0, 1.0, zeros(UInt8, capacity), activations(padded_count(IMAGE_SIDE, 1)), activations(padded_count(CONV2.side, CHANNELS1)),
                 activations(POOLED2), activations(HIDDEN), activations(CLASSES), activations(pooled1), activations(POOLED2),
                 activations(HIDDEN), activations(CLASSES), zeros(UInt8, pooled1, capacity), zeros(UInt8, POOLED2, capacity),
                 zeros(Float32, padded_count(IMAGE_SIDE, CHANNELS1)), zeros(Float32, POOLED2 * HIDDEN))
end

"Takes the samples at these places of a data set."
function begin_batch!(m::Model, data, places)
    m.count = length(places)
    input = reshape(m.input, IMAGE_SIDE + 2, IMAGE_SIDE + 2, :)
    for (s, place) in enumerate(places)
        m.labels[s] = data.labels[place]
        for y in 1:IMAGE_SIDE, x in 1:IMAGE_SIDE
            input[x+1, y+1, s] = data.images[(y-1)*IMAGE_SIDE+x, place] / 256.0f0
        end
    end
end

# The one hot loop: a matrix product over strided matrices.

"""
The left-hand factor: element (row m, segment s, term k) lies `first + m * row + s * segment + k * term` after the beginning. Rows may
overlap: a convolution reads its input as such a matrix without copying it, one segment per kernel row.
"""
struct Strided{A<:Array{Float32}}
    data::A
    first::Int
    row::Int
    segment::Int
    term::Int
end

"The right-hand factor, from `first` elements after the beginning on; its rows are `row` apart."
struct Factor{A<:Array{Float32}}
    data::A
    first::Int
    segments::Int
    terms::Int
    segment::Int
    row::Int
end

"""
c[m, n] += sum over segments s and terms k, in this order, of a(m, s, k) * b(s, k, n), for rows m and columns n. `c` begins `first` elements
after the beginning of its array, and its rows are `stride` apart.
"""
function add_product!(c::Array{Float32}, first, stride, rows, columns, a::Strided, b::Factor)
    check(c, first + (rows - 1) * stride + columns)
    check(a.data, a.first + (rows - 1) * a.row + (b.segments - 1) * a.segment + (b.terms - 1) * a.term + 1)
    check(b.data, b.first + (b.segments - 1) * b.segment + (b.terms - 1) * b.row + columns)
    wide = columns - columns % 8
    for n in 0:8:wide-1, m in 0:rows-1
        add_tile!(Val(8), c, first + m * stride + n, a, m, b, n)
    end
    for n in wide:columns-1, m in 0:rows-1
        add_tile!(Val(1), c, first + m * stride + n, a, m, b, n)
    end
end

check(array, last) = last <= length(array) || throw(BoundsError(array, last))

"W neighbours in a row of c, whose sums stay in registers. The caller has checked that all lies within the arrays."
function add_tile!(width::Val{W}, c, at, a, m, b, n) where {W}
    sums = load(width, c, at)
    @inbounds for s in 0:b.segments-1
        i = a.first + m * a.row + s * a.segment + 1
        j = b.first + s * b.segment + n
        for k in 0:b.terms-1
            sums = sums .+ a.data[i+k*a.term] .* load(width, b.data, j + k * b.row)
        end
    end
    @inbounds for i in 1:W
        c[at+i] = sums[i]
    end
end

@inline load(width::Val, data, at) = ntuple(i -> @inbounds(data[at+i]), width)

# Layers.

"`full` (pixels without border, rows `stride` apart) += the convolution of a padded image."
function convolve!(out, first, stride, side, inputs, outputs, padded, start, kernels)
    row = padded_row(side, inputs)
    factor = Factor(kernels, 0, KERNEL, KERNEL * inputs, KERNEL * inputs * outputs, outputs)
    for y in 0:side-1
        add_product!(out, first + y * stride, outputs, side, outputs, Strided(padded, start + y * row, inputs, row, 1), factor)
    end
end

"One sample: convolution, bias, pooling. `first` is where its pooled pixels begin, whose rows are `stride` apart."
function conv_forward!(m, c, padded, start, weight, bias, out, first, stride, picks, s)
    full = m.full
    for pixel in 0:c.side^2-1
        copyto!(full, pixel * c.outputs + 1, bias, 1, c.outputs)
    end
    convolve!(full, 0, c.side * c.outputs, c.side, c.inputs, c.outputs, padded, start, weight)
    pool!(c, full, out, first, stride, picks, (s - 1) * pooled_count(c))
end

"The maximum of 2 x 2 pixels, of equal ones the first, then max(0, x)."
function pool!(c, full, out, first, stride, picks, picked)
    row, half, n = c.side * c.outputs, c.side ÷ 2, c.outputs
    check(full, c.side * row)
    check(out, first + (half - 1) * stride + half * n)
    check(picks, picked + pooled_count(c))
    @inbounds for y in 0:half-1, x in 0:half-1, i in 1:n
        from = 2y * row + 2x * n + i
        a, b, d, e = full[from], full[from+n], full[from+row], full[from+row+n]
        top, low = ifelse(b > a, b, a), ifelse(e > d, e, d)
        best = ifelse(low > top, low, top)
        out[first+y*stride+x*n+i] = ifelse(best > 0, best, 0.0f0)
        picks[picked+(y*half+x)*n+i] = ifelse(low > top, 0x02 + (e > d), UInt8(b > a))
    end
end

"Undoes pool! for a gradient: it goes to the pixel that was picked, unless its output was cut at 0. `full` is padded."
function unpool!(c, gradient, out, first, stride, picks, picked, full)
    row, half, n = padded_row(c.side, c.outputs), c.side ÷ 2, c.outputs
    check(full, padded_count(c.side, n))
    check(gradient, picked + pooled_count(c))
    check(out, first + (half - 1) * stride + half * n)
    check(picks, picked + pooled_count(c))
    @inbounds for y in 0:half-1, x in 0:half-1, i in 1:n
        place = picked + (y * half + x) * n + i
        g = ifelse(out[first+y*stride+x*n+i] > 0, gradient[place], 0.0f0)
        to = (2y + 1) * row + (2x + 1) * n + i
        full[to] = ifelse(picks[place] == 0, g, 0.0f0)
        full[to+n] = ifelse(picks[place] == 1, g, 0.0f0)
        full[to+row] = ifelse(picks[place] == 2, g, 0.0f0)
        full[to+row+n] = ifelse(picks[place] == 3, g, 0.0f0)
    end
end

"One sample, after unpool!: gradients of weight and bias from the padded gradient in `full`."
function conv_weight_grad!(c, padded, start, full, weight_grad, bias_grad)
    in_row, full_row, n = padded_row(c.side, c.inputs), padded_row(c.side, c.outputs), c.outputs
    factor = Factor(full, full_row + n, c.side, c.side, full_row, n)
    for ky in 0:KERNEL-1
        turned = Strided(padded, start + ky * in_row, 1, in_row, c.inputs)
        add_product!(weight_grad, ky * KERNEL * c.inputs * n, n, KERNEL * c.inputs, n, turned, factor)
    end
    check(full, c.side * full_row + (c.side + 1) * n)
    check(bias_grad, n)
    @inbounds for y in 1:c.side, x in 1:c.side, i in 1:n
        bias_grad[i] += full[y*full_row+x*n+i]
    end
end

"Kernels for the gradient of a convolution's input: rotated by half a turn, inputs and outputs swapped."
function turn_kernels!(turned, c, weight)
    kernels = reshape(weight, c.outputs, c.inputs, KERNEL^2)
    for k in 1:KERNEL^2, o in 1:c.outputs, i in 1:c.inputs
        turned[((k-1)*c.outputs+o-1)*c.inputs+i] = kernels[o, i, KERNEL^2+1-k]
    end
end

"out = weight * in + bias, sample by sample."
function dense_forward!(count, in, weight, bias, out)
    outputs, inputs = size(weight)
    for s in 1:count
        copyto!(out, (s - 1) * outputs + 1, bias, 1, outputs)
    end
    add_product!(out, 0, outputs, count, outputs, Strided(in, 0, inputs, 0, 1), Factor(weight, 0, 1, inputs, 0, outputs))
end

"Gradients of a dense layer; in_grad is overwritten."
function dense_backward!(m, in, out_grad, weight, in_grad, weight_grad, bias_grad)
    outputs, inputs = size(weight)
    for s in 1:m.count, o in 1:outputs
        bias_grad[o] += out_grad[o, s]
    end
    add_product!(weight_grad, 0, outputs, inputs, outputs, Strided(in, 0, 1, 0, inputs), Factor(out_grad, 0, 1, m.count, 0, outputs))
    for i in 1:inputs, o in 1:outputs
        m.turned[(o-1)*inputs+i] = weight[o, i]
    end
    fill!(view(in_grad, :, 1:m.count), 0)
    add_product!(in_grad, 0, inputs, m.count, inputs, Strided(out_grad, 0, outputs, 0, 1), Factor(m.turned, 0, 1, outputs, 0, inputs))
end

const POOLED1_ROW = padded_row(CONV2.side, CHANNELS1)
const POOLED2_ROW = CONV2.side ÷ 2 * CHANNELS2

"Elements before those of sample `s`."
before(activations, s) = (s - 1) * size(activations, 1)

"Elements before the first pixel within the border of sample `s`."
pooled1_first(m, s) = before(m.pooled1, s) + POOLED1_ROW + CHANNELS1

rectify!(values) = map!(x -> x > 0 ? x : zero(x), values, values)

"Layer `layer` (from 1) of all samples."
function forward!(m::Model, layer, weight, bias)
    if layer == 1
        for s in 1:m.count
            start, first = before(m.input, s), pooled1_first(m, s)
            conv_forward!(m, CONV1, m.input, start, weight, bias, m.pooled1, first, POOLED1_ROW, m.picks1, s)
        end
    elseif layer == 2
        for s in 1:m.count
            start, first = before(m.pooled1, s), before(m.pooled2, s)
            conv_forward!(m, CONV2, m.pooled1, start, weight, bias, m.pooled2, first, POOLED2_ROW, m.picks2, s)
        end
    elseif layer == 3
        dense_forward!(m.count, m.pooled2, weight, bias, m.hidden)
        rectify!(view(m.hidden, :, 1:m.count))
    else
        dense_forward!(m.count, m.hidden, weight, bias, m.logits)
    end
end

# The C library's, whose last bits differ from those of Julia's own.
libm_exp(x::Float64) = ccall((:exp, "libm.so.6"), Float64, (Float64,), x)
libm_log(x::Float64) = ccall((:log, "libm.so.6"), Float64, (Float64,), x)

"After the last layer: the sum over the samples of the cross-entropy, and how many were classified correctly."
function loss(m::Model)
    total, correct = 0.0, 0
    for s in 1:m.count
        z = view(m.logits, :, s)
        top = argmax(z)
        sum = 0.0
        for i in 1:CLASSES
            sum += libm_exp(Float64(z[i]) - z[top])
        end
        total += libm_log(sum) + z[top] - z[m.labels[s]+1]
        correct += top == m.labels[s] + 1
    end
    return total, correct
end

"Gradient of the sum of cross-entropies over the divisor: (softmax - one at the label) / divisor."
function loss_backward!(m)
    for s in 1:m.count
        z = view(m.logits, :, s)
        top = Float64(maximum(z))
        sum = 0.0
        for i in 1:CLASSES
            sum += libm_exp(z[i] - top)
        end
        for i in 1:CLASSES
            m.gradient4[i, s] = (libm_exp(z[i] - top) / sum - (i == m.labels[s] + 1)) / m.divisor
        end
    end
end

function conv2_backward!(m, weight, weight_grad, bias_grad)
    fill!(m.full, 0)
    fill!(m.gradient1, 0)
    turn_kernels!(m.turned, CONV2, weight)
    for s in 1:m.count
        at = before(m.pooled2, s)
        unpool!(CONV2, m.gradient2, m.pooled2, at, POOLED2_ROW, m.picks2, at, m.full)
        conv_weight_grad!(CONV2, m.pooled1, before(m.pooled1, s), m.full, weight_grad, bias_grad)
        convolve!(m.gradient1, before(m.gradient1, s), CONV2.side * CHANNELS1, CONV2.side, CHANNELS2, CHANNELS1, m.full, 0, m.turned)
    end
end

function conv1_backward!(m, weight_grad, bias_grad)
    fill!(m.full, 0)
    for s in 1:m.count
        unpool!(CONV1, m.gradient1, m.pooled1, pooled1_first(m, s), POOLED1_ROW, m.picks1, before(m.gradient1, s), m.full)
        conv_weight_grad!(CONV1, m.input, before(m.input, s), m.full, weight_grad, bias_grad)
    end
end

"Adds to both gradients those of the sum of cross-entropies over the divisor; layers run from LAYERS down to 1."
function backward!(m::Model, layer, weight, weight_grad, bias_grad)
    if layer == 4
        loss_backward!(m)
        dense_backward!(m, m.hidden, m.gradient4, weight, m.gradient3, weight_grad, bias_grad)
    elseif layer == 3
        map!((h, g) -> h > 0 ? g : zero(g), m.gradient3, m.hidden, m.gradient3)
        dense_backward!(m, m.pooled2, m.gradient3, weight, m.gradient2, weight_grad, bias_grad)
    elseif layer == 2
        conv2_backward!(m, weight, weight_grad, bias_grad)
    else
        conv1_backward!(m, weight_grad, bias_grad)
    end
end
