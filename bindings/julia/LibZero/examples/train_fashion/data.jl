# The data set and the order of its samples. Knows nothing of training.

"Images as columns of a matrix of bytes, and their labels from 0."
struct Dataset
    images::Matrix{UInt8}
    labels::Vector{UInt8}
end

Base.length(data::Dataset) = length(data.labels)

const IMAGE_SIDE = 28
const CLASSES = 10

"Reads NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte of a folder, gzipped or plain; with a limit, only so many first samples."
function read_dataset(folder, name, limit = 0)
    images = read_idx(joinpath(folder, "$name-images-idx3-ubyte"), 3)
    labels = read_idx(joinpath(folder, "$name-labels-idx1-ubyte"), 1)
    size(images)[2:end] == (IMAGE_SIDE, IMAGE_SIDE) || error("$folder: images of $name have size $(size(images)[2:end])")
    size(images, 1) == length(labels) || error("$folder: $(length(labels)) labels for $(size(images, 1)) images of $name")
    all(label -> label < CLASSES, labels) || error("$folder: a label of $name is not below $CLASSES")
    count = limit > 0 ? min(limit, length(labels)) : length(labels)
    return Dataset(reshape(vec(images), IMAGE_SIDE^2, :)[:, 1:count], vec(labels)[1:count])
end

"""
The IDX format: two zero bytes, a type (8 = unsigned byte), the number of dimensions, big-endian extents, then the bytes by rows. The result
has the extents of the file, and its bytes in the file's order.
"""
function read_idx(path, ndims)
    isfile(path) || isfile(path * ".gz") || error("$path: no such file (the images: Debian's package dataset-fashion-mnist)")
    bytes = isfile(path * ".gz") ? read(`gzip -dc $path.gz`) : read(path)
    head = 4 + 4ndims
    length(bytes) >= head && bytes[1:4] == [0, 0, 8, ndims] || error("$path: no IDX file of bytes in $ndims dimensions")
    extents = Int.(ntoh.(reinterpret(UInt32, bytes[5:head])))
    extents[1] > 0 || error("$path: holds no items")
    length(bytes) == head + prod(extents) || error("$path: $(length(bytes) - head) bytes, but extents $extents")
    return reshape(bytes[head+1:end], extents...)
end

# splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): the same numbers in every language.

mutable struct SplitMix
    state::UInt64
end

"Stream number `stream` of a seed."
SplitMix(seed::Integer, stream::Integer) = SplitMix(next!(SplitMix(next!(SplitMix(UInt64(seed))) + UInt64(stream))))

function next!(random::SplitMix)
    z = random.state += 0x9e3779b97f4a7c15
    z = (z ⊻ (z >> 30)) * 0xbf58476d1ce4e5b9
    z = (z ⊻ (z >> 27)) * 0x94d049bb133111eb
    return z ⊻ (z >> 31)
end

"Which samples are trained on in a step. Every rank computes the same permutation, so nothing is communicated."
mutable struct Sampler
    batch::Int # samples of all ranks in a step; the last step of an epoch takes what is left
    seed::Int
    epoch::Int # that the order belongs to
    order::Vector{Int}
end
Sampler(count, batch, seed) = Sampler(batch, seed, -1, zeros(Int, count))

steps_per_epoch(sampler) = cld(length(sampler.order), sampler.batch)

"Places of the samples of step `step` (from 0, over all epochs)."
function samples_of(sampler, step)
    epoch, part = fldmod(step, steps_per_epoch(sampler))
    sampler.epoch == epoch || shuffle!(sampler, epoch)
    first = part * sampler.batch
    return view(sampler.order, first+1:min(first + sampler.batch, length(sampler.order)))
end

"Fisher and Yates. Streams below 2^32 belong to first values."
function shuffle!(sampler, epoch)
    random = SplitMix(sampler.seed, 1 << 32 + epoch)
    order = copyto!(sampler.order, 1:length(sampler.order))
    for i in length(order):-1:2
        j = Int(next!(random) % UInt64(i)) + 1
        order[i], order[j] = order[j], order[i]
    end
    sampler.epoch = epoch
end
