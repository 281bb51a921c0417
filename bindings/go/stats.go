package zero

import (
	"time"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Operation is a kind of collective, as statistics count them.
type Operation int32

// Operations.
const (
	OperationBarrier       = Operation(czero.ZERO_OPERATION_BARRIER)
	OperationBroadcast     = Operation(czero.ZERO_OPERATION_BROADCAST)
	OperationAllReduce     = Operation(czero.ZERO_OPERATION_ALL_REDUCE)
	OperationReduceScatter = Operation(czero.ZERO_OPERATION_REDUCE_SCATTER)
	OperationAllGather     = Operation(czero.ZERO_OPERATION_ALL_GATHER)
	OperationReduce        = Operation(czero.ZERO_OPERATION_REDUCE)
	OperationGather        = Operation(czero.ZERO_OPERATION_GATHER)
	OperationScatter       = Operation(czero.ZERO_OPERATION_SCATTER)
	OperationAllToAll      = Operation(czero.ZERO_OPERATION_ALL_TO_ALL)
	OperationSend          = Operation(czero.ZERO_OPERATION_SEND)
	OperationRecv          = Operation(czero.ZERO_OPERATION_RECV)
)

// String returns its name, for example "all_reduce".
func (o Operation) String() string { return nameOf("ZERO_OPERATION_", int64(o)) }

// Memory is what bytes are for.
type Memory int32

// Categories of memory.
const (
	MemoryTotal        = Memory(czero.ZERO_MEMORY_TOTAL)
	MemoryParam        = Memory(czero.ZERO_MEMORY_PARAM)         // parameters this rank keeps
	MemoryGrad         = Memory(czero.ZERO_MEMORY_GRAD)          // gradients this rank keeps
	MemoryState        = Memory(czero.ZERO_MEMORY_STATE)         // optimizer states
	MemoryGradPool     = Memory(czero.ZERO_MEMORY_GRAD_POOL)     // gradients not yet reduced
	MemoryParamPool    = Memory(czero.ZERO_MEMORY_PARAM_POOL)    // gathered parameters
	MemoryStaging      = Memory(czero.ZERO_MEMORY_STAGING)       // shared memory of the optimizer's groups
	MemoryBuffer       = Memory(czero.ZERO_MEMORY_BUFFER)        // sharded buffers
	MemoryAccumulated  = Memory(czero.ZERO_MEMORY_ACCUMULATED)   // gradients that micro-steps add up
	MemoryModuleBuffer = Memory(czero.ZERO_MEMORY_MODULE_BUFFER) // module buffers
	MemoryWorkspace    = Memory(czero.ZERO_MEMORY_WORKSPACE)     // of the algorithm
)

// String returns its name, for example "grad_pool".
func (m Memory) String() string { return nameOf("ZERO_MEMORY_", int64(m)) }

// MemoryStats are bytes on this rank. Formula is what the optimizer's stage keeps for ever, Constant what buckets, padding and the largest
// tensor add at most.
type MemoryStats struct {
	Now, Peak, Formula, Constant int
}

func (s *MemoryStats) read(call func(*czero.MemoryStats) *czero.Failure) *czero.Failure {
	var raw czero.MemoryStats
	failure := czero.Zero_memory_stats_init(&raw, uint64(unsafe.Sizeof(raw)))
	if failure == nil {
		failure = call(&raw)
	}
	*s = MemoryStats{
		Now: int(raw.NowNbytes), Peak: int(raw.PeakNbytes), Formula: int(raw.FormulaNbytes), Constant: int(raw.ConstantNbytes),
	}
	return failure
}

// TrafficStats are what this rank sent: an element counts once per rank it goes to.
type TrafficStats struct {
	Calls, SentElements, SentBytes int
}

func (s *TrafficStats) read(call func(*czero.TrafficStats) *czero.Failure) *czero.Failure {
	var raw czero.TrafficStats
	failure := czero.Zero_traffic_stats_init(&raw, uint64(unsafe.Sizeof(raw)))
	if failure == nil {
		failure = call(&raw)
	}
	*s = TrafficStats{Calls: int(raw.CallCount), SentElements: int(raw.SentElements), SentBytes: int(raw.SentNbytes)}
	return failure
}

// StepStats are times inside Step since Seal, and how far gradients were out of order.
type StepStats struct {
	Steps                 int           // calls of Step or Reduce
	Reduce, Apply, Gather time.Duration // waiting included
	StalledBytes          int           // gradients that were ready but waited for an earlier bucket
	PoolGrowths           int           // times the gradient pool grew beyond its first size
	OverlapActive         bool          // a thread of libzero reduces while the caller works
}

func (s *StepStats) read(call func(*czero.StepStats) *czero.Failure) *czero.Failure {
	var raw czero.StepStats
	failure := czero.Zero_step_stats_init(&raw, uint64(unsafe.Sizeof(raw)))
	if failure == nil {
		failure = call(&raw)
	}
	*s = StepStats{
		Steps: int(raw.StepCount), Reduce: time.Duration(raw.ReduceNs), Apply: time.Duration(raw.ApplyNs),
		Gather: time.Duration(raw.GatherNs), StalledBytes: int(raw.StalledNbytes), PoolGrowths: int(raw.PoolGrowCount),
		OverlapActive: raw.OverlapActive != 0,
	}
	return failure
}
