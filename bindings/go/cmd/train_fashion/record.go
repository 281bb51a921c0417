package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"os"
)

// record is the file of losses, of the rank that keeps one.
type record struct {
	file *os.File
	text *bufio.Writer
}

func newRecord(path string, kept bool) *record {
	if path == "" || !kept {
		path = os.DevNull
	}
	file := must(os.Create(path))
	return &record{file, bufio.NewWriter(file)}
}

func (r *record) add(loss float64) { must(fmt.Fprintf(r.text, "%.9g\n", loss)) }

func (r *record) close() {
	check(r.text.Flush())
	check(r.file.Close())
}

// addBytes adds parameters to a hash.
func addBytes(hash hash.Hash, params ...[]float32) {
	for _, param := range params {
		check(binary.Write(hash, binary.LittleEndian, param))
	}
}
