package zero

import (
	"context"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// StepResult is the outcome of a step, the same on all ranks but for Unfilled.
type StepResult struct {
	Step         int     // steps applied so far, this one included
	Skipped      bool    // a gradient that is not finite on some rank made all ranks skip this step
	SkippedTotal int     // steps skipped so far
	Unfilled     int     // elements this rank gave no gradient for
	GradNorm     float64 // of the reduced gradient, with KeyGradNorm or KeyClipNorm; otherwise 0
	LossScale    float64 // what the loss of the next step is multiplied by
	StopReason   int     // the largest that a rank gave to RequestStop; 0: none did
	Synced       bool    // replicas were synchronised in this step, or since by Sync
	Spread       float64 // with Synced: how far replicas agreed, 1 = all changed alike; otherwise 0
}

// Step reduces the gradients, applies them and makes the new parameters visible. Gradients never made ready count as zero. All ranks apply,
// or all skip, or all get an error. A collective.
func (o *Optimizer) Step(ctx context.Context) (StepResult, error) {
	return o.step(ctx, czero.Zero_optimizer_step)
}

// Sync brings replicas together (KeyReplicaRanks), before a save or an evaluation. Where they are together already nothing is done. A
// collective of all ranks.
func (o *Optimizer) Sync(ctx context.Context) (StepResult, error) {
	return o.step(ctx, czero.Zero_optimizer_sync)
}

// Reduce is the first part of Step, for algorithms of the program's own: it reduces the gradients and decides whether to skip. A collective.
func (o *Optimizer) Reduce(ctx context.Context) (StepResult, error) {
	return o.step(ctx, czero.Zero_optimizer_reduce)
}

// Apply is the second part of Step: it updates what this rank owns. With the algorithm "custom" the program does that, through Views.
func (o *Optimizer) Apply(ctx context.Context) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_apply(raw, o.onStream()) })
}

// Gather is the last part of Step: it makes the new parameters visible. A collective.
func (o *Optimizer) Gather(ctx context.Context) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_gather(raw, o.onStream()) })
}

func (o *Optimizer) step(
	ctx context.Context, call func(czero.Optimizer, unsafe.Pointer, *czero.StepResult) *czero.Failure,
) (StepResult, error) {
	var result czero.StepResult
	err := o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		if failure := czero.Zero_step_result_init(&result, uint64(unsafe.Sizeof(result))); failure != nil {
			return failure
		}
		return call(raw, o.onStream(), &result)
	})
	return StepResult{
		Step: int(result.Step), Skipped: result.Skipped != 0, SkippedTotal: int(result.SkippedTotal),
		Unfilled: int(result.UnfilledCount), GradNorm: result.GradNorm, LossScale: result.LossScale, StopReason: int(result.StopReason),
		Synced: result.Synced != 0, Spread: result.Spread,
	}, err
}

// Finding is what Verify found.
type Finding int64

// Findings.
const (
	FindingNone     = Finding(czero.ZERO_FINDING_NONE)
	FindingShard    = Finding(czero.ZERO_FINDING_SHARD)    // a rank's own part is not what the last step left there
	FindingReplicas = Finding(czero.ZERO_FINDING_REPLICAS) // ranks that must hold the same bits do not
)

// String returns its name, for example "replicas".
func (f Finding) String() string { return nameOf("ZERO_FINDING_", int64(f)) }

// VerifyResult is the outcome of Verify, the same on all ranks but for the last two fields. Without a finding the fields from Rank to Count
// say nothing.
type VerifyResult struct {
	Found         Finding
	Chunks        int  // pieces that are wrong, on all ranks together; what follows is of the first
	Rank          int  // the rank that holds wrong bits
	OtherRank     int  // -1, or a rank that differs from Rank where either may be wrong
	Param         int  // the parameter's id
	Slot          Slot // of that parameter
	Offset, Count int  // the entries of the slot between which all wrong bits of the piece lie
	ReplicaBytes  int  // bytes of this rank that were compared with those of other ranks
	ShardBytes    int  // bytes of this rank that were compared with what the last step left
}

// Verify tells whether memory holds what libzero wrote (KeyVerifyEvery says when shards are compared too). A collective between steps.
func (o *Optimizer) Verify(ctx context.Context) (VerifyResult, error) {
	var result czero.VerifyResult
	err := o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		if failure := czero.Zero_verify_result_init(&result, uint64(unsafe.Sizeof(result))); failure != nil {
			return failure
		}
		return czero.Zero_optimizer_verify(raw, o.onStream(), &result)
	})
	return VerifyResult{
		Found: Finding(result.Found), Chunks: int(result.ChunkCount), Rank: int(result.Rank), OtherRank: int(result.OtherRank),
		Param: int(result.Param), Slot: Slot(result.Slot), Offset: int(result.Offset), Count: int(result.Count),
		ReplicaBytes: int(result.ReplicaNbytes), ShardBytes: int(result.ShardNbytes),
	}, err
}
