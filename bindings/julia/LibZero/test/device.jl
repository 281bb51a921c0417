# Memory of devices that the tests emulate, through the functions of tests/memory/caller_device.h.

const CALLER = get(ENV, "ZERO_TEST_CALLER_DEVICE", "")
const LATE_US = 300

"A stream of a device, and what its work uses."
mutable struct Stream
    device::Int
    raw::Ptr{Cvoid}
    pieces::Vector{Ptr{Cvoid}}
    values::Vector{Any}
end

const caller_library = CALLER == "" ? C_NULL : LibZero.Libdl.dlopen(CALLER)
caller(name) = LibZero.Libdl.dlsym(caller_library, name)

new_stream(device) = Stream(device, ccall(caller(:caller_stream_create), Ptr{Cvoid}, (Int64,), device), [], [])

copy_late(stream, to, from, nbytes) =
    ccall(caller(:caller_copy), Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Int64, Int64), stream.raw, to, from, nbytes, LATE_US)

function memory(stream, T, dims)
    nbytes = sizeof(T) * prod(dims)
    push!(stream.pieces, ccall(caller(:caller_alloc), Ptr{Cvoid}, (Int64, Int64), stream.device, max(nbytes, 1)))
    return DeviceArray{T}(last(stream.pieces), dims, stream.device; owner = stream)
end

"Gives the stream a late copy of values to the device."
function put(stream, values, to = memory(stream, eltype(values), size(values)))
    push!(stream.values, copy(values))
    GC.@preserve stream copy_late(stream, pointer(to), pointer(last(stream.values)), sizeof(values))
    return to
end

"The elements, after all that the stream was given."
function get_values(stream, from)
    values = zeros(eltype(from), size(from))
    GC.@preserve values begin
        copy_late(stream, pointer(values), pointer(from), sizeof(values))
        wait_for(stream)
    end
    return values
end

function wait_for(stream)
    ccall(caller(:caller_wait), Cvoid, (Ptr{Cvoid},), stream.raw)
    empty!(stream.values)
    return nothing
end

function end_stream(stream)
    wait_for(stream)
    foreach(piece -> ccall(caller(:caller_free), Cvoid, (Ptr{Cvoid},), piece), stream.pieces)
    ccall(caller(:caller_stream_destroy), Cvoid, (Ptr{Cvoid},), stream.raw)
end

const DIMS = ((20, 30), (7,), (0,))

values_of(dims, seed) = Float32[sin(seed + 0.37 * i) / (1 + i % 5) for i in reshape(1:prod(dims), dims)]
gradient_of(rank, step, i) = values_of(DIMS[i], 100 * step + 10 * rank + i)

function with_params(f, group, stream; options...)
    Optimizer(group; lr = 0.01, bucket_bytes = 1024, options...) do optimizer
        params = [add_param!(optimizer, "p$i", Float32, DIMS[i]) for i in eachindex(DIMS)]
        seal!(optimizer)
        stream === nothing || set_stream!(optimizer, stream.raw)
        f(optimizer, params)
    end
end

"Parameters, first moments and this rank's second moments after some steps; `write`, `give` and `read` are how memory is reached."
function run_steps(optimizer, params, rank, write, give, read)
    for (i, param) in enumerate(params)
        acquire(data -> write(data, rank == 0 ? values_of(DIMS[i], i) : zeros(Float32, DIMS[i])), optimizer, param)
    end
    begin!(optimizer, :root)
    for step in 1:4
        give(optimizer, params, step)
        step!(optimizer)
    end
    moments = [read!(optimizer, param, :first_moment, zeros(Float32, DIMS[i])) for (i, param) in enumerate(params)]
    pieces = [read(view.data) for view in views(optimizer, :second_moment, Float32)]
    return map(bits -> reinterpret(UInt32, vec(bits)), [[acquire(read, optimizer, param) for param in params]; moments; pieces])
end

on_host(group, rank; options...) =
    with_params(group, nothing; options...) do optimizer, params
        give(optimizer, params, step) =
            foreach(i -> grad_ready(optimizer, params[i], gradient_of(rank, step, i)), eachindex(params))
        run_steps(optimizer, params, rank, copyto!, give, copy)
    end

function give_on_device(optimizer, params, step, rank, stream, manner)
    grads = [gradient_of(rank, step, i) for i in eachindex(params)]
    manner == :bulk && return grads_ready(optimizer, params, map(grad -> put(stream, grad), grads))
    for (param, grad) in zip(params, grads)
        manner == :given && grad_ready(optimizer, param, put(stream, grad))
        manner == :host && grad_ready(optimizer, param, grad)
        manner == :acquired && grad_acquire((data, accumulate) -> (@assert !accumulate; put(stream, grad, data)), optimizer, param)
    end
end

function on_device(group, rank, tier, manner; options...)
    stream = new_stream(rank)
    outcome = with_params(group, stream; device = rank, tier = tier, options...) do optimizer, params
        write(data, values) = data isa DeviceArray ? (put(stream, values, data); wait_for(stream)) : copyto!(data, values)
        read(data) = data isa DeviceArray ? get_values(stream, data) : copy(data)
        give(optimizer, params, step) = give_on_device(optimizer, params, step, rank, stream, manner)
        outcome = run_steps(optimizer, params, rank, write, give, read)
        for (i, param) in enumerate(params)
            destination = memory(stream, Float32, DIMS[i])
            @assert acquire!(optimizer, param, destination) === destination
            release(optimizer, param)
            @assert reinterpret(UInt32, vec(get_values(stream, destination))) == outcome[i]
        end
        outcome
    end
    end_stream(stream)
    return outcome
end

"The text of the ArgumentError that a call throws."
argument_error(call) = try call(); "" catch error; error isa ArgumentError ? error.msg : rethrow() end

@testset "memory of a device needs an optimizer of that device" begin
    somewhere = DeviceArray{Float32}(C_NULL + 4096, (4, 3), 1)
    @test (size(somewhere), length(somewhere), ndims(somewhere), eltype(somewhere)) == ((4, 3), 12, 2, Float32)
    @test string(somewhere) == "DeviceArray of 4x3 Float32 at 4096 on device 1"
    trained(1) do optimizer, w, b, rank
        for call in (() -> grad_ready(optimizer, w, somewhere), () -> grads_ready(optimizer, [w], [somewhere]),
                     () -> acquire!(optimizer, w, somewhere))
            @test argument_error(call) == "the memory lies on CUDA device 1, but the optimizer has no device"
        end
        @test_throws MethodError read!(optimizer, w, :param, somewhere)
        @test_throws MethodError write(optimizer, w, :param, somewhere)
        step!(optimizer)
    end
end

if caller_library == C_NULL
    @info "left out: memory of devices, because ZERO_TEST_CALLER_DEVICE names no library with devices"
else
    @testset "memory of a device" begin
        @testset "trains with the bits of the host" begin
            for stage in 0:3, (tier, manners) in ((:host, (:given, :bulk)), (:device, (:given, :bulk, :acquired, :host))), manner in manners
                same = on_ranks(2) do group, rank
                    on_device(group, rank, tier, manner; stage = stage) == on_host(group, rank; stage = stage)
                end
                @test same == [true, true]
            end
        end

        @testset "of another kind is refused" begin
            stream, other = new_stream(0), new_stream(1)
            Group(nothing, 0, 1) do group
                with_params(group, nothing; device = 0, tier = :device) do optimizer, params
                    w = params[1]
                    begin!(optimizer, :local)
                    there = memory(other, Float32, DIMS[1])
                    @test argument_error(() -> grad_ready(optimizer, w, there)) ==
                          "the memory lies on CUDA device 1, but the optimizer has device 0"
                    claimed = DeviceArray{Float32}(there.address, DIMS[1], 0)
                    @test error_name(() -> grad_ready(optimizer, w, claimed)) == "ZERO_E_INVALID_ARGUMENT"
                    @test occursin("memory of Float64", argument_error(() -> grad_ready(optimizer, w, memory(stream, Float64, DIMS[1]))))
                    @test occursin("memory of size (30, 20)", argument_error(() -> grad_ready(optimizer, w, memory(stream, Float32, (30, 20)))))
                    @test occursin("599 elements", argument_error(() -> grads_ready(optimizer, [w], [memory(stream, Float32, 599)])))
                    @test error_name(() -> acquire!(optimizer, w, memory(stream, Float32, 599))) == "ZERO_E_INVALID_ARGUMENT"
                    @test occursin("multiples", argument_error(() -> grad_ready(optimizer, w, DeviceArray{Float32}(C_NULL + 4097, DIMS[1]))))
                    set_stream!(optimizer, other.raw)
                    @test error_name(() -> step!(optimizer)) == "ZERO_E_INVALID_ARGUMENT"
                end
                trained(1) do optimizer, w, b, rank
                    set_stream!(optimizer, stream.raw)
                    @test error_name(() -> step!(optimizer)) == "ZERO_E_UNSUPPORTED"
                end
            end
            foreach(end_stream, (stream, other))
        end
    end
end
