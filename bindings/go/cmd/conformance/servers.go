package main

import zero "example.org/libzero/bindings/go"

const serverCount = 600

func serverScenarios() {
	runServer("server-rounds", 3, zero.ServerOrderRoundRobin, func(r *rank, server *zero.Server) {
		if r.id != 0 {
			workRounds(r, server, 3)
			return
		}
		result := serveAndAdd(r, server)
		r.add("%d %d %d", result.Pushes, result.Pulls, result.GreatestAge)
	})
	runServer("server-replay", 3, zero.ServerOrderArrival, func(r *rank, server *zero.Server) {
		if r.id != 0 {
			workRounds(r, server, 1)
			return
		}
		check(server.Replay([]uint16{32768, 32769, 1, 0}))
		serveAndAdd(r, server)
		var bytes []uint8
		for _, call := range must(server.Record()) {
			bytes = append(bytes, uint8(call), uint8(call>>8))
		}
		addHash(&r.line, bytes)
	})
	runServer("server-roles", 2, zero.ServerOrderRoundRobin, func(r *rank, server *zero.Server) {
		if r.id == 0 {
			r.addError(server.Push(background, make([]float32, serverCount)))
			must(server.Run(background))
			return
		}
		_, err := server.Run(background)
		r.addError(err)
		check(server.Leave(background))
	})
}

// runServer is runRanks with a sealed server of 600 elements.
func runServer(scenario string, size int, order zero.ServerOrder, body func(*rank, *zero.Server)) {
	runRanks(scenario, size, func(r *rank) {
		config := must(zero.NewConfig())
		defer config.Close()
		check(config.SetI64(zero.KeyServerOrder, int64(order)))
		server := must(zero.NewServer(r.group, config, serverCount))
		defer server.Close()
		check(server.Seal(background))
		body(r, server)
	})
}

// workRounds pulls, and pushes v(i, 10 t + rank), in rounds t.
func workRounds(r *rank, server *zero.Server, rounds int) {
	params := make([]float32, serverCount)
	for t := 0; t < rounds; t++ {
		check(server.Pull(background, params))
		check(server.Push(background, values[float32](serverCount, 10*t+r.id)))
	}
	check(server.Leave(background))
}

// serveAndAdd writes v(i, 0), serves, and says the parameters.
func serveAndAdd(r *rank, server *zero.Server) zero.ServerResult {
	shard, _, err := server.Shard()
	check(err)
	copy(shard, values[float32](len(shard), 0))
	result := must(server.Run(background))
	addHash(&r.line, shard)
	return result
}
