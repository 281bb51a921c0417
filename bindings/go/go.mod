module example.org/libzero/bindings/go

go 1.19
