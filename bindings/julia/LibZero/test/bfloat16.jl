@testset "BFloat16" begin
    bits(x) = reinterpret(UInt16, BFloat16(x))
    @test bits(1.0f0) == 0x3f80
    @test bits(-2.5) == 0xc020
    @test bits(1 + 2.0f0^-8) == 0x3f80 # ties to even: down
    @test bits(1 + 3 * 2.0f0^-8) == 0x3f82 # and up
    @test bits(1 + 2.0f0^-8 + 2.0f0^-20) == 0x3f81
    @test bits(prevfloat(Inf32)) == 0x7f80
    @test isnan(BFloat16(NaN32)) && isnan(BFloat16(reinterpret(Float32, 0x7f800001)))
    @test Float32(BFloat16(0.1f0)) === reinterpret(Float32, 0x3dcd0000)
    @test all(x -> bits(Float32(x)) == reinterpret(UInt16, x), reinterpret(BFloat16, collect(0x0000:0x7f80)))
    @test BFloat16(3) + BFloat16(0.5) === BFloat16(3.5)
    @test BFloat16(3) * 2 === BFloat16(6)
    @test BFloat16(1.5) + 0.25f0 === 1.75f0
    @test -BFloat16(2) < abs(BFloat16(-1)) <= one(BFloat16) && !isfinite(BFloat16(Inf))
    @test sort(BFloat16[3, 1, 2]) == BFloat16[1, 2, 3]
    @test hash(BFloat16(2)) == hash(2.0f0)
    @test string(BFloat16(0.5)) == "BFloat16(0.5)"
    @test Float64(BFloat16(0.5)) === 0.5 && Float16(BFloat16(0.5)) === Float16(0.5)
end
