package main

import zero "example.org/libzero/bindings/go"

const (
	elements = 10
	blocks   = 12
	message  = 5
)

func groupScenarios() {
	runRanks("places", 3, places)
	runRanks("shares", 3, shares)
	runRanks("share-error", 3, shareError)
	runRanks("split", 3, split)
	runRanks("split-none", 3, splitNone)
	for _, op := range []zero.ReduceOp{zero.Sum, zero.Avg, zero.Min, zero.Max, zero.Prod} {
		allReduce[float32](op)
		allReduce[float64](op)
		allReduce[int32](op)
		allReduce[int64](op)
		allReduce[uint8](op)
	}
	runRanks("all-reduce-in-place", 3, allReduceInPlace)
	runRanks("all-reduce-empty", 3, allReduceEmpty)
	runRanks("reduce-scatter", 3, reduceScatter)
	runRanks("all-gather", 3, allGather)
	runRanks("broadcast", 3, broadcast)
	runRanks("reduce", 3, reduce)
	runRanks("gather", 3, gather)
	runRanks("scatter", 3, scatter)
	runRanks("all-to-all", 3, allToAll)
	runRanks("send-recv", 3, sendRecv)
	runRanks("barrier", 3, func(r *rank) { r.addStatus(r.group.Barrier(background)) })
	runRanks("balance", 3, balance)
	worldOfOne()
	runRanks("all-reduce-lengths", 1, allReduceLengths)
	runRanks("bad-root", 1, badRoot)
	runRanks("balance-error", 1, func(r *rank) {
		_, err := r.group.Balance(background, 1, 8, 63, 8)
		r.addError(err)
	})
}

func places(r *rank) {
	r.add("%d/%d/%d/%d/%d", must(r.group.Rank()), must(r.group.Size()), must(r.group.LocalRank()), must(r.group.LocalSize()),
		must(r.group.HostCount()))
}

func shares(r *rank) {
	for id := 0; r.id == 0 && id < r.size; id++ {
		offset, count, err := r.group.Share(elements, id)
		check(err)
		r.add("%d:%d", offset, count)
	}
}

func shareError(r *rank) {
	if r.id == 0 {
		_, _, err := r.group.Share(elements, 3)
		r.addError(err)
	}
}

func split(r *rank) {
	colors, keys := []int{0, 1, 0}, []int{2, 1, 0}
	group := must(r.group.Split(background, colors[r.id], keys[r.id]))
	defer group.Close()
	r.add("%d/%d", must(group.Rank()), must(group.Size()))
}

func splitNone(r *rank) {
	group := must(r.group.Split(background, []int{0, -1, 0}[r.id], 0))
	if group == nil {
		r.add("-")
		return
	}
	defer group.Close()
	r.add("%d", must(group.Size()))
}

func allReduce[T zero.Element](op zero.ReduceOp) {
	runRanks("all-reduce-"+op.String()+"-"+zero.DTypeOf[T]().String(), 3, func(r *rank) {
		recv := make([]T, elements)
		check(zero.AllReduce(background, r.group, values[T](elements, r.id), recv, op))
		addHash(&r.line, recv)
	})
}

// own returns this rank's part of a whole of ten elements.
func own(r *rank) []float32 {
	_, count, err := r.group.Share(elements, r.id)
	check(err)
	return values[float32](count, r.id)
}

// onlyOn returns an array on root and nothing elsewhere.
func onlyOn(r *rank, root int) []float32 {
	if r.id != root {
		return nil
	}
	return values[float32](elements, r.id)
}

func allReduceInPlace(r *rank) {
	data := values[float32](elements, r.id)
	check(zero.AllReduce(background, r.group, data, data, zero.Sum))
	addHash(&r.line, data)
}

func allReduceEmpty(r *rank) {
	r.addStatus(zero.AllReduce[float32](background, r.group, nil, nil, zero.Sum))
}

func reduceScatter(r *rank) {
	recv := own(r)
	check(zero.ReduceScatter(background, r.group, values[float32](elements, r.id), recv, zero.Sum))
	addHash(&r.line, recv)
}

func allGather(r *rank) {
	recv := make([]float32, elements)
	check(zero.AllGather(background, r.group, own(r), recv))
	addHash(&r.line, recv)
}

func broadcast(r *rank) {
	data := values[float32](elements, r.id)
	check(zero.Broadcast(background, r.group, data, 1))
	addHash(&r.line, data)
}

func reduce(r *rank) {
	recv := onlyOn(r, 2)
	check(zero.Reduce(background, r.group, values[float32](elements, r.id), recv, zero.Max, 2))
	if recv != nil {
		addHash(&r.line, recv)
	}
}

func gather(r *rank) {
	recv := onlyOn(r, 0)
	check(zero.Gather(background, r.group, own(r), recv, elements, 0))
	if recv != nil {
		addHash(&r.line, recv)
	}
}

func scatter(r *rank) {
	recv := own(r)
	check(zero.Scatter(background, r.group, onlyOn(r, 1), recv, elements, 1))
	addHash(&r.line, recv)
}

func allToAll(r *rank) {
	recv := make([]float32, blocks)
	check(zero.AllToAll(background, r.group, values[float32](blocks, r.id), recv))
	addHash(&r.line, recv)
}

// sendRecv passes a message from rank 0 to the last; each rank between adds 1 before it sends it on.
func sendRecv(r *rank) {
	data := values[float32](message, 0)
	if r.id > 0 {
		check(zero.Recv(background, r.group, data, r.id-1))
	}
	if r.id == r.size-1 {
		addHash(&r.line, data)
		return
	}
	for i := 0; r.id > 0 && i < len(data); i++ {
		data[i]++
	}
	check(zero.Send(background, r.group, data, r.id+1))
}

func worldOfOne() {
	var l line
	group := must(zero.CreateLocal(background, "", 0, 1, nil))
	defer group.Close()
	recv := make([]float32, elements)
	check(zero.AllReduce(background, group, values[float32](elements, 0), recv, zero.Sum))
	addHash(&l, recv)
	l.print("world-of-one")
}

func allReduceLengths(r *rank) {
	r.addError(zero.AllReduce(background, r.group, values[float32](elements, r.id), make([]float32, elements-1), zero.Sum))
}

func balance(r *rank) {
	seconds, items := []float64{1, 1.5, 3}, []int{192, 240, 208}
	r.add("%d", must(r.group.Balance(background, seconds[r.id], items[r.id], 640, 16)))
}

func badRoot(r *rank) {
	r.addError(zero.Broadcast(background, r.group, values[float32](elements, r.id), 5))
}
