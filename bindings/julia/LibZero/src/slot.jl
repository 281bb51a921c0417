# Slots: what is kept per element. Read and written by range, or seen where it lies.

"The slots of C's enum, and those of algorithm \"custom\" after its first."
const slot_names = Enumeration("slot", vcat(SLOT.items, [Symbol(:custom, i) => ZERO_SLOT_CUSTOM + Int32(i) for i in 1:3]))

"""
    slots(optimizer, param)

What is kept of a tensor from one step to the next, as a vector of `(slot, dtype, eltype, count)`: name of the slot, name of its dtype, type
of the arrays that `read!` and `write` take for it, number of entries. Read all of them to save a run.
"""
function slots(optimizer::Optimizer, param::Parameter)
    number = id(optimizer, param)
    return map(1:zero_optimizer_slot_count(optimizer, number)) do index
        slot, dtype, count = zero_optimizer_slot(optimizer, number, index - 1)
        (slot = name_of(slot_names, slot), dtype = name_of(DTYPE, dtype), eltype = element_type(dtype), count = Int(count))
    end
end

"The type of a slot's entries; `nothing` where it is not kept, which libzero will say."
function slot_type(optimizer::Optimizer, number::Integer, slot::Int32)
    slot == ZERO_SLOT_GRAD && return optimizer.tensors[number+1].grad_type
    for index in 0:zero_optimizer_slot_count(optimizer, number)-1
        found, dtype, _ = zero_optimizer_slot(optimizer, number, index)
        found == slot && return element_type(dtype)
    end
    return nothing
end

"Slots with one entry per so many elements."
const SCALES = (ZERO_SLOT_PARAM_SCALE, ZERO_SLOT_FIRST_SCALE, ZERO_SLOT_SECOND_SCALE)
const ELEMENTS_PER_SCALE = 256

"Throws where an array cannot stand for entries of a slot. What is not kept, libzero refuses."
function check_slot(optimizer::Optimizer, param::Parameter, kind::Int32, data)
    expected = data === nothing ? nothing : slot_type(optimizer, param.id, kind)
    expected === nothing && return nothing
    of = "slot ", label(slot_names, kind), " of ", name_in(optimizer, param)
    check_eltype(expected, data, of...)
    kind in SCALES || kind == ZERO_SLOT_UPDATE_COUNT || check_dims(param.dims, data, of...)
    return nothing
end

"""
    read!(optimizer, param, slot, data, first = 1)

Fills `data` with entries of a slot (`:param`, `:first_moment`, ...) of a tensor, from place `first` on, whoever owns them. All ranks call
it, each with its own range, which may be empty (`nothing`). An array that covers the tensor is a vector or has its size.
"""
function Base.read!(optimizer::Optimizer, param::Parameter, slot, data::Union{AbstractArray,Nothing}, first::Integer = 1)
    number, kind = id(optimizer, param), code(slot_names, slot)
    check_slot(optimizer, param, kind, data)
    zero_optimizer_read(optimizer, number, kind, first - 1, data, optimizer.stream)
    return data
end

"""
    write(optimizer, param, slot, data, first = 1)

Writes entries of a slot of a tensor. As [`read!`](@ref); where ranges overlap, the highest rank's values stay. Parameters written are
visible after `begin!(optimizer, :shards)`.
"""
function Base.write(optimizer::Optimizer, param::Parameter, slot, data::Union{AbstractArray,Nothing}, first::Integer = 1)
    number, kind = id(optimizer, param), code(slot_names, slot)
    check_slot(optimizer, param, kind, data)
    zero_optimizer_write(optimizer, number, kind, first - 1, data, optimizer.stream)
    return nothing
end

"""
    views(optimizer, slot, T)
    views(optimizer, param, slot)

The pieces of a slot that this rank updates, as a vector of `(param, range, data)`: number of the tensor, places in it, and the entries in
libzero's memory. `T` is the type of the entries; where tensors have several, or not all have the slot, ask for those of one tensor. Slots
of scales have an entry per 256 elements, `:update_count` has one; `range` counts elements there too. Gradients are valid between `reduce!`
and `gather!`, the rest outside `step!`.
"""
views(optimizer::Optimizer, slot, ::Type{T}) where {T} = GC.@preserve optimizer begin
    kind = code(slot_names, slot)
    map(1:zero_optimizer_view_count(optimizer)) do index
        piece = zero_optimizer_view(optimizer, index - 1, kind)
        param = first(piece)
        found = slot_type(optimizer, param, kind)
        name = optimizer.tensors[param+1].name
        found === T || throw(ArgumentError("views of $T are wanted, but slot $(label(slot_names, kind)) of $name holds $found"))
        view_of(optimizer, kind, T, piece...)
    end
end

views(optimizer::Optimizer, param::Parameter, slot) = GC.@preserve optimizer begin
    number, kind = holder_id(optimizer, param), code(slot_names, slot)
    pieces = filter(index -> first(zero_optimizer_view(optimizer, index, ZERO_SLOT_PARAM)) == number,
                    0:zero_optimizer_view_count(optimizer)-1)
    map(pieces) do index
        piece = zero_optimizer_view(optimizer, index, kind)
        view_of(optimizer, kind, slot_type(optimizer, number, kind), piece...)
    end
end

"A piece at an address of libzero."
function view_of(optimizer, kind, T, param, offset, count, data)
    entries = kind in SCALES ? cld(count, ELEMENTS_PER_SCALE) : kind == ZERO_SLOT_UPDATE_COUNT ? 1 : count
    return (param = param, range = range_of(offset, count), data = lend_tensor(optimizer, T, data, (Int(entries),)))
end
