# Structs that libzero fills: fields that answer yes or no, and how all of them are shown.

const Structure = Union{CheckpointResult,KeyBounds,MemoryStats,ServerResult,StepResult,StepStats,TrafficStats,VerifyResult}

Base.getproperty(result::StepResult, field::Symbol) = field === :skipped ? getfield(result, field) != 0 : getfield(result, field)
Base.getproperty(stats::StepStats, field::Symbol) = field === :overlap_active ? getfield(stats, field) != 0 : getfield(stats, field)

function Base.show(io::IO, structure::Structure)
    fields = ("$field = $(getproperty(structure, field))" for field in fieldnames(typeof(structure)) if field !== :struct_size)
    print(io, nameof(typeof(structure)), "(", join(fields, ", "), ")")
end
