package main

import (
	"fmt"

	"example.org/libzero/bindings/go/internal/czero"
)

func printTables() {
	for _, constant := range czero.Constants {
		fmt.Printf("constant %s: %d\n", constant.Name, constant.Value)
	}
	for _, place := range czero.Layout {
		field := place.Field
		if field == "" {
			field = "*"
		}
		fmt.Printf("field %s %s: %d %d\n", place.Struct, field, place.Offset, place.Size)
	}
}
