# Tests of LibZero; need an installed libzero (LibZero's README says where it is looked for).

using LibZero
using Test

include("conformance/ranks.jl")

"What is to be said of the ZeroError that a call throws; what it returns when it throws none."
function judge(say, call)
    try
        return call()
    catch error
        error isa ZeroError || rethrow()
        return say(error)
    end
end

error_name(call) = judge(error -> error.name, call)
error_text(call) = judge(error -> error.text, call)

@testset "LibZero" begin
    include("documentation.jl")
    include("array.jl")
    include("bfloat16.jl")
    include("error.jl")
    include("config.jl")
    include("group.jl")
    include("buffer.jl")
    include("optimizer.jl")
    include("slot.jl")
    include("device.jl")
    include("checkpoint.jl")
    include("saved.jl")
    include("closed.jl")
    include("lifetime.jl")
    include("interrupt.jl")
    include("saving.jl")
    include("library.jl")
    include("threads.jl")
    include("processes.jl")
    include("readme.jl")
    include("trainer.jl")
end
