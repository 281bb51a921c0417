package main

import zero "example.org/libzero/bindings/go"

const unknownKey zero.Key = 99999

func libraryScenarios() {
	for _, scenario := range []struct {
		name string
		body func(*line)
	}{
		{"version", func(l *line) { l.add("%s", zero.Version()) }},
		{"abi", abi},
		{"status-names", func(l *line) { l.add("%v %v %v", zero.Status(-300), zero.Status(0), zero.Status(1)) }},
		{"dtype-sizes", dtypeSizes},
		{"dtype-unknown", dtypeUnknown},
		{"feature-local", featureLocal},
		{"launcher", func(l *line) { l.add("%s", must(zero.Launcher())) }},
		{"bounds-stage", boundsStage},
		{"bounds-lr", boundsLR},
		{"bounds-unknown", boundsUnknown},
		{"config-unknown-key", func(l *line) { set(l, zero.Int(unknownKey, 1)) }},
		{"config-wrong-type", func(l *line) { set(l, zero.Float(zero.KeyStage, 1)) }},
		{"config-out-of-bounds", func(l *line) { set(l, zero.Int(zero.KeyStage, 4)) }},
		{"config-string", func(l *line) { set(l, zero.Text(zero.KeyAlgorithm, "adamw")) }},
	} {
		var l line
		scenario.body(&l)
		l.print(scenario.name)
	}
}

func abi(l *line) {
	major, minor := zero.ABIVersion()
	l.add("%d", major<<16|minor)
}

func dtypeSizes(l *line) {
	for _, dtype := range []zero.DType{
		zero.DTypeF32, zero.DTypeF64, zero.DTypeF16, zero.DTypeBF16, zero.DTypeI32, zero.DTypeI64, zero.DTypeU8,
	} {
		l.add("%d", must(dtype.Size()))
	}
}

func dtypeUnknown(l *line) {
	_, err := zero.DType(99).Size()
	l.addError(err)
}

func featureLocal(l *line) {
	if zero.HasFeature(zero.FeatureLocal) {
		l.add("1")
	} else {
		l.add("0")
	}
}

func boundsStage(l *line) {
	bounds := must(zero.Bounds(zero.KeyStage))
	l.add("%d %d %d %d", int64(bounds.Type), bounds.MinI64, bounds.MaxI64, bounds.DefaultI64)
}

func boundsLR(l *line) {
	bounds := must(zero.Bounds(zero.KeyLR))
	l.add("%d", int64(bounds.Type))
	l.addDouble(bounds.MinF64)
	l.addDouble(bounds.MaxF64)
	l.addDouble(bounds.DefaultF64)
}

func boundsUnknown(l *line) {
	_, err := zero.Bounds(unknownKey)
	l.addError(err)
}

func set(l *line, setting zero.Setting) {
	config := must(zero.NewConfig())
	defer config.Close()
	l.addError(setting(config))
}
