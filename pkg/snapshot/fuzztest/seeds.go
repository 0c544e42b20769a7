package fuzztest

import (
	"math/rand/v2"
	"testing"
)

// Add gives a fuzz test the seeds to begin with.
func Add(f *testing.F) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
}

// Seeds are inputs to begin with: none, which breaks nothing, and some of chance.
func Seeds() [][]byte {
	seeds := [][]byte{{}}
	r := rand.New(rand.NewPCG(3, 5))
	for range 24 {
		seed := make([]byte, 8+r.IntN(120))
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		seeds = append(seeds, seed)
	}
	return seeds
}
