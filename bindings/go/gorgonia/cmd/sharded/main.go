// Command sharded trains the classifier with libzero's Adam, sharded over the ranks that mpirun started.
package main

import (
	"context"
	"fmt"
	"log"

	zero "example.org/libzero/bindings/go"
	zerogorgonia "example.org/libzero/bindings/go/gorgonia"
	"example.org/libzero/bindings/go/gorgonia/internal/classifier"
)

const points = 64

func main() {
	ctx := context.Background()
	group := must(zero.CreateEnv(ctx, nil))
	defer group.Close()
	rank, ranks := must(group.Rank()), must(group.Size())
	model := must(classifier.NewModel(points/ranks, 1))
	solver := must(zerogorgonia.NewSolver(ctx, group, zero.Text(zero.KeyAlgorithm, "adam"), zero.Float(zero.KeyLR, 0.002)))
	defer solver.Close()
	for step := 1; step <= 200; step++ {
		loss := must(model.Run(classifier.NewBatch(step, points).Part(rank, ranks)))
		if err := solver.Step(model.Params); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("rank %d: step %d  loss %.6f\n", rank, step, loss)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
