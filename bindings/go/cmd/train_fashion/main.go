// Command train_fashion trains a small classifier on Fashion-MNIST with its states, gradients and
// parameters sharded over ranks: goroutines, or under a launcher the processes that it started. All
// that touches libzero's optimizer is in trainer.go.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"

	zero "example.org/libzero/bindings/go"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("train_fashion: ")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument '%s' (-help lists the options)", flag.Arg(0))
	}
	if *ranks < 1 || *epochs < 1 || *batch < 1 {
		log.Fatal("-ranks, -epochs and -batch must be at least 1")
	}
	launcher := must(zero.Launcher())
	if launcher != "" {
		refuseRanks(launcher)
		*ranks = 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	train, test := must(readDataset(*data, "train", *limit)), must(readDataset(*data, "t10k", 0))
	ended := make(chan struct{})
	for rank := 0; rank < *ranks; rank++ {
		go func(t trainer) {
			t.run()
			ended <- struct{}{}
		}(trainer{ctx: ctx, train: train, test: test, launched: launcher != "", rank: rank, size: *ranks})
	}
	for rank := 0; rank < *ranks; rank++ {
		<-ended
	}
}

// refuseRanks ends the program where -ranks was given although a launcher has started the ranks.
func refuseRanks(launcher string) {
	flag.Visit(func(given *flag.Flag) {
		if given.Name == "ranks" {
			log.Fatalf("-ranks is for ranks that this program starts, but a launcher has started them (%s is %s)", launcher, os.Getenv(launcher))
		}
	})
}

// check ends the program, and with it the other ranks.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must is check for a call with a result.
func must[T any](value T, err error) T {
	check(err)
	return value
}
