# Nanoseconds of a call, as bindings/conformance/README.md measures them: lines `name: nanoseconds`, to compare with C's.
#   julia --project=<LibZero> examples/overhead.jl

using LibZero
using Printf: @printf

const ROUNDS = 5

function mean_ns(call, count)
    start = time_ns()
    for _ in 1:count
        call()
    end
    return (time_ns() - start) / count
end

"The least of the rounds' means: what else the machine does only adds to one."
function measure(name, call, count)
    call()
    @printf("%s: %.1f\n", name, minimum(mean_ns(call, count) for _ in 1:ROUNDS))
end

function step(optimizer, params, gradient)
    for param in params
        grad_ready(optimizer, param, gradient)
    end
    step!(optimizer)
end

function bulk_step(optimizer, params, gradients)
    grads_ready(optimizer, params, gradients)
    step!(optimizer)
end

Group(nothing, 0, 1) do group
    Optimizer(group; overlap = 0) do optimizer
        params = [add_param!(optimizer, "p$i", Float32, 16) for i in 1:1000]
        seal!(optimizer)
        begin!(optimizer, :local)
        gradient = zeros(Float32, 16)
        measure("empty-call", LibZero.zero_abi_version, 1_000_000)
        measure("group-size", () -> group_size(group), 100_000)
        measure("step-1000", () -> step(optimizer, params, gradient), 100)
        measure("step-1000-bulk", () -> bulk_step(optimizer, params, fill(gradient, length(params))), 100)
    end
end
