# Saves as tools see them: one process lists, describes, verifies, compares, exports and removes them.

"""
    Save(path)
    Save(f, path)

The save at `path`, or the newest valid one if `path` is a folder of saves. No group is needed. With a function `f`, the save is closed when
`f(save)` has ended.
"""
mutable struct Save <: Object
    handle::Handle
    open::Bool

    Save(path::AbstractString) = finalizer(close_later, new(zero_save_open(path), true))
end

Save(f::Function, path::AbstractString) = with(f, Save(path))

give_back(saved::Save) = zero_save_release(saved)

"""
    describe(save; form = :plain)

The step, the run, tensors with types, shapes and slots, settings, texts and files, as lines or (`form = :json`) as one JSON value.
"""
describe(saved::Save; form = :plain) = zero_save_describe(saved, code(TEXT_FORM, form))

"""
    verify(save)

Reads all files and checks every block and every header. A [`ZeroError`](@ref) names the file and the block that is damaged.
"""
verify(saved::Save) = zero_save_verify(saved)

"""
    differences(save, other; form = :plain)

Compares two saves: a text with a line for each difference, or (`form = :json`) one JSON list. Of equal saves, the lines are none.
"""
function differences(saved::Save, other::Save; form = :plain)
    number = code(TEXT_FORM, form)
    zero_save_compare(saved, other)
    return zero_save_differences(saved, number)
end

"""
    export_params(save, path)

Writes the parameters as plain safetensors: a file that ends with `.safetensors`, or a new folder.
"""
export_params(saved::Save, path::AbstractString) = zero_save_export(saved, path)

"""
    progress(save)

Bytes that the last `verify`, `differences` or `export_params` has processed, and bytes in total.
"""
progress(saved::Save) = zero_save_progress(saved)

"""
    list_saves(folder; form = :plain)

All saves of a folder, newest first, as lines or (`form = :json`) as one JSON list.
"""
list_saves(folder::AbstractString; form = :plain) = zero_save_list(folder, code(TEXT_FORM, form))

"""
    prunable_saves(folder, keep)

Names of the committed saves beyond the `keep` newest of each run, oldest first.
"""
prunable_saves(folder::AbstractString, keep::Integer) = split(zero_save_prunable(folder, keep), '\n'; keepempty = false)

"""
    remove_save(folder, name)

Removes a save: first its commit, then its files. The newest valid save of the folder is not removed.
"""
remove_save(folder::AbstractString, name::AbstractString) = zero_save_remove(folder, name)
