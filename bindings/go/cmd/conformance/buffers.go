package main

import zero "example.org/libzero/bindings/go"

const (
	bufferCount = 1000
	written     = 400
	read        = 500
)

func bufferScenarios() {
	runBuffer("shards", 3, func(r *rank, buffer *zero.Buffer[float32]) {
		shard, offset, err := buffer.Shard()
		check(err)
		r.add("%d:%d", offset, len(shard))
	})
	runBuffer("buffer-write-read", 3, func(r *rank, buffer *zero.Buffer[float32]) {
		data := make([]float32, read)
		writeParts(r, buffer)
		check(buffer.Read(background, 100*r.id, data))
		addHash(&r.line, data)
	})
	runBuffer("buffer-whole", 3, func(r *rank, buffer *zero.Buffer[float32]) {
		writeParts(r, buffer)
		addHash(&r.line, must(buffer.AcquireWhole(background)))
		check(buffer.ReleaseWhole())
	})
	runBuffer("buffer-whole-twice", 1, func(r *rank, buffer *zero.Buffer[float32]) {
		must(buffer.AcquireWhole(background))
		_, err := buffer.AcquireWhole(background)
		r.addError(err)
		check(buffer.ReleaseWhole())
	})
	runBuffer("buffer-reduce-scatter", 3, func(r *rank, buffer *zero.Buffer[float32]) {
		check(buffer.ReduceScatter(background, values[float32](bufferCount, r.id), zero.Avg))
		shard, _, err := buffer.Shard()
		check(err)
		addHash(&r.line, shard)
	})
}

// runBuffer is runRanks with a buffer of 1000 elements.
func runBuffer(scenario string, size int, body func(*rank, *zero.Buffer[float32])) {
	runRanks(scenario, size, func(r *rank) {
		buffer := must(zero.NewBuffer[float32](background, r.group, nil, bufferCount))
		defer buffer.Close()
		body(r, buffer)
	})
}

// writeParts writes v(i, r) of rank r from element 300 r on.
func writeParts(r *rank, buffer *zero.Buffer[float32]) {
	check(buffer.Write(background, 300*r.id, values[float32](written, r.id)))
}
