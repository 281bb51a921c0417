@testset "arrays" begin
    whole = reshape(collect(Float32, 1:12), 3, 4)

    @testset "contiguous ones are taken as they are" begin
        for (array, first) in ((whole, 1), (view(whole, :, 2:3), 4), (view(whole, 2:3, 2), 5), (view(vec(whole), 3:6), 3),
                               (reshape(view(whole, :, 1:2), 6), 1), (reinterpret(Int32, whole), 1))
            @test LibZero.address_of(array) == pointer(whole, first)
            @test LibZero.length_of(array) == length(array)
        end
        @test LibZero.address_of(nothing) == C_NULL
        @test LibZero.length_of(nothing) == 0
    end

    @testset "others are refused" begin
        text = codeunits("text")
        for array in (view(whole, 1:2, :), view(whole, 1, :), transpose(whole), 1:4, text, view(text, 2:3), reshape(text, 2, 2),
                      reinterpret(Float32, text), reinterpret(Float32, view(zeros(UInt8, 9), 2:9)), 3.5f0)
            @test_throws ArgumentError LibZero.address_of(array)
        end
    end

    @testset "element types are never converted" begin
        Group(nothing, 0, 1) do group
            @test_throws ArgumentError all_reduce!(group, Float32[1], Float64[0], :sum)
            @test_throws ArgumentError all_reduce!(group, Complex{Float32}[1], :sum)
            @test_throws ArgumentError all_reduce!(group, Int16[1], :sum)
            @test_throws ArgumentError all_reduce!(group, nothing, nothing, :sum)
            @test_throws ArgumentError all_reduce!(group, 1.0f0, :sum)
            @test_throws ArgumentError all_reduce!(group, view(whole, 1, :), :sum)
            @test_throws ArgumentError all_reduce!(group, whole, :total)
            Buffer(group, Float32, 8) do buffer
                @test_throws ArgumentError read!(buffer, zeros(8))
                @test_throws ArgumentError write(buffer, zeros(Int32, 8))
                @test_throws ArgumentError reduce_scatter!(buffer, zeros(8), :sum)
            end
        end
        @test whole == reshape(1:12, 3, 4)
    end
end
