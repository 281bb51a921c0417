package zero_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	zero "example.org/libzero/bindings/go"
)

// Three goroutines are the ranks of a group.
func ExampleAllReduce() {
	name := fmt.Sprintf("example-all-reduce.%d", os.Getpid()) // the same for all ranks, and no other group's
	var ranks sync.WaitGroup
	for rank := 0; rank < 3; rank++ {
		ranks.Add(1)
		go func(rank int) {
			defer ranks.Done()
			group, err := zero.CreateLocal(context.Background(), name, rank, 3, nil)
			if err != nil {
				log.Fatal(err)
			}
			defer group.Close()
			values := []float32{1, float32(rank)}
			if err := zero.AllReduce(context.Background(), group, values, values, zero.Sum); err != nil {
				log.Fatal(err)
			}
			if rank == 0 {
				fmt.Println(values)
			}
		}(rank)
	}
	ranks.Wait()
	// Output: [3 3]
}

// One parameter follows its gradient, which is 2w - 6: w goes to 3.
func ExampleOptimizer() {
	ctx := context.Background()
	group, err := zero.CreateEnv(ctx, nil) // one rank without a launcher
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	config, err := zero.NewConfig(zero.Int(zero.KeyStage, 3), zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 0.25))
	if err != nil {
		log.Fatal(err)
	}
	defer config.Close()
	optimizer, err := zero.NewOptimizer(group, config)
	if err != nil {
		log.Fatal(err)
	}
	defer optimizer.Close()
	id, err := optimizer.AddParam("w", zero.DTypeF32, []int{1}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := optimizer.Seal(ctx); err != nil {
		log.Fatal(err)
	}
	if err := optimizer.Begin(ctx, zero.SourceShards); err != nil { // all zero
		log.Fatal(err)
	}
	for step := 0; step < 20; step++ {
		w, err := zero.Acquire[float32](ctx, optimizer, id)
		if err != nil {
			log.Fatal(err)
		}
		grad := []float32{2*w[0] - 6}
		if err := optimizer.Release(id); err != nil {
			log.Fatal(err)
		}
		if err := zero.GiveGrad(ctx, optimizer, id, 0, grad); err != nil {
			log.Fatal(err)
		}
		if _, err := optimizer.Step(ctx); err != nil {
			log.Fatal(err)
		}
	}
	w := make([]float32, 1)
	if err := zero.CopyParam(ctx, optimizer, id, w); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", w[0])
	// Output: 3.000
}

// Every rank owns a part of the buffer and can read all of it.
func ExampleBuffer() {
	ctx := context.Background()
	group, err := zero.CreateLocal(ctx, "", 0, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	buffer, err := zero.NewBuffer[float64](ctx, group, nil, 4)
	if err != nil {
		log.Fatal(err)
	}
	defer buffer.Close()
	if err := buffer.Write(ctx, 1, []float64{7, 8}); err != nil {
		log.Fatal(err)
	}
	whole, err := buffer.AcquireWhole(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(whole)
	if err := buffer.ReleaseWhole(); err != nil {
		log.Fatal(err)
	}
	// Output: [0 7 8 0]
}

// A rank that waits for one that does not come gives up when its context ends.
func ExampleGroup_Barrier() {
	name := fmt.Sprintf("example-barrier.%d", os.Getpid())
	groups := make([]*zero.Group, 2)
	var met sync.WaitGroup
	for rank := range groups {
		met.Add(1)
		go func(rank int) {
			defer met.Done()
			group, err := zero.CreateLocal(context.Background(), name, rank, 2, nil)
			if err != nil {
				log.Fatal(err)
			}
			groups[rank] = group
		}(rank)
	}
	met.Wait()
	defer groups[0].Close()
	defer groups[1].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := groups[0].Barrier(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, zero.ErrAborted))
	fmt.Println(groups[1].Status())
	// Output:
	// true true
	// libzero: ZERO_E_ABORTED: rank 0 called zero_group_abort: context deadline exceeded (reported by rank 0)
}
