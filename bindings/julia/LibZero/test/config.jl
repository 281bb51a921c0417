@testset "configs" begin
    @testset "take every kind of value" begin
        config = Config(:lr => 1, stage = 3, algorithm = "sgd", divisor = :weights, overlap = false, clip_norm = 0.5, grad_dtype = Float32,
                        first_moment_dtype = :f8_e4m3, set = 0x01)
        config[:accumulate_dtype] = :f32
        config[LibZero.ZERO_KEY_MOMENTUM] = 0.9
        @test isopen(config)
        @test config.values[LibZero.ZERO_KEY_STAGE] == 3
        @test sprint(show, config) == "Config(open)"
        close(config)
        @test sprint(show, config) == "Config(closed)"
    end

    @testset "libzero judges keys, types and bounds" begin
        @test error_name(() -> Config(99999 => 1)) == "ZERO_E_UNSUPPORTED"
        @test error_name(() -> Config(stage = 1.0)) == "ZERO_E_INVALID_ARGUMENT"
        @test error_name(() -> Config(stage = "1")) == "ZERO_E_INVALID_ARGUMENT"
        @test error_name(() -> Config(algorithm = 1)) == "ZERO_E_INVALID_ARGUMENT"
        @test error_name(() -> Config(lr = NaN)) == "ZERO_E_INVALID_ARGUMENT"
    end

    @testset "what cannot be a value never gets there" begin
        @test_throws ArgumentError Config(stage = nothing)
        message = try Config(lr = 1 // 10); "" catch error; error.msg end
        @test occursin("key :lr is given a Rational", message)
        @test_throws ArgumentError("key :stage takes no name") Config(stage = :three)
        @test_throws ArgumentError Config(divisor = :heads)
        @test_throws ArgumentError Config(grad_dtype = Complex{Float32})
        @test_throws ArgumentError Config(no_such_key = 1)
        @test_throws ArgumentError Config(algorithm = "ad\0amw")
        @test_throws InexactError Config(seed = big(2)^70)
    end

    @testset "know a tier by its name and its number" begin
        Group(nothing, 0, 1) do group
            for value in (:device, 1, true, 0x01, big(1), Float32) # Float32: its dtype is 1
                config = Config(tier = value)
                @test LibZero.integer_in(config, LibZero.ZERO_KEY_TIER, 0) == 1
                @test occursin("ZERO_KEY_DEVICE", error_text(() -> Optimizer(group, config)))
                close(config)
            end
            for value in (2, -1, 1.0, "1")
                @test error_name(() -> Config(tier = value)) == "ZERO_E_INVALID_ARGUMENT"
            end
            @test_throws ArgumentError Config(tier = :nowhere)
        end
    end

    @testset "tell types, bounds and defaults of keys" begin
        @test LibZero.bounds(:stage) === KeyBounds(sizeof(KeyBounds), 1, 0, 3, 1, 0, 0, 0)
        @test LibZero.bounds(:lr).default_f64 == 1e-3
        @test LibZero.bounds(LibZero.ZERO_KEY_ALGORITHM).type == 3
    end

    @testset "are copied by what is made of them" begin
        Group(nothing, 0, 1) do group
            config = Config(lr = 0.25)
            optimizer = Optimizer(group, config)
            config[:lr] = 0.5
            close(config)
            @test optimizer[:lr] == 0.25
            close(optimizer)
        end
    end
end
