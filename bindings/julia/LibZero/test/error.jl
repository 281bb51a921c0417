"What libzero does for its texts."
function fill_text(text, out, nbytes, needed)
    needed[] = sizeof(text) + 1
    cut = min(sizeof(text), nbytes - 1)
    copyto!(out, 1, codeunits(text), 1, cut)
    out[cut+1] = 0
    return LibZero.ZERO_OK
end

@testset "errors" begin
    @testset "carry code, name and libzero's text" begin
        error = try
            Config(stage = 4)
        catch error
            error
        end
        @test error isa ZeroError
        @test error.code == LibZero.ZERO_E_INVALID_ARGUMENT && error.name == "ZERO_E_INVALID_ARGUMENT"
        @test error.text == "ZERO_KEY_STAGE is 4, but must be in 0 .. 3"
        @test sprint(showerror, error) == "ZERO_E_INVALID_ARGUMENT: ZERO_KEY_STAGE is 4, but must be in 0 .. 3"
    end

    @testset "each task gets its own, however many fail at once" begin
        wrong = Threads.Atomic{Int}(0)
        @sync for key in 90001:90064
            @async for _ in 1:50
                text = try
                    LibZero.bounds(key)
                catch error
                    yield()
                    error.text
                end
                occursin("key $key ", text) || Threads.atomic_add!(wrong, 1)
            end
        end
        @test wrong[] == 0
    end

    @testset "names that nobody knows list those that there are" begin
        message = try
            LibZero.code(LibZero.REDUCE, :total)
        catch error
            error.msg
        end
        @test message == "there is no reduce :total; there are :sum, :avg, :min, :max, :prod"
        @test_throws ArgumentError LibZero.name_of(LibZero.SLOT, 99)
        @test (LibZero.label(LibZero.SLOT, 3), LibZero.label(LibZero.SLOT, 99)) == (":master", "99")
    end

    @testset "texts of any length are whole" begin
        long = "x"^5000
        @test LibZero.text((out, nbytes, needed) -> fill_text(long, out, nbytes, needed)) == long
        @test LibZero.text((out, nbytes, needed) -> fill_text("", out, nbytes, needed)) == ""
    end
end
