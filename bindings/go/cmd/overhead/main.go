// Command overhead prints the nanoseconds of a call, to be compared with those of other languages (bindings/conformance/README.md).
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	zero "example.org/libzero/bindings/go"
)

const (
	rounds   = 5
	params   = 1000
	elements = 16
)

var background = context.Background()

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run() error {
	group, err := zero.CreateLocal(background, "", 0, 1, nil)
	if err != nil {
		return err
	}
	defer group.Close()
	optimizer, err := newOptimizer(group)
	if err != nil {
		return err
	}
	defer optimizer.Close()
	grads, err := newGradients(optimizer)
	if err != nil {
		return err
	}
	for _, measured := range []struct {
		name  string
		calls int
		call  func() error
	}{
		{"empty-call", 1000000, func() error { zero.ABIVersion(); return nil }},
		{"group-size", 100000, func() error { _, err := group.Size(); return err }},
		{"step-1000", 100, func() error { return step(optimizer) }},
		{"step-1000-bulk", 100, func() error { return bulkStep(optimizer, grads) }},
	} {
		if err := measure(measured.name, measured.calls, measured.call); err != nil {
			return err
		}
	}
	return nil
}

// measure prints the least of the rounds' means: what else the machine does only adds to one.
func measure(name string, calls int, call func() error) error {
	least := time.Duration(1<<63 - 1)
	for round := 0; round < rounds; round++ {
		start := time.Now()
		for i := 0; i < calls; i++ {
			if err := call(); err != nil {
				return err
			}
		}
		if elapsed := time.Since(start); elapsed < least {
			least = elapsed
		}
	}
	fmt.Printf("%s: %.1f\n", name, float64(least.Nanoseconds())/float64(calls))
	return nil
}

func newOptimizer(group *zero.Group) (*zero.Optimizer, error) {
	config, err := zero.NewConfig(zero.Int(zero.KeyOverlap, 0))
	if err != nil {
		return nil, err
	}
	defer config.Close()
	optimizer, err := zero.NewOptimizer(group, config)
	for id := 0; err == nil && id < params; id++ {
		_, err = optimizer.AddParam(fmt.Sprintf("p%d", id), zero.DTypeF32, []int{elements}, nil)
	}
	if err == nil {
		err = optimizer.Seal(background)
	}
	if err == nil {
		err = optimizer.Begin(background, zero.SourceLocal)
	}
	return optimizer, err
}

func step(optimizer *zero.Optimizer) error {
	gradient := make([]float32, elements)
	for id := 0; id < params; id++ {
		if err := zero.GiveGrad(background, optimizer, id, 0, gradient); err != nil {
			return err
		}
	}
	_, err := optimizer.Step(background)
	return err
}

// newGradients names the same gradient for every parameter.
func newGradients(optimizer *zero.Optimizer) (*zero.Gradients[float32], error) {
	gradient := make([]float32, elements)
	ids, grads := make([]int, params), make([][]float32, params)
	for id := range ids {
		ids[id], grads[id] = id, gradient
	}
	return zero.NewGradients(optimizer, ids, grads)
}

func bulkStep(optimizer *zero.Optimizer, grads *zero.Gradients[float32]) error {
	if err := grads.Ready(background); err != nil {
		return err
	}
	_, err := optimizer.Step(background)
	return err
}
