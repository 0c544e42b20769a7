// Package race tells a test whether the race detector is on. Under it code runs ten times slower or more, so that a test of one
// goroutine that goes through thousands of random histories or through every small world goes through fewer there: the detector
// has nothing to find in it. `make test-unit` runs the tests of the packages that ask once more without it, and then whole.
package race
