# Steps: at once, or in parts for algorithms of one's own.

"""
    StepResult

The outcome of a step: `step` (steps applied so far), `skipped` (whether a non-finite gradient made all ranks skip it), `skipped_total`,
`unfilled_count` (elements that this rank gave no gradient for), `grad_norm` (when asked for, or clipped by), `loss_scale` (of the next
step), `stop_reason` (not 0: some rank asked all ranks to stop, [`request_stop`](@ref)), `synced` (replicas were synchronised in this step,
or since), `spread` (how far they agreed then).
"""
StepResult

"""
    step!(optimizer)

One step: reduces the gradients, applies the algorithm, makes new parameters visible. All ranks apply it, or all skip it, or all get an
error. Returns a [`StepResult`](@ref). A collective.
"""
step!(optimizer::Optimizer) = zero_optimizer_step(optimizer, optimizer.stream)

"""
    sync!(optimizer)

Brings replicas together, before a save or an evaluation. If they are together already, nothing is done. Returns a [`StepResult`](@ref). A
collective of all ranks.
"""
sync!(optimizer::Optimizer) = zero_optimizer_sync(optimizer, optimizer.stream)

"""
    reduce!(optimizer)

The first part of a step: sums the gradients and decides whether to skip. Returns a [`StepResult`](@ref). A collective.
"""
reduce!(optimizer::Optimizer) = zero_optimizer_reduce(optimizer, optimizer.stream)

"""
    apply!(optimizer)

The second part of a step: updates this rank's shard, in stage 0 everything, with the algorithm; with `algorithm = "custom"` the caller
updates the [`views`](@ref) instead. A collective.
"""
apply!(optimizer::Optimizer) = zero_optimizer_apply(optimizer, optimizer.stream)

"""
    gather!(optimizer)

The last part of a step: makes new parameters visible. A collective.
"""
gather!(optimizer::Optimizer) = zero_optimizer_gather(optimizer, optimizer.stream)

"""
    request_stop(optimizer, reason = 1)

Asks all ranks to stop after a step: it is the same step on all of them, the next that this rank begins, and its [`StepResult`](@ref) tells the
largest `reason`, which is positive. Not a collective; any task or thread may call it.
"""
request_stop(optimizer::Optimizer, reason::Integer = 1) = zero_optimizer_request_stop(optimizer, reason)

"""
    VerifyResult

What [`verify`](@ref) found: `found` (0 nothing, 1 a rank's own part, 2 ranks that differ), `chunk_count`, and of the first wrong piece
`rank`, `other_rank`, `param`, `slot`, `offset` (from 0) and `count`; `replica_nbytes` and `shard_nbytes` say how much was compared.
"""
VerifyResult

"""
    verify(optimizer)

Tells whether memory holds what libzero wrote, as a [`VerifyResult`](@ref). A collective between steps.
"""
verify(optimizer::Optimizer) = zero_optimizer_verify(optimizer, optimizer.stream)
