// Package processor tells benchmarks what they cost on a machine that has other work as well.
package processor

import (
	"syscall"
	"testing"
)

// Time is the processor time of this process so far in nanoseconds: all threads, user and system, garbage collection
// included. Other work on the machine makes an operation take longer, and not cost more.
func Time(tb testing.TB) int64 {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// Turns runs do until the benchmark is long enough, and reports and returns the processor time of one turn in nanoseconds.
// Time and allocations are reported as always.
func Turns(b *testing.B, do func(turn int)) float64 {
	b.Helper()
	b.ReportAllocs()
	from := Time(b)
	for turn := 0; b.Loop(); turn++ {
		do(turn)
	}
	per := float64(Time(b)-from) / float64(b.N)
	b.ReportMetric(per, "cpu-ns/op")
	return per
}
