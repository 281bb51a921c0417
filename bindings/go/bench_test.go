package zero_test

import (
	"context"
	"fmt"
	"testing"

	zero "example.org/libzero/bindings/go"
)

func BenchmarkABIVersion(b *testing.B) {
	for i := 0; i < b.N; i++ {
		zero.ABIVersion()
	}
}

func worldOfOne(b *testing.B) *zero.Group {
	group, err := zero.CreateLocal(ctx, "", 0, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { group.Close() })
	b.ReportAllocs()
	b.ResetTimer()
	return group
}

func BenchmarkGroupSize(b *testing.B) {
	group := worldOfOne(b)
	for i := 0; i < b.N; i++ {
		if _, err := group.Size(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFailingCall(b *testing.B) {
	group := worldOfOne(b)
	for i := 0; i < b.N; i++ {
		if _, _, err := group.Share(10, 1); err == nil {
			b.Fatal("no error")
		}
	}
}

func benchmarkAllReduce(b *testing.B, ctx context.Context) {
	group := worldOfOne(b)
	values := make([]float32, 8)
	for i := 0; i < b.N; i++ {
		if err := zero.AllReduce(ctx, group, values, values, zero.Sum); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAllReduce(b *testing.B) { benchmarkAllReduce(b, ctx) }

func BenchmarkAllReduceWithCancel(b *testing.B) {
	ending, cancel := context.WithCancel(ctx)
	defer cancel()
	benchmarkAllReduce(b, ending)
}

func BenchmarkStepOf1000Parameters(b *testing.B) {
	group := worldOfOne(b)
	config := must(zero.NewConfig(zero.Int(zero.KeyOverlap, 0)))
	defer config.Close()
	optimizer := must(zero.NewOptimizer(group, config))
	defer optimizer.Close()
	for id := 0; id < 1000; id++ {
		must(optimizer.AddParam(fmt.Sprintf("p%d", id), zero.DTypeF32, []int{16}, nil))
	}
	check(optimizer.Seal(ctx))
	check(optimizer.Begin(ctx, zero.SourceLocal))
	gradient := make([]float32, 16)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		for id := 0; id < 1000; id++ {
			check(zero.GiveGrad(ctx, optimizer, id, 0, gradient))
		}
		must(optimizer.Step(ctx))
	}
}
