"The Julia programs of the README that are marked as tested."
programs(readme) = [found.captures[1] for found in eachmatch(r"<!-- tested -->\n```julia\n(.*?)```"s, readme)]

@testset "the README's programs run" begin
    found = programs(read(joinpath(dirname(@__DIR__), "README.md"), String))
    @test length(found) == 1
    mktempdir() do folder
        for program in found
            path = joinpath(folder, "program.jl")
            write(path, program)
            @test withenv("JULIA_LOAD_PATH" => "$(dirname(@__DIR__)):") do
                occursin("y = 3.0 x + -1.0", read(`$(Base.julia_cmd()) --startup-file=no $path`, String))
            end
        end
    end
end
