package main

// random is splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// stream returns the start of a stream of a seed.
func stream(seed, number uint64) random {
	state := random(seed)
	state = random(state.next() + number)
	return random(state.next())
}

// sampler says which samples a step trains on. Every rank computes the same permutation, so nothing is communicated.
type sampler struct {
	count, batch int
	seed         uint64
	epoch        int // that order belongs to
	order        []int
}

func newSampler(count, batch int, seed uint64) *sampler {
	return &sampler{count: count, batch: batch, seed: seed, epoch: -1, order: make([]int, count)}
}

func (s *sampler) stepsPerEpoch() int { return (s.count + s.batch - 1) / s.batch }

// of returns the samples of a step, counted from 0 over all epochs.
func (s *sampler) of(step int) []int {
	if epoch := step / s.stepsPerEpoch(); epoch != s.epoch {
		s.shuffle(epoch)
	}
	first := step % s.stepsPerEpoch() * s.batch
	return s.order[first:min(first+s.batch, s.count)]
}

// shuffle permutes as Fisher and Yates did. Streams below 2^32 belong to first values.
func (s *sampler) shuffle(epoch int) {
	state := stream(s.seed, 1<<32+uint64(epoch))
	for i := range s.order {
		s.order[i] = i
	}
	for i := s.count - 1; i > 0; i-- {
		j := state.next() % uint64(i+1)
		s.order[i], s.order[j] = s.order[j], s.order[i]
	}
	s.epoch = epoch
}

// numbers returns those from first on, below end.
func numbers(first, end int) []int {
	all := make([]int, 0, max(end-first, 0))
	for number := first; number < end; number++ {
		all = append(all, number)
	}
	return all
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}
