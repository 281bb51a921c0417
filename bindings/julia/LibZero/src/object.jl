# What all handles have in common: they are given back once, by close or after the object became unreachable.

"""
An object of libzero. Its handle stays what it was after `close`, so that libzero itself says which object was used too late.
"""
abstract type Object end

# ccall takes objects as handles, and keeps them alive until it returns.
Base.cconvert(::Type{Handle}, object::Object) = object
Base.unsafe_convert(::Type{Handle}, object::Object) = object.handle

Base.isopen(object::Object) = object.open
Base.show(io::IO, object::Object) = print(io, typeof(object), object.open ? "(open)" : "(closed)")

function Base.close(object::Object)
    object.open || return nothing
    object.open = false
    give_back(object)
    return nothing
end

"""
The finalizer of every object. Giving back may wait for other ranks, which the garbage collector must not, so a task does it. While an Array
in the object's memory is reachable, the object stays.
"""
function close_later(object::Object)
    object.open || return nothing
    if is_lent(object)
        finalizer(close_later, object)
    else
        @async close(object)
    end
    return nothing
end

"True while an Array that was handed out is reachable."
is_lent(::Object) = false

"The value of `f(object)`; the object is closed before it is returned, and also when `f` throws."
function with(f, object::Object)
    try
        return f(object)
    finally
        close(object)
    end
end

"""
Calls a C function that takes one handle on a thread of its own: other tasks, and the garbage collector, go on until it has returned. An
interrupted task leaves the thread to itself.
"""
function call_apart(f::Ptr{Cvoid}, handle::Handle)
    thread = Ref(Culong(0))
    if ccall(:uv_thread_create, Cint, (Ptr{Culong}, Ptr{Cvoid}, Handle), thread, f, handle) != 0
        return ccall(f, Cvoid, (Handle,), handle)
    end
    joined = false
    try
        for polls in Iterators.countfrom(1)
            joined = ccall(:pthread_tryjoin_np, Cint, (Culong, Ptr{Cvoid}), thread[], C_NULL) == 0
            joined && break
            let_others_run(polls)
        end
    finally
        joined || ccall(:pthread_detach, Cint, (Culong,), thread[])
    end
    return nothing
end
