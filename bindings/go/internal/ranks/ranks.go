// Package ranks runs goroutines as the ranks of a local group.
package ranks

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	zero "example.org/libzero/bindings/go"
)

var groups atomic.Int64

// Name returns a name for a local group that no other group of this host has.
func Name() string { return fmt.Sprintf("go.%d.%d", os.Getpid(), groups.Add(1)) }

// Run runs body for each of count ranks in a goroutine of its own, with a group made from the config, and returns the ranks' errors. A rank
// that fails aborts its group, so that the others do not wait for it.
func Run(count int, config *zero.Config, body func(g *zero.Group, rank int) error) []error {
	name := Name()
	errs := make([]error, count)
	var running sync.WaitGroup
	for rank := 0; rank < count; rank++ {
		running.Add(1)
		go func(rank int) {
			defer running.Done()
			errs[rank] = run(name, rank, count, config, body)
		}(rank)
	}
	running.Wait()
	return errs
}

func run(name string, rank, count int, config *zero.Config, body func(g *zero.Group, rank int) error) error {
	g, err := zero.CreateLocal(context.Background(), name, rank, count, config)
	if err != nil {
		return err
	}
	defer g.Close()
	if err = body(g, rank); err != nil {
		g.Abort(err.Error())
	}
	return err
}
