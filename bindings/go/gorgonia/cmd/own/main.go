// Command own trains the classifier with Gorgonia's Adam.
package main

import (
	"fmt"
	"log"

	"example.org/libzero/bindings/go/gorgonia/internal/classifier"
	"gorgonia.org/gorgonia"
)

const points = 64

func main() {
	model := must(classifier.NewModel(points, 1))
	solver := gorgonia.NewAdamSolver(gorgonia.WithLearnRate(0.002))
	for step := 1; step <= 200; step++ {
		loss := must(model.Run(classifier.NewBatch(step, points)))
		if err := solver.Step(model.Params); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("step %d  loss %.6f\n", step, loss)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
