"The Julia programs of the README that are marked as tested."
programs(readme) = [found.captures[1] for found in eachmatch(r"<!-- tested -->\n```julia\n(.*?)```"s, readme)]

"What is put behind a program that only defines functions."
const use_of_state = """
function sealed(group, stage)
    optimizer = Optimizer(group; stage = stage, lr = 0.1)
    params = [add_param!(optimizer, name, Float32, 2) for name in ("v", "w")]
    seal!(optimizer)
    return optimizer, params
end

function train(optimizer, params)
    for step in 1:2
        foreach(param -> grad_ready(optimizer, param, Float32[step, -1]), params)
        step!(optimizer)
    end
    return [acquire(copy, optimizer, param) for param in params]
end

Group(nothing, 0, 1) do group
    first, params = sealed(group, 3)
    begin!(first, :local)
    train(first, params)
    state = save(first, params)
    second, same = sealed(group, 1)
    restore(second, same, state...)
    println(state[2], " ", train(first, params) == train(second, same))
end
"""

@testset "the README's programs run" begin
    found = programs(read(joinpath(dirname(@__DIR__), "README.md"), String))
    expected = ["y = 3.0 x + -1.0", "2 true", "too late: "]
    @test length(found) == length(expected)
    mktempdir() do folder
        for (program, text) in zip(found, expected)
            path = joinpath(folder, "program.jl")
            write(path, program, occursin("function save", program) ? use_of_state : "")
            @test withenv("JULIA_LOAD_PATH" => "$(dirname(@__DIR__)):") do
                occursin(text, read(`$(Base.julia_cmd()) --startup-file=no $path`, String))
            end
        end
    end
end
