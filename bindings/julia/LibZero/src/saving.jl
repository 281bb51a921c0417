# Saves: begun, then written while tasks and steps go on.

"""
    Saving

A save that [`save_async`](@ref) began. It holds the state at the time of that call. `wait(saving)` waits until all ranks have committed the
save, and throws its error; `fetch(saving)` returns its outcome too, a [`CheckpointResult`](@ref), or `nothing` for that of an optimizer.
`isready(saving)` says whether the save has ended.

A task attends to the save, so a program need neither wait for it nor keep the `Saving`. The optimizer, the checkpoint and the group may be
closed meanwhile. A save that has not ended when the process does is not committed.
"""
struct Saving
    task::Task # returns the error, or nothing
    result::Any
end

Base.isready(saving::Saving) = istaskdone(saving.task)
Base.show(io::IO, saving::Saving) = print(io, "Saving(", isready(saving) ? "ended" : "in progress", ")")

function Base.wait(saving::Saving)
    problem = fetch(saving.task)
    return problem === nothing ? nothing : throw(problem)
end

function Base.fetch(saving::Saving)
    wait(saving)
    return saving.result === nothing ? nothing : saving.result[]
end

"""
    save_async(checkpoint, folder)
    save_async(optimizer, folder)

Begins [`save`](@ref) and returns a [`Saving`](@ref) once this rank has a snapshot of what it saves; steps may follow at once. The option
`checkpoint_snapshot` of a checkpoint says what is copied. Later saves and loads of the run wait until this one has ended. A collective.
"""
function save_async(checkpoint::Checkpoint, folder::AbstractString)
    result = Ref(CheckpointResult())
    return begin_save(checkpoint, result) do request
        ccall(entry(libzero.zero_checkpoint_save_async), Int32, (Handle, Cstring, Ptr{Cvoid}, Ptr{CheckpointResult}, Ptr{Handle}),
              checkpoint, folder, C_NULL, result, request)
    end
end

function save_async(optimizer::Optimizer, folder::AbstractString)
    return begin_save(optimizer, nothing) do request
        ccall(entry(libzero.zero_optimizer_save_async), Int32, (Handle, Cstring, Ptr{Cvoid}, Ptr{Handle}),
              optimizer, folder, optimizer.stream, request)
    end
end

"""
    save(checkpoint, folder)
    save(optimizer, folder)

Saves everything into a folder of its own inside `folder`, which must exist. A save that fails changes nothing in memory. Of a checkpoint,
returns a [`CheckpointResult`](@ref). A collective.

Like [`save_async`](@ref), it copies first what this rank saves, so that other tasks run while files are written.
"""
save(saved::Union{Checkpoint,Optimizer}, folder::AbstractString) = fetch(save_async(saved, folder))

optimizers_of(checkpoint::Checkpoint) = checkpoint.optimizers
optimizers_of(optimizer::Optimizer) = (optimizer,)

"Where the last save of a run is kept: a run goes on with its first optimizer, from one checkpoint to the next."
run_of(optimizer::Optimizer) = optimizer
run_of(checkpoint::Checkpoint) = isempty(checkpoint.optimizers) ? checkpoint : first(checkpoint.optimizers)

"""
libzero waits within `start` for earlier saves of the run and for parameters that are being gathered, and for both, ranks that may be tasks of
this thread are needed. So they end first, while other tasks run.
"""
function begin_save(start, saved, result)
    run = run_of(saved)
    run.saving === nothing || fetch(run.saving.task)
    foreach(end_gathers, optimizers_of(saved))
    request = Ref(Handle(C_NULL))
    GC.@preserve start check(start(request))
    run.saving = Saving(@async(attend(request[], start)), result)
    return run.saving
end

"Every call on parameters ends gathers, also one that reads nothing. The save itself throws what is wrong with the optimizer."
function end_gathers(optimizer::Optimizer)
    (optimizer.alone || isempty(optimizer.tensors)) && return nothing
    try
        zero_optimizer_read(optimizer, 0, ZERO_SLOT_PARAM, 0, nothing)
    catch problem
        problem isa ZeroError || rethrow()
    end
    return nothing
end

"The error of a save, or nothing. `borrowed` holds what libzero writes until then."
function attend(request::Handle, borrowed)
    GC.@preserve borrowed begin
        status = outcome(request)
        problem = status == ZERO_OK ? nothing : last_error(status)
        zero_request_release(request)
    end
    return problem
end
