package line_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/test/processor"
)

// One release while 5,000 gangs wait; what it cost without memory stands beside it.
func BenchmarkPass5000(b *testing.B) {
	for _, memory := range []bool{true, false} {
		name := "remembered"
		if !memory {
			name = "anew"
		}
		b.Run(name, func(b *testing.B) {
			s := manyWait(5000)
			s.pass()
			s.ends("run-2-0")
			asked, took := 0, int64(0)
			for b.Loop() {
				b.StopTimer()
				in := s.input()
				in.Memory = nil
				if memory {
					in.Memory = s.memory.Clone()
				}
				from := processor.Time(b)
				b.StartTimer()
				asked = line.Pass(in).Asked
				took += processor.Time(b) - from
			}
			b.ReportMetric(float64(took)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(asked), "asked")
		})
	}
}
