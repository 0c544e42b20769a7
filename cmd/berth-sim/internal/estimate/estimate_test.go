package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
)

func TestOf(t *testing.T) {
	// Student's t for 3 degrees of freedom is 3.182446; the deviation of 1, 2, 3, 6 is √(14/3).
	got := estimate.Of([]float64{1, 2, 3, 6})
	want := 3.182446305284263 * math.Sqrt(14.0/3) / 2
	if got.Mean != 3 || got.Runs != 4 || math.Abs(got.Half-want) > 1e-9 {
		t.Errorf("%+v, want 3 ± %v", got, want)
	}
	if got := estimate.Of([]float64{5}); got != (estimate.Interval{Mean: 5, Runs: 1}) {
		t.Errorf("of one value: %+v", got)
	}
	if got := estimate.Of(nil); got != (estimate.Interval{}) {
		t.Errorf("of none: %+v", got)
	}
}

func TestPaired(t *testing.T) {
	a, b := []float64{10, 20, 30}, []float64{9, 18, 27}
	if got := estimate.Paired(a, b); got.Mean != 2 || !got.Above() == (got.Half < 2) || got.Below() {
		t.Errorf("%+v", got)
	}
	if got := estimate.Paired(b, a); got.Mean != -2 || got.Above() {
		t.Errorf("%+v", got)
	}
}

// The interval contains the true mean in 95 of 100 cases.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	inside := 0
	const times = 4000
	for range times {
		values := make([]float64, 5)
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		if got := estimate.Of(values); math.Abs(got.Mean) <= got.Half {
			inside++
		}
	}
	if share := float64(inside) / times; math.Abs(share-0.95) > 0.012 {
		t.Errorf("%.3f of the intervals contain the mean", share)
	}
}
