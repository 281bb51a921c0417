# Trains a small classifier on Fashion-MNIST with its states, gradients and parameters sharded by libzero.
#   julia --project=<LibZero> trainer.jl [--ranks 4] [--stage 3] [--epochs 1] [--batch 192] [--limit 0] [--lr 0.004] [--seed 1]
#                                        [--losses FILE] [--data DIRECTORY]
# Ranks are tasks of this thread; under a launcher (mpirun, srun, torchrun), with which --ranks is
# an error, they are those that it started.

using LibZero
using Printf: @printf

include("data.jl")
include("model.jl")

const DEFAULTS = (ranks = 4, stage = 3, epochs = 1, batch = 192, limit = 0, lr = 0.004, seed = 1, losses = "",
                  data = "/usr/share/datasets/fashion-mnist")

launched() = !isempty(launcher())

"What the command line says instead of the defaults."
function parse_options(arguments)
    options, rest = DEFAULTS, copy(arguments)
    while !isempty(rest)
        flag = popfirst!(rest)
        name = startswith(flag, "--") ? Symbol(flag[3:end]) : Symbol()
        haskey(options, name) && !isempty(rest) || error("trainer: unknown option or missing value: $flag")
        name == :ranks && launched() && error("trainer: --ranks is for ranks that this program starts, but a launcher has started them " *
                                              "($(launcher()) is $(ENV[launcher()]))")
        value = options[name] isa String ? popfirst!(rest) : parse(typeof(options[name]), popfirst!(rest))
        options = merge(options, NamedTuple{(name,)}((value,)))
    end
    min(options.ranks, options.epochs, options.batch) >= 1 || error("trainer: --ranks, --epochs and --batch must be at least 1")
    return options
end

"One rank's part of the training."
struct Trainer
    options::typeof(DEFAULTS)
    group::Group
    optimizer::Optimizer
    params::Vector{Parameter}
    model::Model
    sampler::Sampler
end

capacity(options, group) = max(cld(options.batch, group_size(group)), 32)

function Trainer(options, group, optimizer, sample_count)
    params = Parameter[add_param!(optimizer, name, Float32, dims) for (name, dims) in TENSORS]
    sampler = Sampler(sample_count, options.batch, options.seed)
    trainer = Trainer(options, group, optimizer, params, Model(capacity(options, group)), sampler)
    seal!(optimizer)
    for param in params
        group_rank(group) == 0 && acquire(values -> first_values!(values, param.id, options.seed), optimizer, param)
    end
    begin!(optimizer, :root)
    return trainer
end

"Weight and bias of a layer."
of_layer(t, layer) = (t.params[2layer-1], t.params[2layer])

function forward!(t::Trainer)
    for layer in 1:LAYERS
        acquire((weight, bias) -> forward!(t.model, layer, weight, bias), t.optimizer, of_layer(t, layer)...)
    end
end

"A rank without samples acquires like the others, because that is a collective in stage 3, but gives no gradients."
function backward!(t::Trainer)
    for layer in LAYERS:-1:1
        acquire(t.optimizer, of_layer(t, layer)...) do weight, bias
            t.model.count > 0 && backward_layer!(t, layer, weight)
        end
    end
end

function backward_layer!(t, layer, weight)
    weight_param, bias_param = of_layer(t, layer)
    grads = map(of_layer(t, layer)) do param
        grad, accumulate = grad_acquire(t.optimizer, param)
        accumulate ? grad : fill!(grad, 0)
    end
    backward!(t.model, layer, weight, grads...)
    grad_ready(t.optimizer, bias_param)
    grad_ready(t.optimizer, weight_param)
end

steps_in_all(t) = steps_per_epoch(t.sampler) * t.options.epochs

"Step `step` from 0: the mean loss over the samples of all ranks."
function train_step!(t, data, step)
    samples = samples_of(t.sampler, step)
    t.optimizer[:lr] = t.options.lr * (1.0 - step / steps_in_all(t))
    begin_batch!(t.model, data, view(samples, share(t.group, length(samples))))
    set_weight!(t.optimizer, t.model.count)
    t.model.divisor = t.model.count
    forward!(t)
    total = [loss(t.model)[1]]
    backward!(t)
    all_reduce!(t.group, total, :sum)
    step!(t.optimizer).skipped && error("trainer: step $step: a gradient is not finite; try a smaller --lr")
    return total[1] / length(samples)
end

"Percent of the test images classified correctly; each rank looks at its share, in as many batches as the largest share needs."
function evaluate(t, data)
    own, correct = share(t.group, length(data)), [0]
    batch = capacity(t.options, t.group)
    for first in 1:batch:cld(length(data), group_size(t.group))
        begin_batch!(t.model, data, own[first:min(first + batch - 1, length(own))])
        forward!(t)
        correct[1] += loss(t.model)[2]
    end
    return 100 * all_reduce!(t.group, correct, :sum)[1] / length(data)
end

"FNV-1a of all parameters, the same on all ranks."
hash_params(t) = foldl((hash, param) -> acquire(values -> fnv(hash, values), t.optimizer, param), t.params; init = 0xcbf29ce484222325)
fnv(hash, values) = foldl((h, byte) -> (h ⊻ byte) * 0x00000100000001b3, reinterpret(UInt8, vec(values)); init = hash)

"One rank, from its group to what it prints."
function run_rank(options, train, test, group)
    Optimizer(group; stage = options.stage, algorithm = "adamw", bucket_bytes = 65536, divisor = :weights) do optimizer
        trainer = Trainer(options, group, optimizer, length(train))
        open(group_rank(group) == 0 && !isempty(options.losses) ? options.losses : "/dev/null", "w") do losses
            for step in 0:steps_in_all(trainer)-1
                @printf(losses, "%.9g\n", train_step!(trainer, train, step))
                flush(losses) # one that cannot be written ends the run
            end
        end
        accuracy, hash = evaluate(trainer, test), hash_params(trainer)
        group_rank(group) == 0 && @printf("accuracy=%.2f hash=%016x\n", accuracy, hash)
    end
end

function main(options)
    train, test = read_dataset(options.data, "train", options.limit), read_dataset(options.data, "t10k")
    work(group) = run_rank(options, train, test, group)
    launched() && return env_group(work; staging_bytes = 65536)
    @sync for rank in 0:options.ranks-1
        @async Group(work, "train_fashion.$(getpid())", rank, options.ranks; staging_bytes = 65536)
    end
end

abspath(PROGRAM_FILE) == @__FILE__() && main(parse_options(ARGS))
