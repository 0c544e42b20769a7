package fold_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/fold"
)

func TestDivide(t *testing.T) {
	equal := fold.Share{Weight: 1, Max: -1}
	tests := map[string]struct {
		number  int
		targets []fold.Share
		want    []int
	}{
		"one":             {16, []fold.Share{equal}, []int{16}},
		"equal":           {16, []fold.Share{equal, equal}, []int{8, 8}},
		"the rest":        {16, []fold.Share{equal, equal, equal}, []int{6, 5, 5}},
		"weights":         {16, []fold.Share{{Weight: 3, Max: -1}, equal}, []int{12, 4}},
		"weight 0":        {16, []fold.Share{{Weight: 0, Min: 2, Max: -1}, equal}, []int{2, 14}},
		"min":             {16, []fold.Share{{Weight: 1, Min: 12, Max: -1}, equal}, []int{12, 4}},
		"min above all":   {16, []fold.Share{{Weight: 1, Min: 20, Max: -1}, equal}, []int{20, 0}},
		"max":             {16, []fold.Share{{Weight: 1, Max: 4}, equal}, []int{4, 12}},
		"all at max":      {16, []fold.Share{{Weight: 1, Max: 4}, {Weight: 1, Max: 4}}, []int{4, 4}},
		"max before min":  {16, []fold.Share{{Weight: 1, Min: 8, Max: 4}, equal}, []int{4, 12}},
		"nothing":         {0, []fold.Share{equal, equal}, []int{0, 0}},
		"borrowed":        {16, []fold.Share{{Weight: 1, Max: -1, Holds: 8, Charged: 12}, {Weight: 1, Max: -1, Holds: 8, Charged: 4}}, []int{8, 8}},
		"a host is lost":  {12, []fold.Share{{Weight: 1, Max: -1, Holds: 8, Charged: 8}, {Weight: 1, Max: -1, Holds: 8, Charged: 4}}, []int{8, 4}},
		"all is charged":  {12, []fold.Share{{Weight: 1, Max: -1, Holds: 8, Charged: 8}, {Weight: 1, Max: -1, Holds: 8, Charged: 8}}, []int{8, 8}},
		"charged, at max": {12, []fold.Share{{Weight: 1, Max: 6, Holds: 8, Charged: 8}, equal}, []int{6, 6}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fold.Divide(test.number, test.targets)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDivideKeepsItsPromises(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		targets := make([]fold.Share, 1+rng.IntN(5))
		unlimited := true
		for i := range targets {
			targets[i] = fold.Share{Weight: rng.IntN(5), Min: rng.IntN(6), Max: -1, Holds: rng.IntN(20), Charged: rng.IntN(20)}
			if rng.IntN(3) == 0 {
				targets[i].Max = rng.IntN(20)
			}
			unlimited = unlimited && targets[i].Max < 0 && targets[i].Weight > 0
		}
		number := rng.IntN(60)
		got, more := fold.Divide(number, targets), fold.Divide(number+1, targets)
		sum, kept := 0, 0
		for i, s := range targets {
			least := max(s.Min, min(s.Holds, s.Charged))
			if s.Max >= 0 {
				least = min(least, s.Max)
				if got[i] > s.Max {
					t.Fatalf("seed %d: target %d gets %d, its max is %d", seed, i, got[i], s.Max)
				}
			}
			if got[i] < least {
				t.Fatalf("seed %d: target %d gets %d, %d at least", seed, i, got[i], least)
			}
			if more[i] < got[i] {
				t.Fatalf("seed %d: target %d gets %d of %d and %d of %d", seed, i, got[i], number, more[i], number+1)
			}
			sum += got[i]
			kept += least
		}
		if sum > max(number, kept) {
			t.Fatalf("seed %d: %d of %d were given out", seed, sum, number)
		}
		if unlimited && sum != max(number, kept) {
			t.Fatalf("seed %d: only %d of %d were given out", seed, sum, number)
		}
	}
}
