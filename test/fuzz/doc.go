// Command fuzz runs every fuzz target of the repository, one after the other, and keeps the inputs that matter:
//
//	go run ./test/fuzz -time 10m            # or: make fuzz FUZZTIME=10m
//	go run ./test/fuzz -run 'FuzzRead$'     # some targets only
//	go run ./test/fuzz -time 0              # only choose anew which inputs are kept
//
// Of everything that Go's fuzzer found interesting, now or in earlier runs, it keeps in the package's testdata/fuzz the
// fewest small inputs that run every line which any of them runs and the target's own seeds do not. `go test` plays these
// each time. An input that makes a target fail is kept by Go itself; the command then ends with 1.
package main
