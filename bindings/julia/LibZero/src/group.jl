# Process groups: how ranks meet, where this one stands, how a group ends.

"""
    Group(name, rank, size; options...)
    Group(name, rank, size, config)
    Group(f, arguments...; options...)

A group of ranks on this host that meet by `name`: tasks, threads or processes. `rank` counts from 0; each rank is given once. `name` may be
`nothing` in a world of one. Returns when all ranks have come. With a function `f`, the group is closed when `f(group)` has ended.

    @sync for rank in 0:3
        @async Group("trainer", rank, 4) do group
            all_reduce!(group, ones(Float32, 10), :sum)
        end
    end

Calls on one group are made by all its ranks in the same order, by one task per rank at a time. Options: zero/config.h, keys 100 to 199.
"""
mutable struct Group <: Object
    handle::Handle
    open::Bool

    Group(handle::Handle) = finalizer(close_later, new(handle, true))
end

Group(name::AbstractString, rank::Integer, size::Integer, config::Config) = Group(zero_group_create_local(name, rank, size, config))
Group(::Nothing, rank::Integer, size::Integer, config::Config) = Group(zero_group_create_local(Cstring(C_NULL), rank, size, config))
Group(name, rank::Integer, size::Integer; options...) = with(config -> Group(name, rank, size, config), Config(; options...))
Group(f::Function, arguments...; options...) = with(f, Group(arguments...; options...))

"""
    nccl_group(id, rank, size; device, options...)
    nccl_group(id, rank, size, config)
    nccl_group(f, ...)

A group of ranks of any hosts, each with a CUDA device, that meet by an `id` of [`unique_id`](@ref), which the program carries to all of them.
Arrays lie on the host: what is more than 4 KiB passes through the device.
"""
nccl_group(id::AbstractString, rank::Integer, size::Integer, config::Config) = Group(zero_group_create_nccl(id, rank, size, config))
nccl_group(id, rank, size; options...) = with(config -> nccl_group(id, rank, size, config), Config(; options...))
nccl_group(f::Function, arguments...; options...) = with(f, nccl_group(arguments...; options...))

"""
    unique_id(; options...)
    unique_id(config)

An id for [`nccl_group`](@ref). This process listens from now on, and is where rank 0 must be made.
"""
unique_id(config::Config) = zero_group_unique_id(config)
unique_id(; options...) = with(unique_id, Config(; options...))

"""
    env_group(; options...)
    env_group(config)
    env_group(f, ...)

The group that the launcher's variables describe: that of `mpirun` or Slurm, of torchrun (on one host; with `nccl = 1` also on several), or
a world of one.
"""
env_group(config::Config) = Group(zero_group_create_env(config))
env_group(; options...) = with(env_group, Config(; options...))
env_group(f::Function, arguments...; options...) = with(f, env_group(arguments...; options...))

"""
    launcher()

The name of the variable in which a launcher says how many ranks it started, for example `"OMPI_COMM_WORLD_SIZE"`; `""` where none started
this process. A program that starts ranks of its own asks first.
"""
launcher() = zero_group_launcher()

"""
    mpi_group(comm = LibZero.ZERO_MPI_WORLD; options...)
    mpi_group(comm, config)
    mpi_group(f, ...)

A group of the ranks of an MPI communicator, given as its Fortran handle. Initialises MPI when nobody has; then closing the last such group
finalises it, so close groups over MPI before the process ends.
"""
mpi_group(comm::Integer, config::Config) = Group(zero_group_create_mpi(comm, config))
mpi_group(comm::Integer = ZERO_MPI_WORLD; options...) = with(config -> mpi_group(comm, config), Config(; options...))
mpi_group(f::Function, arguments...; options...) = with(f, mpi_group(arguments...; options...))

give_back(group::Group) = zero_group_release(group)

"""
    split(group, color, key = 0)

The group of the ranks that give the same `color`, ordered by `key`, then by rank; `nothing` for a negative color. All ranks call it.
"""
function Base.split(group::Group, color::Integer, key::Integer = 0)
    made = zero_group_split(group, color, key)
    return made == C_NULL ? nothing : Group(made)
end

"This rank's number in the group, from 0."
group_rank(group::Group) = zero_group_rank(group)

"The number of ranks of the group."
group_size(group::Group) = zero_group_size(group)

"This rank's number among those on this host, from 0."
local_rank(group::Group) = zero_group_local_rank(group)

"The number of ranks on this host."
local_size(group::Group) = zero_group_local_size(group)

"The number of hosts."
host_count(group::Group) = zero_group_host_count(group)

"""
    share(group, count, rank = group_rank(group))

The range of a whole of `count` elements that a rank owns in `reduce_scatter!`, `all_gather!`, `gather!` and `scatter!`.
"""
function share(group::Group, count::Integer, rank::Integer = group_rank(group))
    offset, own = zero_group_share(group, count, rank)
    return range_of(offset, own)
end

"C's offset and count as the places of elements."
range_of(offset, count) = offset+1:offset+count

"""
    status(group)

Throws the error that poisoned the group; returns `nothing` while it works.
"""
status(group::Group) = zero_group_status(group)

"""
    abort(group, reason = "")

Poisons the group on all ranks with `ZERO_E_ABORTED`; calls that are waiting end at once. Any task may call it.
"""
abort(group::Group, reason::AbstractString = "") = zero_group_abort(group, reason)

"""
    set_deadline!(group, milliseconds)

How long later calls of this rank wait for the other ranks.
"""
set_deadline!(group::Group, milliseconds::Integer) = zero_group_set_deadline(group, milliseconds)

"""
    quiet(group)

Whether memory that was given to calls is the caller's again after a failure. Without `nccl` always. With it `false` while NCCL, in this
process, may still read or write memory of a call that failed: such memory must then not be freed or used.
"""
quiet(group::Group) = zero_group_quiet(group) == 1
