module FashionTrainer
include("../examples/train_fashion/trainer.jl")
end

@testset "the example trains alike in stages 2 and 3" begin
    data = FashionTrainer.DEFAULTS.data
    if isdir(data)
        mktempdir() do folder
            losses = map(2:3) do stage
                path = joinpath(folder, "losses$stage")
                arguments = ["--stage", "$stage", "--ranks", "3", "--limit", "600", "--batch", "100", "--losses", path]
                FashionTrainer.main(FashionTrainer.parse_options(arguments))
                parse.(Float64, readlines(path))
            end
            @test all(==(losses[1]), losses)
            @test length(losses[1]) == 6 && losses[1][end] < losses[1][1]
        end
    else
        @info "left out: the data set is not in $data"
    end
    @test_throws ErrorException FashionTrainer.parse_options(["--stages", "3"])
    @test_throws ErrorException FashionTrainer.parse_options(["--stage"])
end
