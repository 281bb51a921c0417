package main

import (
	"context"
	"sync"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/ranks"
)

var background = context.Background()

// rank is one rank of a scenario.
type rank struct {
	line
	id, size int
	group    *zero.Group // closed after all ranks have ended
}

// runRanks runs body on the ranks of a new group, then prints the scenario's line: what each rank had to say, in the order of ranks.
func runRanks(scenario string, size int, body func(*rank)) {
	var whole line
	whole.addRanks(size, body)
	whole.print(scenario)
}

// addRanks runs body on the ranks of a new group, and adds what each rank had to say, in the order of ranks.
func (l *line) addRanks(size int, body func(*rank)) {
	name := ranks.Name()
	all := make([]rank, size)
	var running sync.WaitGroup
	for id := range all {
		all[id].id, all[id].size = id, size
		running.Add(1)
		go func(self *rank) {
			defer running.Done()
			self.group = must(zero.CreateLocal(background, name, self.id, size, nil))
			body(self)
		}(&all[id])
	}
	running.Wait()
	for id := range all {
		l.words = append(l.words, all[id].words...)
		all[id].group.Close()
	}
}
