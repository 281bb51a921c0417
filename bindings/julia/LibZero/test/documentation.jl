is_documented(name) = haskey(Base.Docs.meta(LibZero), Base.Docs.Binding(LibZero, name))

@testset "everything exported is documented" begin
    @test filter(!is_documented, names(LibZero)) == []
end
