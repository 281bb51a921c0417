"""
Julia's side of libzero: process groups, sharded buffers and ZeRO optimizers.

Calls that wait for other ranks poll: other tasks run meanwhile and the garbage collector never waits for a peer, so ranks may be tasks of
one thread, threads, or processes under `mpirun`. Five have no form that polls: [`grad_acquire`](@ref), [`grad_ready`](@ref) and
[`grads_ready`](@ref), which may wait for a free bucket, [`init_param!`](@ref), which behind a step waits for parameters that still travel,
and `close`, of an optimizer on a thread of its own, of a group over MPI in the call.

Arrays. C lays arrays out by rows, Julia by columns: what other languages call shape (20, 30) is an `Array` of size (30, 20) here, with the
same elements in the same places. Only contiguous arrays are taken, of the element types that libzero has: `Float32`, `Float64`, `Float16`,
`BFloat16`, `Int32`, `Int64` and `UInt8`; nothing is ever converted.

Numbers. Ranks and identifiers count from 0 as in every other language; places in arrays count from 1, and ranges are `UnitRange`s.

Names. Where C takes a value of an enum, functions take its name as a `Symbol` (`:sum`, `:root`, `:first_moment`) or C's number.

Lifetime. `Config`, `Group`, `Buffer` and `Optimizer` are closed by `close`, at the end of a `do` block, or some time after they have become
unreachable, in any order. A closed object throws a [`ZeroError`](@ref). Arrays that libzero hands out lie in its memory: they keep their
object alive, but an `Array` must not be used after the `release`, `grad_ready`, `step!` or `close` that ends it.
"""
module LibZero

import Libdl

export BFloat16, Buffer, Checkpoint, Config, DeviceArray, Group, ModuleBuffer, Optimizer, Parameter, Saving, Server, ZeroError
export CheckpointResult, KeyBounds, MemoryStats, ServerResult, StepResult, StepStats, TrafficStats, VerifyResult
export env_group, launcher, mpi_group, nccl_group, unique_id
export abort, balance, barrier, group_rank, group_size, host_count, local_rank, local_size, quiet, set_deadline!, share, status
export all_gather!, all_reduce!, all_to_all!, bcast!, gather!, recv!, reduce!, reduce_scatter!, scatter!, send
export acquire, acquire!, release, shard, shard_range
export add_module_buffer!, add_param!, add_set!, set_gather_order!, set_model_group!, set_order!, set_stream!
export begin!, init_param!, module_buffer, seal!, sync_module_buffers!
export apply!, grad_acquire, grad_ready, grad_ready_rows, grads_ready, micro_step!, set_weight!, step!, sync!
export load!, rename!, request_stop, resume!, save, save_async, skipped
export slots, verify, views
export Save, differences, export_params, list_saves, progress, prunable_saves, remove_save
export leave!, pull!, record, replay!, run!
export describe, memory_stats, step_stats, trace, traffic_stats

"How libzero's objects are named across the border: a number, not an address."
const Handle = Ptr{Cvoid}

include("enumeration.jl")
include("generated.jl")
include("structure.jl")
include("error.jl")
include("dtype.jl")
include("bfloat16.jl")
include("object.jl")
include("array.jl")
include("request.jl")
include("library.jl")
include("config.jl")
include("group.jl")
include("collectives.jl")
include("buffer.jl")
include("server.jl")
include("device.jl")
include("optimizer.jl")
include("parameter.jl")
include("first_values.jl")
include("gradient.jl")
include("step.jl")
include("slot.jl")
include("checkpoint.jl")
include("saving.jl")
include("stats.jl")
include("saved.jl")

function __init__()
    load(find_library()...)
    fill_f64_keys()
end

end
