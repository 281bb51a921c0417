# Statistics and texts.

"""
    MemoryStats

Bytes on this rank: `now_nbytes`, `peak_nbytes`, `formula_nbytes` (what the stage keeps for ever) and `constant_nbytes` (what comes on top).
"""
MemoryStats

"""
    memory_stats(optimizer, category = :total)
    memory_stats(buffer, category = :total)

Bytes by what they are for: `:param`, `:grad`, `:state`, `:grad_pool`, `:param_pool`, `:staging`, `:buffer`, `:accumulated`,
`:module_buffer`, `:workspace`, or all of it. Returns [`MemoryStats`](@ref).
"""
memory_stats(optimizer::Optimizer, category = :total) = zero_stats_optimizer_memory(optimizer, code(MEMORY, category))
memory_stats(buffer::Buffer, category = :total) = zero_stats_buffer_memory(buffer, code(MEMORY, category))

"""
    TrafficStats

Traffic of one operation on this rank: `call_count`, `sent_elements` (each counts once per rank it goes to) and `sent_nbytes`.
"""
TrafficStats

"""
    traffic_stats(group, operation)
    traffic_stats(optimizer, operation)

Traffic of an operation (`:all_reduce`, `:reduce_scatter`, `:all_gather`, ...), as [`TrafficStats`](@ref). Of an optimizer: gradients are
reduce-scattered, parameters (in stage 0 also states, or sums of gradients) all-gathered, votes all-reduced.
"""
traffic_stats(group::Group, operation) = zero_stats_group_traffic(group, code(OPERATION, operation))
traffic_stats(optimizer::Optimizer, operation) = zero_stats_optimizer_traffic(optimizer, code(OPERATION, operation))

"""
    StepStats

Time and stalls since `seal!`: `step_count`, `reduce_ns`, `apply_ns`, `gather_ns`, `stalled_nbytes`, `pool_grow_count`, `overlap_active`.
"""
StepStats

"""
    step_stats(optimizer)

Time and stalls of an optimizer, as [`StepStats`](@ref).
"""
step_stats(optimizer::Optimizer) = zero_stats_optimizer_step(optimizer)

"""
    describe()
    describe(group)
    describe(optimizer)

What was chosen and why, as a text: of the library, of a group, of an optimizer.
"""
describe() = zero_describe_library()
describe(group::Group) = zero_describe_group(group)
describe(optimizer::Optimizer) = zero_describe_optimizer(optimizer)

"""
    trace(optimizer)

What the optimizer did and when on this rank: JSON in the Chrome trace format. Needs the option `trace_events`.
"""
trace(optimizer::Optimizer) = zero_stats_optimizer_trace(optimizer)
