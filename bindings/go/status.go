package zero

import "example.org/libzero/bindings/go/internal/czero"

// Status is the code of an error. Its range says what was lost: -1xx this call only, -2xx the object, -3xx the group on every rank,
// -4xx the process. A Status is an error itself, the one that errors.Is looks for.
type Status int32

// Codes.
const (
	ErrInvalidArgument = Status(czero.ZERO_E_INVALID_ARGUMENT) // an argument is out of bounds or contradicts another
	ErrBadHandle       = Status(czero.ZERO_E_BAD_HANDLE)       // the object was closed, or is nil
	ErrUnsupported     = Status(czero.ZERO_E_UNSUPPORTED)      // unknown key, or a combination this build or machine cannot do
	ErrState           = Status(czero.ZERO_E_STATE)            // the call is not allowed in the object's present state
	ErrOutOfMemory     = Status(czero.ZERO_E_OUT_OF_MEMORY)    // also when a whole host would run out
	ErrBusy            = Status(czero.ZERO_E_BUSY)             // reserved
	ErrModule          = Status(czero.ZERO_E_MODULE)           // a module (MPI, CUDA, NCCL), or what it needs, is missing or of another build
	ErrRendezvous      = Status(czero.ZERO_E_RENDEZVOUS)       // the ranks of a new group did not meet
	ErrSystem          = Status(czero.ZERO_E_SYSTEM)           // the operating system refused something
	ErrLauncher        = Status(czero.ZERO_E_LAUNCHER)         // the launcher's variables contradict each other
	ErrDevice          = Status(czero.ZERO_E_DEVICE)           // CUDA offers no such device
	ErrCheckpoint      = Status(czero.ZERO_E_CHECKPOINT)       // a save is damaged, or of another model
	ErrNotFound        = Status(czero.ZERO_E_NOT_FOUND)        // there is no committed save: only then start anew

	ErrReplicasDiffer = Status(czero.ZERO_E_REPLICAS_DIFFER) // first values claimed to be equal on all ranks are not
	ErrPoolLimit      = Status(czero.ZERO_E_POOL_LIMIT)      // gradients arrived too far out of order
	ErrCorrupt        = Status(czero.ZERO_E_CORRUPT)         // memory was changed by something other than libzero
	ErrDeviceFailed   = Status(czero.ZERO_E_DEVICE_FAILED)   // CUDA reported an error while memory of a device was read or written

	ErrTimeout    = Status(czero.ZERO_E_TIMEOUT)     // a rank did not arrive within the deadline
	ErrPeerLost   = Status(czero.ZERO_E_PEER_LOST)   // a rank's process ended
	ErrPeerLeft   = Status(czero.ZERO_E_PEER_LEFT)   // a rank closed its group while others still used it
	ErrPeerFailed = Status(czero.ZERO_E_PEER_FAILED) // a rank met an error inside a collective
	ErrMismatch   = Status(czero.ZERO_E_MISMATCH)    // ranks called different collectives
	ErrAborted    = Status(czero.ZERO_E_ABORTED)     // a rank called Abort, or the context of a call ended
	ErrTransport  = Status(czero.ZERO_E_TRANSPORT)   // MPI or shared memory reported an error

	ErrForked   = Status(czero.ZERO_E_FORKED)   // the process forked after libzero was first used
	ErrInternal = Status(czero.ZERO_E_INTERNAL) // a defect in libzero
)

// String returns the code's name, for example "ZERO_E_TIMEOUT".
func (s Status) String() string { return czero.Zero_status_name(int32(s)) }

// Error returns the same, so that a Status can be the target of errors.Is.
func (s Status) Error() string { return s.String() }
