# Checkpoints: what a run needs to go on later, at any number of ranks and any stage.

"""
    Checkpoint(group; options...)
    Checkpoint(group, config)
    Checkpoint(f, group, ...)

A list of things that are saved and loaded together by the ranks of a group: optimizers, buffers, arrays and texts of the program. Options
(zero/config.h, keys 600 to 699), for example `checkpoint_keep = 3`. With a function `f`, the checkpoint is closed when `f(checkpoint)` has
ended.

All ranks add the same in the same order. [`save`](@ref) and [`load!`](@ref) are collectives between steps.
"""
mutable struct Checkpoint <: Object
    handle::Handle
    open::Bool
    arrays::Vector{Any} # that save reads and load! writes
    optimizers::Vector{Optimizer}
    saving::Any # the last save, when there is no optimizer

    Checkpoint(group::Group, config::Config) =
        finalizer(close_later, new(zero_checkpoint_create(group, config), true, Any[], Optimizer[], nothing))
end

Checkpoint(group::Group; options...) = with(config -> Checkpoint(group, config), Config(; options...))
Checkpoint(f::Function, arguments...; options...) = with(f, Checkpoint(arguments...; options...))

give_back(checkpoint::Checkpoint) = zero_checkpoint_release(checkpoint)

"""
    push!(checkpoint, optimizer, prefix = "")

Adds an optimizer with all that belongs to it; `prefix` stands before the names of its tensors in files, for example `"stage1."`.
"""
function Base.push!(checkpoint::Checkpoint, optimizer::Optimizer, prefix::AbstractString = "")
    zero_checkpoint_add_optimizer(checkpoint, prefix, optimizer)
    push!(checkpoint.optimizers, optimizer)
    return checkpoint
end

"""
    push!(checkpoint, buffer, name)

Adds a sharded buffer.
"""
function Base.push!(checkpoint::Checkpoint, buffer::Buffer, name::AbstractString)
    zero_checkpoint_add_buffer(checkpoint, name, buffer)
    return checkpoint
end

"""
    push!(checkpoint, array, name, scope = :one)

Adds an array of the program, which [`save`](@ref) reads and [`load!`](@ref) writes; the checkpoint keeps it. `scope` says whose is saved:
rank 0's (`:one`), or each rank's own (`:each`).
"""
function Base.push!(checkpoint::Checkpoint, array::AbstractArray{T}, name::AbstractString, scope = :one) where {T}
    number = code(SCOPE, scope)
    GC.@preserve array zero_checkpoint_add_tensor(checkpoint, name, dtype(T), c_shape(size(array)), address_of(array), number)
    push!(checkpoint.arrays, array)
    return checkpoint
end

"""
    checkpoint[key] = text
    checkpoint[key]

Texts of the program that a save holds, such as its place in the data; rank 0's are saved. `nothing` removes one. After [`load!`](@ref), texts
are those of the save.
"""
function Base.setindex!(checkpoint::Checkpoint, text::Union{AbstractString,Nothing}, key::AbstractString)
    zero_checkpoint_set_text(checkpoint, key, something(text, C_NULL))
    return checkpoint
end

Base.getindex(checkpoint::Checkpoint, key::AbstractString) = zero_checkpoint_get_text(checkpoint, key)

"""
    rename!(checkpoint, in_file => here)

Says that a tensor of a save, or all with `"old.*" => "new.*"`, has another name here. The first rule that fits a name applies.
"""
rename!(checkpoint::Checkpoint, (in_file, here)::Pair) = zero_checkpoint_rename(checkpoint, in_file, here)

"""
    CheckpointResult

The outcome of a save, a load or an export: `step` (steps applied), `nbytes`, `file_count`, times (`write_ns`, `sync_ns`, `commit_ns`), `direct` (1:
files went past the page cache), and of a load `missing`, `extra` and `converted` (how many names [`skipped`](@ref) tells) and `fallback`
(damaged saves that are newer than the one taken). `stall_ns` is the time in which a save kept this rank from using the optimizers, and
`snapshot_nbytes` what an asynchronous one copied.
"""
CheckpointResult

"""
    load!(checkpoint, folder; part = :all)

Loads the newest valid save in `folder`, or the save that `folder` is; with `part = :params` the values of parameters alone. `folder` may
then also name plain safetensors of any tool: a file, or a folder of files. Optimizers are sealed or between steps, and run afterwards.
Returns a [`CheckpointResult`](@ref). A collective.
"""
load!(checkpoint::Checkpoint, folder::AbstractString; part = :all) = zero_checkpoint_load(checkpoint, folder, code(PART, part))

"""
    export_params(checkpoint, path; as = nothing)

Writes the parameters as plain safetensors, which other tools read: one file if `path` ends with `.safetensors`, otherwise a folder. `as` is
`Float32`, `Float16` or `LibZero.BFloat16`; `nothing` writes each parameter as the optimizer keeps it. Returns a [`CheckpointResult`](@ref).
A collective.
"""
export_params(checkpoint::Checkpoint, path::AbstractString; as::Union{Type,Nothing} = nothing) =
    zero_checkpoint_export(checkpoint, path, as === nothing ? ZERO_EXPORT_AS_KEPT : dtype(as))

"""
    resume!(optimizer, folder)

Loads the newest valid save in `folder` and says whether there was one; if not, the optimizer is as it was. A collective.
"""
resume!(optimizer::Optimizer, folder::AbstractString) = zero_optimizer_resume(optimizer, folder, optimizer.stream) != 0

"""
    skipped(checkpoint)

The names that the last [`load!`](@ref) passed over or converted, each after `missing`, `extra` or `converted`.
"""
skipped(checkpoint::Checkpoint) = split(zero_checkpoint_skipped(checkpoint), '\n'; keepempty = false)
