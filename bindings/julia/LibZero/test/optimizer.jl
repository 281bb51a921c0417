"Trains `w` (4 x 3) and `b` (5) for two steps on some ranks; what `result(optimizer, w, b, rank)` is on each of them."
function trained(result, size = 2; T = Float32, options...)
    on_ranks(size) do group, rank
        Optimizer(group; options...) do optimizer
            w = add_param!(optimizer, "w", T, (4, 3))
            b = add_param!(optimizer, "b", T, 5)
            seal!(optimizer)
            rank == 0 && acquire((x, y) -> (copyto!(x, 1:12); y .= 1), optimizer, w, b)
            begin!(optimizer, :root)
            for t in 1:2
                grad_acquire((grad, accumulate) -> grad .= t * rank, optimizer, b)
                grad_ready(optimizer, w, fill(grad_type(w)(t), 4, 3))
                step!(optimizer)
            end
            result(optimizer, w, b, rank)
        end
    end
end

grad_type(::Parameter{T,N,G}) where {T,N,G} = G

all_equal(values) = all(==(first(values)), values)
whole(optimizer, params...) = map(param -> acquire(copy, optimizer, param), params)

@testset "optimizers" begin
    @testset "stages give the same bits" begin
        results = [trained((o, w, b, rank) -> whole(o, w, b); stage = stage) for stage in 0:3]
        @test all_equal(results) && all_equal(results[1])
        @test size(results[1][1][1]) == (4, 3) && results[1][1][1] != reshape(1:12, 4, 3)
    end

    @testset "C sees dimensions reversed and elements in the same order" begin
        @test trained(1) do optimizer, w, b, rank
            (occursin("\"w\" f32[3, 4]", error_text(() -> acquire!(optimizer, w, zeros(Float32, 5)))),
             read!(optimizer, w, :param, zeros(Float32, 2), 5) == acquire(x -> x[1:2, 2], optimizer, w))
        end == [(true, true)]
    end

    @testset "gradients have types of their own" begin
        @test trained((o, w, b, rank) -> typeof(w), 1; T = BFloat16, grad_dtype = Float32) == [Parameter{BFloat16,2,Float32}]
        Group(nothing, 0, 1) do group
            Optimizer(group; grad_dtype = :f32) do optimizer
                plain = add_param!(optimizer, "plain", Float16, 4)
                own = add_param!(optimizer, "own", Float16, 4; grad_dtype = 0)
                tied = add_param!(optimizer, "tied", Float16, 4; tied_to = own)
                @test grad_type.((plain, own, tied)) == (Float32, Float16, Float16)
                seal!(optimizer)
                begin!(optimizer, :local)
                @test_throws ArgumentError grad_ready(optimizer, plain, zeros(Float16, 4))
                @test_throws ArgumentError grad_ready(optimizer, own, zeros(Float32, 4))
                @test eltype(grad_acquire(optimizer, plain)[1]) == Float32
            end
        end
    end

    @testset "parameters are known to their own optimizer only" begin
        Group(nothing, 0, 1) do group
            one, other = Optimizer(group), Optimizer(group)
            param = add_param!(one, "w", Float32, 4)
            buffer = add_module_buffer!(one, "m", Float32, (2, 3))
            add_param!(other, "v", Float32, 4)
            for use in (acquire, release, grad_acquire, grad_ready, slots, (o, p) -> set_order!(o, [p]),
                        (o, p) -> init_param!(o, p, :constant, 1; seed = 1), (o, p) -> add_param!(o, "t", Float32, 4; tied_to = p))
                @test_throws ArgumentError use(other, param)
            end
            @test_throws ArgumentError module_buffer(other, buffer)
            @test (size(param), length(param), eltype(param), ndims(param)) == ((4,), 4, Float32, 1)
            foreach(close, (one, other))
        end
    end

    @testset "memory of the caller's" begin
        @test trained(2; stage = 3) do optimizer, w, b, rank
            mine = zeros(Float32, 12)
            same = acquire!(optimizer, w, mine) === mine
            again = acquire(optimizer, w)
            shared = pointer(again) == pointer(mine)
            kept = optimizer.tensors[1].destinations == [mine]
            release(optimizer, w)
            still = optimizer.tensors[1].destinations == [mine]
            release(optimizer, w)
            (same, shared, kept, still, isempty(optimizer.tensors[1].destinations), mine == vec(whole(optimizer, w)[1]))
        end == fill((true, true, true, true, true, true), 2)
        trained(1) do optimizer, w, b, rank
            @test_throws ArgumentError acquire!(optimizer, w, zeros(12))
            @test_throws ArgumentError acquire!(optimizer, w, view(zeros(Float32, 8, 3), 1:4, :))
            @test error_name(() -> acquire!(optimizer, w, zeros(Float32, 11))) == "ZERO_E_INVALID_ARGUMENT"
            @test isempty(optimizer.tensors[1].destinations)
        end
    end

    @testset "what covers a tensor has its size or is flat" begin
        @test trained(1) do optimizer, w, b, rank
            turned = ones(Float32, 3, 4)
            for (use, of) in ((() -> grad_ready(optimizer, w, turned), "the gradient of w"), (() -> acquire!(optimizer, w, turned), "w"),
                              (() -> read!(optimizer, w, :param, turned), "slot :param of w"),
                              (() -> write(optimizer, w, :first_moment, turned), "slot :first_moment of w"))
                message = try use(); "" catch error; error.msg end
                @test message == "an array of size (3, 4) is given, but $of has size (4, 3); give that size, or a vector"
            end
            @test optimizer.tensors[1].acquired == 0
            wrong_type = ArgumentError("an array of Float64 is given, but the gradient of w has elements of Float32")
            @test_throws wrong_type grad_ready(optimizer, w, zeros(12))
            @test read!(optimizer, w, :param, zeros(Float32, 4, 3)) == whole(optimizer, w)[1]
            write(optimizer, w, :first_moment, zeros(Float32, 2, 3), 4) # a part has no size
            grad_ready(optimizer, w, vec(turned))
            step!(optimizer).unfilled_count
        end == [5]
    end

    @testset "results tell yes or no, and are shown with the names of their fields" begin
        trained(1; grad_norm = true) do optimizer, w, b, rank
            grad_ready(optimizer, w, fill(NaN32, 4, 3))
            skipped = step!(optimizer)
            @test skipped.skipped === true
            grad_ready(optimizer, b, ones(Float32, 5))
            result = step!(optimizer)
            @test result.skipped === false && step_stats(optimizer).overlap_active === false
            @test sprint(show, result) == "StepResult(step = 3, skipped = false, skipped_total = 1, unfilled_count = 12, " *
                                          "grad_norm = 2.23606797749979, loss_scale = 1.0, stop_reason = 0, synced = 0, spread = 0.0)"
            @test occursin(r"^KeyBounds\(type = 1, min_i64 = 0, ", sprint(show, LibZero.bounds(:stage)))
        end
    end

    @testset "gradients come in ranges of any order" begin
        @test trained(1) do optimizer, w, b, rank
            grad, accumulate = grad_acquire(optimizer, b)
            grad .= 1
            grad_ready(optimizer, b, 3:5)
            grad_ready(optimizer, b, 1:2)
            grad_ready(optimizer, w, ones(Float32, 6), 7)
            unfilled = step!(optimizer).unfilled_count
            (accumulate, unfilled, error_name(() -> grad_ready(optimizer, b, 4:6)), error_name(() -> grad_ready(optimizer, b)))
        end == [(false, 6, "ZERO_E_INVALID_ARGUMENT", "ZERO_E_STATE")]
    end

    @testset "gradients of many tensors in one call have the bits of single calls" begin
        gradient(param, t, rank) = grad_type(param)[(131i + 17t + 7rank) % 257 / 100 - 1 for i in 1:length(param)]
        function bits(stage, bulk)
            on_ranks(2) do group, rank
                Optimizer(group; stage = stage, bucket_bytes = 1024) do optimizer
                    params = [add_param!(optimizer, "p$n", T, n) for (T, n) in ((Float32, 600), (Float32, 0), (BFloat16, 7))]
                    seal!(optimizer)
                    begin!(optimizer, :local)
                    for t in 1:3
                        grads = [gradient(param, t, rank) for param in params]
                        bulk ? grads_ready(optimizer, params, grads) : foreach((p, g) -> grad_ready(optimizer, p, g), params, grads)
                        step!(optimizer).unfilled_count == 0 || error("a gradient is missing")
                    end
                    whole(optimizer, params...)
                end
            end
        end
        for stage in 0:3
            expected = bits(stage, false)
            @test !iszero(expected[1][1]) && bits(stage, true) == expected
        end
        Group(nothing, 0, 1) do group
            Optimizer(group) do optimizer
                v, w = (add_param!(optimizer, name, Float32, (2, 3)) for name in ("v", "w"))
                seal!(optimizer)
                begin!(optimizer, :local)
                give(params, grads...) = grads_ready(optimizer, params, [grads...])
                good = zeros(Float32, 2, 3)
                @test_throws ArgumentError give([w], zeros(2, 3))
                @test_throws ArgumentError give([w], view(zeros(Float32, 4, 3), 1:2, :))
                @test_throws ArgumentError give([w], zeros(Float32, 3, 2))
                @test_throws ArgumentError give([w], zeros(Float32, 5))
                @test_throws ArgumentError give([v, w], good)
                grads_ready(optimizer, typeof(w)[], Matrix{Float32}[])
                @test occursin("ids[1] is 1: ", error_text(() -> give([w, w], good, good)))
                give([v], vec(good))
                @test step!(optimizer).unfilled_count == 0
            end
        end
    end

    @testset "hyper-parameters and scalars of the run" begin
        @test trained(1; lr = 0.5) do optimizer, w, b, rank
            before = (optimizer[:lr], optimizer[:step_count])
            optimizer[:lr] = 1
            optimizer[:step_count] = 7
            (before, optimizer[:lr], optimizer[:lr, 0], step!(optimizer).step, error_name(() -> optimizer[:stage]),
             error_name(() -> optimizer[:lr, 3]))
        end == [((0.5, 2), 1.0, 1.0, 8, "ZERO_E_UNSUPPORTED", "ZERO_E_INVALID_ARGUMENT")]
    end

    @testset "sets, orders, first values, module buffers, model groups" begin
        @test on_ranks(2) do group, rank
            Optimizer(group; stage = 3) do optimizer
                set = add_set!(optimizer; algorithm = "sgd", lr = 0.5)
                a = add_param!(optimizer, "a", Float32, 300; set = set)
                b = add_param!(optimizer, "b", Float32, ())
                statistics = add_module_buffer!(optimizer, "statistics", Float64, (2, 3), :average)
                set_order!(optimizer, [a, b])
                set_gather_order!(optimizer, [a, b, a])
                model = split(group, rank)
                set_model_group!(optimizer, model)
                seal!(optimizer)
                init_param!(optimizer, a, :uniform, 0, 1; seed = 3)
                init_param!(optimizer, b, :constant, 2; seed = 3)
                begin!(optimizer, :shards)
                array = module_buffer(optimizer, statistics)
                array .= rank
                sync_module_buffers!(optimizer)
                (x, y) = whole(optimizer, a, b)
                (optimizer[:lr, set], size(array), all(==(0.5), array), all(0 .<= x .< 1), x[1] != x[2], y[])
            end
        end == fill((0.5, (2, 3), true, true, true, 2.0f0), 2)
    end

    @testset "steps in parts" begin
        @test on_ranks(2) do group, rank
            Optimizer(group; algorithm = "custom") do optimizer
                w = add_param!(optimizer, "w", Float32, (4, 3))
                seal!(optimizer)
                begin!(optimizer, :local)
                grad_ready(optimizer, w, fill(Float32(rank), 4, 3))
                reduce!(optimizer)
                for (grad, param) in zip(views(optimizer, :grad, Float32), views(optimizer, :param, Float32))
                    @test (grad.param, grad.range) == (param.param, param.range)
                    param.data .-= grad.data
                end
                refused = error_name(() -> apply!(optimizer))
                gather!(optimizer)
                (refused, unique(whole(optimizer, w)[1]))
            end
        end == fill(("ZERO_E_STATE", [-0.5f0]), 2)
        @test trained(2; stage = 2) do optimizer, w, b, rank
            micro_step!(optimizer, :reduce)
            grad_ready(optimizer, w, ones(Float32, 4, 3))
            micro_step!(optimizer, :last)
            grad_ready(optimizer, w, ones(Float32, 4, 3))
            reduce!(optimizer)
            grad = read!(optimizer, w, :grad, zeros(Float32, 12))
            apply!(optimizer)
            gather!(optimizer)
            (unique(grad), optimizer[:step_count])
        end == fill(([2.0f0], 3), 2)
    end

    @testset "weights" begin
        @test on_ranks(2) do group, rank
            Optimizer(group; algorithm = "sgd", lr = 1, divisor = :weights) do optimizer
                w = add_param!(optimizer, "w", Float32, 1)
                seal!(optimizer)
                begin!(optimizer, :local)
                set_weight!(optimizer, 1 + 2rank)
                grad_ready(optimizer, w, Float32[rank])
                step!(optimizer)
                whole(optimizer, w)[1]
            end
        end == fill([-0.75f0], 2)
    end

    @testset "say what they found and did" begin
        @test trained(2; stage = 2, trace_events = 100) do optimizer, w, b, rank
            found = verify(optimizer)
            gathered, memory = traffic_stats(optimizer, :all_gather), memory_stats(optimizer)
            (found.found, found.chunk_count, step_stats(optimizer).step_count, gathered.call_count > 0, memory.now_nbytes > 0,
             occursin("traceEvents", trace(optimizer)), !isempty(describe(optimizer)))
        end == fill((0, 0, 2, true, true, true, true), 2)
        @test trained((o, w, b, rank) -> error_name(() -> trace(o)), 1) == ["ZERO_E_STATE"]
        @test !isempty(describe())
    end

    @testset "bad input" begin
        Group(nothing, 0, 1) do group
            @test error_name(() -> Optimizer(group; algorithm = "nothing")) == "ZERO_E_UNSUPPORTED"
            Optimizer(group) do optimizer
                @test error_name(() -> add_param!(optimizer, "i", Int32, 3)) == "ZERO_E_UNSUPPORTED"
                @test error_name(() -> add_param!(optimizer, "n", Float32, (3, -1))) == "ZERO_E_INVALID_ARGUMENT"
                @test error_name(() -> add_param!(optimizer, "k", Float32, 3; stage = 1)) == "ZERO_E_UNSUPPORTED"
                @test_throws ArgumentError add_param!(optimizer, "c", Complex{Float32}, 3)
                @test_throws ArgumentError add_param!(optimizer, "z\0", Float32, 3)
                param = add_param!(optimizer, "w", Float32, 3)
                @test error_name(() -> add_param!(optimizer, "w", Float32, 3)) == "ZERO_E_INVALID_ARGUMENT"
                @test error_name(() -> acquire(optimizer, param)) == "ZERO_E_STATE"
                @test error_name(() -> add_param!(optimizer, "t", Float32, 3; tied_to = 9)) == "ZERO_E_INVALID_ARGUMENT"
                seal!(optimizer)
                @test error_name(() -> step!(optimizer)) == "ZERO_E_STATE"
                @test error_name(() -> release(optimizer, param)) == "ZERO_E_STATE"
                @test_throws ArgumentError begin!(optimizer, :nowhere)
                @test_throws DivideError acquire(array -> 1 ÷ 0, optimizer, param) # and released
                @test error_name(() -> release(optimizer, param)) == "ZERO_E_STATE"
            end
        end
    end
end
