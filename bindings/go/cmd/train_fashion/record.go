package main

import (
	"encoding/binary"
	"fmt"
	"hash"
	"os"
)

// record is the file of losses, of the rank that keeps one. Each is written at once: one that
// cannot be ends the run.
type record struct {
	file *os.File
}

func newRecord(path string, kept bool) *record {
	if path == "" || !kept {
		path = os.DevNull
	}
	return &record{must(os.Create(path))}
}

func (r *record) add(loss float64) { must(fmt.Fprintf(r.file, "%.9g\n", loss)) }

func (r *record) close() { check(r.file.Close()) }

// addBytes adds parameters to a hash.
func addBytes(hash hash.Hash, params ...[]float32) {
	for _, param := range params {
		check(binary.Write(hash, binary.LittleEndian, param))
	}
}
