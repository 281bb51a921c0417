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
    @test_throws ErrorException FashionTrainer.parse_options(["--rank", "3"])
    withenv("RANK" => "0", "WORLD_SIZE" => "1") do
        @test FashionTrainer.parse_options(["--stage", "2"]).stage == 2
        problem = try FashionTrainer.parse_options(["--ranks", "3"]) catch problem; problem end
        @test problem isa ErrorException && occursin("(WORLD_SIZE is 1)", problem.msg)
    end
    for flag in ("--ranks", "--epochs", "--batch")
        @test_throws ErrorException FashionTrainer.parse_options([flag, "0"])
        @test FashionTrainer.parse_options([flag, "1"])[Symbol(flag[3:end])] == 1
    end
end

@testset "bad data is an error that names the file" begin
    mktempdir() do folder
        path = joinpath(folder, "labels")
        read_labels(bytes...) = (write(path, UInt8[bytes...]); FashionTrainer.read_idx(path, 1))
        @test read_labels(0, 0, 8, 1, 0, 0, 0, 2, 3, 4) == [3, 4]
        for (bytes, text) in ((0, 0, 8) => "no IDX file", (0, 0, 8, 3, 0, 0, 0, 1, 3) => "no IDX file",
                              (0, 0, 8, 1, 0, 0, 0, 2, 3) => "1 bytes", (0, 0, 8, 1, 0, 0, 0, 0) => "holds no items")
            problem = try read_labels(bytes...) catch problem; problem end
            @test problem isa ErrorException && startswith(problem.msg, "$path: $text")
        end
    end
end
