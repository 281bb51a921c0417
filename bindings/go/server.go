package zero

import (
	"context"
	"runtime"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// Server is one rank's part in parameter servers: the first KeyServerRanks ranks of a group hold and update parameters, the others push
// and pull them. zero/server.h tells the rules.
type Server struct {
	object object[czero.Server]
	count  int
}

// ServerResult is what a server did in Run. The age of a push is the number of pushes that were applied since its worker last pulled.
type ServerResult struct {
	Pushes, Pulls            int
	Skipped                  int // pushes that were not finite
	Waited                   int // pushes and pulls that could not be served when they arrived
	Left, Lost               int // workers
	ReceivedBytes, SentBytes int // of pushes, of pulls
	GreatestAge              int
	Ages                     [6]int // pushes of age 0, 1, 2 .. 3, 4 .. 7, 8 .. 15, 16 and more
}

// NewServer makes one rank's part in servers of count parameters, float32. Not a collective.
func NewServer(g *Group, config *Config, count int) (*Server, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	options, err := config.snapshot()
	if err != nil {
		return nil, err
	}
	defer czero.Zero_config_release(options)
	members, group := g.share()
	s := &Server{count: count}
	s.object.members = members
	if failure := czero.Zero_server_create(group, options, int64(count), &s.object.handle); failure != nil {
		s.object.close(czero.Zero_server_release)
		return nil, wrap(failure)
	}
	runtime.SetFinalizer(s, func(s *Server) { go s.Close() })
	return s, nil
}

// Seal compares what all ranks made, and connects servers and workers. A collective.
func (s *Server) Seal(ctx context.Context) error { return s.self().wait(ctx, czero.Zero_server_seal) }

// Shard returns the parameters that this server holds, valid until Close, and their place. Not to be used during Run.
func (s *Server) Shard() (shard []float32, offset int, err error) {
	var address uintptr
	var first, count int64
	err = s.self().do(func(raw czero.Server) *czero.Failure { return czero.Zero_server_shard(raw, &address, &first, &count) })
	return sliceOf[float32](address, int(count)), int(first), err
}

// Replay gives a server the order that it keeps to in Run: what Record returned on it.
func (s *Server) Replay(record []uint16) error {
	var first unsafe.Pointer
	if len(record) > 0 {
		first = unsafe.Pointer(&record[0])
	}
	return s.self().do(func(raw czero.Server) *czero.Failure {
		return czero.Zero_server_replay(raw, first, int64(len(record)))
	})
}

// Record returns the order that a server recorded in Run: for each push the worker's number, for each pull 32768 more.
func (s *Server) Record() ([]uint16, error) {
	var record []uint16
	err := s.self().do(func(raw czero.Server) *czero.Failure {
		var count int64
		if failure := czero.Zero_server_record(raw, nil, 0, &count); failure != nil || count == 0 {
			return failure
		}
		record = make([]uint16, count)
		return czero.Zero_server_record(raw, unsafe.Pointer(&record[0]), count, &count)
	})
	return record, err
}

// Run serves the workers until all have left or were lost.
func (s *Server) Run(ctx context.Context) (ServerResult, error) {
	var raw czero.ServerResult
	err := s.self().wait(ctx, func(handle czero.Server) *czero.Failure {
		if failure := czero.Zero_server_result_init(&raw, uint64(unsafe.Sizeof(raw))); failure != nil {
			return failure
		}
		return czero.Zero_server_run(handle, &raw)
	})
	return ServerResult{
		Pushes: int(raw.PushCount), Pulls: int(raw.PullCount), Skipped: int(raw.SkippedCount), Waited: int(raw.WaitedCount),
		Left: int(raw.LeftCount), Lost: int(raw.LostCount), ReceivedBytes: int(raw.ReceivedNbytes), SentBytes: int(raw.SentNbytes),
		GreatestAge: int(raw.GreatestAge),
		Ages: [6]int{int(raw.Age0Count), int(raw.Age1Count), int(raw.Age2Count), int(raw.Age4Count), int(raw.Age8Count),
			int(raw.Age16Count)},
	}, err
}

// Push sends a gradient, or parameters, to the servers. It waits within the bound of staleness.
func (s *Server) Push(ctx context.Context, data []float32) error {
	return s.self().wait(ctx, func(raw czero.Server) *czero.Failure {
		return czero.Zero_server_push(raw, addressOf(data), int64(len(data)))
	})
}

// Pull sets data to the parameters. It waits as Push.
func (s *Server) Pull(ctx context.Context, data []float32) error {
	return s.self().wait(ctx, func(raw czero.Server) *czero.Failure {
		return czero.Zero_server_pull(raw, addressOf(data), int64(len(data)))
	})
}

// Leave tells the servers that this worker makes no more calls.
func (s *Server) Leave(ctx context.Context) error { return s.self().wait(ctx, czero.Zero_server_leave) }

// Close gives the object back. A worker that has not left counts as lost. It may be called again, and always returns nil.
func (s *Server) Close() error {
	if s != nil && s.object.handle != 0 {
		runtime.SetFinalizer(s, nil)
		s.object.close(czero.Zero_server_release)
	}
	return nil
}

func (s *Server) self() *object[czero.Server] {
	if s == nil {
		return nil
	}
	return &s.object
}
