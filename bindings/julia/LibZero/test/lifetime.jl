"Lets the collector and then the tasks of finalizers run, some rounds or until it is done."
function collect_garbage(is_done = () -> false; rounds = 3)
    for _ in 1:rounds
        GC.gc()
        sleep(0.01)
        is_done() && return true
    end
    return is_done()
end

is_stale(size_of, handle) = error_name(() -> size_of(handle)) == "ZERO_E_BAD_HANDLE"

# What tells whether a handle of each kind still lives.
probe(::Type{Config}) = handle -> LibZero.zero_config_set_i64(handle, LibZero.ZERO_KEY_STAGE, 1)
probe(::Type{Group}) = LibZero.zero_group_size
probe(::Type{<:Buffer}) = LibZero.zero_buffer_shard
probe(::Type{Optimizer}) = handle -> LibZero.zero_optimizer_set_f64(handle, 0, LibZero.ZERO_KEY_LR, 1)

make(::Val{0}) = Config(stage = 2)
make(::Val{1}) = Group(nothing, 0, 1)
make(::Val{2}) = Buffer(Group(nothing, 0, 1), Float32, 10)
make(::Val{3}) = Optimizer(Group(nothing, 0, 1))

"An element type whose arrays are remembered only after a collection: the worst moment for one."
primitive type Collected 32 end
LibZero.dtype(::Type{Collected}) = LibZero.ZERO_DTYPE_F32
@noinline function LibZero.remember!(lent::LibZero.Lent, array::Array{Collected})
    GC.gc()
    return invoke(LibZero.remember!, Tuple{LibZero.Lent,Array}, lent, array)
end

"A shard of a buffer that nothing else refers to, and its handle."
function lend_collected()
    buffer = Buffer{Collected}(Group(nothing, 0, 1), 1000, Config())
    handle = buffer.handle
    return shard(buffer), handle
end

"Makes objects, forgets them in random order while more are made, and returns how to probe each of them."
function make_and_forget(count)
    kept = Vector{Any}(nothing, 50)
    return map(1:count) do i
        object = make(Val(i % 4))
        kept[rand(1:length(kept))] = object
        i % 100 == 0 && (GC.gc(i % 500 == 0); yield()) # in parts: a process may open few files
        (probe(typeof(object)), object.handle)
    end
end

@testset "objects are released when nobody holds them" begin
    @testset "10,000 in random order" begin
        made = make_and_forget(10_000)
        @test collect_garbage(() -> all(((use, handle),) -> is_stale(use, handle), made); rounds = 2000)
    end

    @testset "an optimizer outlives its group, a group its optimizer" begin
        @test trained(2; stage = 3) do optimizer, w, b, rank
            expected = whole(optimizer, w)
            GC.gc()
            whole(optimizer, w) == expected
        end == [true, true]
        orphan = Optimizer(Group(nothing, 0, 1); stage = 2)
        collect_garbage()
        param = add_param!(orphan, "w", Float32, 3)
        seal!(orphan)
        begin!(orphan, :local)
        @test step!(orphan).step == 1
        close(orphan)
    end

    @testset "arrays keep the object whose memory they are" begin
        function lend_shard()
            buffer = Buffer(Group(nothing, 0, 1), Float32, 1000)
            return shard(buffer), probe(typeof(buffer)), buffer.handle
        end
        function lend_matrix()
            optimizer = Optimizer(Group(nothing, 0, 1))
            matrix = add_module_buffer!(optimizer, "m", Float32, (20, 50))
            seal!(optimizer)
            return vec(module_buffer(optimizer, matrix)), probe(typeof(optimizer)), optimizer.handle
        end
        lent = [make() for make in (lend_shard, lend_matrix) for _ in 1:20]
        owners = [(use, handle) for (_, use, handle) in lent]
        collect_garbage()
        foreach(((array,),) -> array .= 3, lent)
        @test !any(((use, handle),) -> is_stale(use, handle), owners)
        @test all(((array,),) -> sum(array) == 3000, lent)
        empty!(lent)
        @test collect_garbage(() -> all(((use, handle),) -> is_stale(use, handle), owners); rounds = 2000)
    end

    @testset "an object lives until its array is remembered" begin
        array, handle = lend_collected()
        collect_garbage()
        @test !is_stale(probe(Buffer), handle)
        @test length(array) == 1000
    end

    @testset "arrays that are gone are forgotten" begin
        owner = (lent = LibZero.Lent(),)
        data = zeros(10)
        for i in 1:10_000
            LibZero.lend(owner, Float64, Ptr{Cvoid}(pointer(data)), (10,))
            i % 500 == 0 && GC.gc(false)
        end
        @test length(owner.lent.arrays) < 5000
    end

    @testset "closing lets ranks of the same thread make the gathers it waits for" begin
        @test on_ranks(2) do group, rank
            optimizer = Optimizer(group; stage = 3, bucket_bytes = 1024)
            params = [add_param!(optimizer, "p$i", Float32, 1000) for i in 1:4]
            set_gather_order!(optimizer, params)
            seal!(optimizer)
            begin!(optimizer, :local)
            rank == 1 && sleep(0.2)
            acquire(sum, optimizer, params[1]) # gathers the next ones ahead
            close(optimizer)
            isopen(optimizer)
        end == [false, false]
    end
end
