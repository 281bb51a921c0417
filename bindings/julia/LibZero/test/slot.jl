@testset "slots" begin
    save(optimizer, params) = [(param, slot.slot, read!(optimizer, param, slot.slot, zeros(slot.eltype, slot.count)))
                               for param in params for slot in slots(optimizer, param)]

    @testset "say what is kept, and of what type" begin
        @test trained((o, w, b, rank) -> slots(o, b), 1; T = BFloat16, master = :remainder) ==
              [[(slot = :param, dtype = :bf16, eltype = BFloat16, count = 5), (slot = :master, dtype = :u16, eltype = UInt16, count = 5),
                (slot = :first_moment, dtype = :f32, eltype = Float32, count = 5),
                (slot = :second_moment, dtype = :f32, eltype = Float32, count = 5)]]
        Group(nothing, 0, 1) do group
            Optimizer(group; algorithm = "custom", custom_slots = 3) do optimizer
                param = add_param!(optimizer, "w", Float32, 4)
                seal!(optimizer)
                @test [slot.slot for slot in slots(optimizer, param)] == [:param, :custom, :custom1, :custom2]
                @test read!(optimizer, param, :custom2, ones(Float32, 4)) == zeros(4)
            end
        end
    end

    @testset "a run that was saved goes on with the same bits" begin
        same = trained(2; stage = 2) do optimizer, w, b, rank
            saved, lr = save(optimizer, (w, b)), optimizer[:lr]
            further(o) = (grad_ready(o, w, ones(Float32, 4, 3)); step!(o); whole(o, w, b))
            expected = further(optimizer)
            for (param, slot, data) in saved
                write(optimizer, param, slot, rank == 0 ? data : nothing)
            end
            optimizer[:step_count] = 2
            begin!(optimizer, :shards)
            further(optimizer) == expected
        end
        @test same == [true, true]
    end

    @testset "arrays of another type are refused before libzero fills them" begin
        trained(1; T = BFloat16) do optimizer, w, b, rank
            for (slot, T) in ((:param, Float32), (:param, UInt16), (:master, BFloat16), (:first_moment, Float16), (:grad, Float32))
                @test_throws ArgumentError read!(optimizer, b, slot, zeros(T, 5))
                @test_throws ArgumentError write(optimizer, b, slot, zeros(T, 5))
            end
            @test_throws ArgumentError views(optimizer, :param, Float32)
            @test_throws ArgumentError read!(optimizer, b, :no_slot, zeros(BFloat16, 5))
            @test error_name(() -> read!(optimizer, b, :average, zeros(Float32, 5))) == "ZERO_E_UNSUPPORTED"
            @test error_name(() -> read!(optimizer, b, :param, zeros(BFloat16, 6))) == "ZERO_E_INVALID_ARGUMENT"
            @test error_name(() -> write(optimizer, b, :grad, zeros(BFloat16, 5))) == "ZERO_E_UNSUPPORTED"
            @test error_name(() -> views(optimizer, :average, Float32)) == "ZERO_E_UNSUPPORTED"
        end
    end

    @testset "views are what a rank updates" begin
        @test sort(reduce(vcat, trained((o, w, b, rank) -> [(v.param, v.range) for v in views(o, :param, Float32)], 2; stage = 0))) ==
              [(0, 1:12), (0, 1:12), (1, 1:5), (1, 1:5)]
        @test trained(1; stage = 1) do optimizer, w, b, rank
            piece = first(view for view in views(optimizer, :param, Float32) if view.param == w.id)
            piece.data == vec(whole(optimizer, w)[1])[piece.range]
        end == [true]
    end

    @testset "views of one tensor have the type of its slot" begin
        values = on_ranks(2) do group, rank
            Optimizer(group; algorithm = "custom") do optimizer
                w = add_param!(optimizer, "w", Float32, (4, 300))
                h = add_param!(optimizer, "h", BFloat16, 300)
                tied = add_param!(optimizer, "tied", BFloat16, 300; tied_to = h)
                seal!(optimizer)
                begin!(optimizer, :local)
                foreach(param -> grad_ready(optimizer, param, fill(grad_type(param)(2), size(param))), (w, h))
                reduce!(optimizer)
                for param in (w, h), (grad, value) in zip(views(optimizer, param, :grad), views(optimizer, param, :param))
                    @test (grad.param, grad.range, eltype(grad.data)) == (param.id, value.range, eltype(param))
                    value.data .= grad.data
                end
                foreach(view -> view.data .= 2, views(optimizer, h, :master))
                @test map(view -> view.range, views(optimizer, tied, :grad)) == map(view -> view.range, views(optimizer, h, :grad))
                @test isempty(views(optimizer, w, :grad)) || error_name(() -> views(optimizer, w, :master)) == "ZERO_E_UNSUPPORTED"
                gather!(optimizer)
                unique.(whole(optimizer, w, h))
            end
        end
        @test values == fill(([2.0f0], [BFloat16(2)]), 2)
    end

    @testset "updates of tensors that may stay untouched are counted" begin
        Group(nothing, 0, 1) do group
            Optimizer(group; unfilled = :untouched) do optimizer
                v, w = add_param!(optimizer, "v", Float32, 600), add_param!(optimizer, "w", Float32, 600)
                seal!(optimizer)
                begin!(optimizer, :local)
                for step in 1:3
                    grad_ready(optimizer, v, ones(Float32, 600))
                    step == 2 && grad_ready(optimizer, w, ones(Float32, 600))
                    step!(optimizer)
                end
                counts() = map(param -> only(read!(optimizer, param, :update_count, zeros(Int64, 1))), (v, w))
                @test counts() == (3, 1)
                @test map(view -> view.data, views(optimizer, :update_count, Int64)) == [[3], [1]]
                optimizer[:step_count] = 9
                write(optimizer, w, :update_count, Int64[4])
                @test counts() == (9, 4)
            end
        end
    end

    @testset "views of scales have an entry per 256 elements" begin
        Group(nothing, 0, 1) do group
            Optimizer(group; param_dtype = :f8_e4m3, first_moment_dtype = :f8_e4m3, second_moment_dtype = :f8_ue5m3) do optimizer
                w = add_param!(optimizer, "w", Float32, 1200)
                seal!(optimizer)
                acquire(array -> copyto!(array, 1:1200), optimizer, w)
                begin!(optimizer, :local)
                for slot in (:param_scale, :first_scale, :second_scale)
                    view = only(views(optimizer, slot, Float32))
                    @test (view.range, length(view.data)) == (1:1200, 5)
                    @test view.data == read!(optimizer, w, slot, zeros(Float32, 5))
                end
                @test only(views(optimizer, :param_scale, Float32)).data[1] == 256.0f0 / 448
            end
        end
    end
end
