@testset "closed objects are refused by libzero itself" begin
    group = Group(nothing, 0, 1)
    buffer = Buffer(group, Float32, 10)
    optimizer = Optimizer(group)
    config = Config()
    checkpoint = Checkpoint(group)
    param = add_param!(optimizer, "w", Float32, 4)
    statistics = add_module_buffer!(optimizer, "m", Float32, 4)
    objects = (config, buffer, checkpoint, optimizer, group)
    foreach(close, objects)
    foreach(close, objects) # once is enough, twice does nothing

    uses = [
        () -> config[:stage] = 1,
        () -> group_rank(group), () -> group_size(group), () -> local_rank(group), () -> local_size(group), () -> host_count(group),
        () -> share(group, 3, 0), () -> split(group, 0), () -> status(group), () -> abort(group), () -> set_deadline!(group, 5),
        () -> quiet(group),
        () -> describe(group), () -> traffic_stats(group, :barrier), () -> barrier(group),
        () -> all_reduce!(group, [1], :sum), () -> reduce_scatter!(group, [1], [1], :sum), () -> all_gather!(group, [1], [1]),
        () -> bcast!(group, [1]), () -> reduce!(group, [1], [1], :sum), () -> gather!(group, [1], [1], 1),
        () -> scatter!(group, [1], [1], 1), () -> all_to_all!(group, [1], [1]), () -> send(group, [1], 1), () -> recv!(group, [1], 1),
        () -> Buffer(group, Float32, 1), () -> Optimizer(group),
        () -> shard(buffer), () -> shard_range(buffer), () -> acquire(buffer), () -> release(buffer), () -> memory_stats(buffer),
        () -> reduce_scatter!(buffer, zeros(Float32, 10), :sum), () -> read!(buffer, zeros(Float32, 1)),
        () -> write(buffer, zeros(Float32, 1)),
        () -> add_set!(optimizer), () -> set_model_group!(optimizer, group), () -> set_order!(optimizer, [param]),
        () -> set_gather_order!(optimizer, [param]), () -> add_param!(optimizer, "v", Float32, 1),
        () -> add_module_buffer!(optimizer, "n", Float32, 1), () -> seal!(optimizer), () -> begin!(optimizer, :local),
        () -> init_param!(optimizer, param, :constant, 1; seed = 0), () -> module_buffer(optimizer, statistics),
        () -> sync_module_buffers!(optimizer), () -> acquire(optimizer, param), () -> acquire!(optimizer, param, zeros(Float32, 4)),
        () -> release(optimizer, param), () -> grad_acquire(optimizer, param), () -> grad_ready(optimizer, param),
        () -> grad_ready(optimizer, param, zeros(Float32, 4)), () -> set_weight!(optimizer, 1), () -> micro_step!(optimizer, :last),
        () -> step!(optimizer), () -> reduce!(optimizer), () -> apply!(optimizer), () -> gather!(optimizer), () -> optimizer[:lr],
        () -> optimizer[:lr] = 1, () -> optimizer[:step_count], () -> optimizer[:step_count] = 1, () -> slots(optimizer, param),
        () -> read!(optimizer, param, :param, zeros(Float32, 4)), () -> write(optimizer, param, :param, zeros(Float32, 4)),
        () -> views(optimizer, :param, Float32), () -> verify(optimizer), () -> trace(optimizer), () -> describe(optimizer),
        () -> memory_stats(optimizer), () -> traffic_stats(optimizer, :all_gather), () -> step_stats(optimizer),
        () -> request_stop(optimizer), () -> save(optimizer, "."), () -> resume!(optimizer, "."), () -> push!(checkpoint, optimizer),
        () -> push!(checkpoint, buffer, "b"), () -> push!(checkpoint, [1], "a"), () -> checkpoint["k"] = "t", () -> checkpoint["k"],
        () -> rename!(checkpoint, "a" => "b"), () -> save(checkpoint, "."), () -> load!(checkpoint, "."), () -> skipped(checkpoint),
        () -> Checkpoint(group),
    ]
    @test [error_name(use) for use in uses] == fill("ZERO_E_BAD_HANDLE", length(uses))
    @test occursin("released", error_text(() -> group_size(group)))
    @test !any(isopen, objects)
    @test error_name(() -> Group(nothing, 0, 1, config)) == "ZERO_E_BAD_HANDLE"
end
