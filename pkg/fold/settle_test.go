package fold_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/fold"
)

func TestSettled(t *testing.T) {
	type look struct {
		at              int // seconds
		atLeast, atMost int
		want            int
		again           time.Duration
	}
	const s = time.Second
	tests := map[string][]look{
		"the first number counts":     {{0, 16, 16, 16, 0}},
		"it rises at once":            {{0, 12, 12, 12, 0}, {1, 16, 16, 16, 0}},
		"it falls after five seconds": {{0, 16, 16, 16, 0}, {1, 12, 12, 16, 5 * s}, {3, 12, 12, 16, 3 * s}, {6, 12, 12, 12, 0}},
		"one low look is not enough":  {{0, 16, 16, 16, 0}, {1, 12, 12, 16, 5 * s}, {2, 16, 16, 16, 0}, {7, 12, 12, 16, 5 * s}},
		"a lower number in between does not count": {
			{0, 16, 16, 16, 0}, {1, 12, 12, 16, 5 * s}, {3, 8, 8, 16, 3 * s}, {6, 12, 12, 12, 0},
		},
		"a higher number in between begins anew": {
			{0, 16, 16, 16, 0}, {1, 8, 8, 16, 5 * s}, {3, 12, 12, 16, 5 * s}, {6, 12, 12, 16, 2 * s}, {8, 12, 12, 12, 0},
		},
		"it falls in steps": {{0, 16, 16, 16, 0}, {1, 12, 12, 16, 5 * s}, {6, 8, 8, 12, 5 * s}, {11, 8, 8, 8, 0}},
		"an unproved number neither rises to nor falls below what is proved": {
			{0, 16, 16, 16, 0}, {1, 10, 20, 16, 0}, {9, 10, 20, 16, 0}, {10, 10, 14, 16, 5 * s}, {15, 9, 14, 14, 0}, {16, 18, 20, 18, 0},
		},
		"a fall that is not due any more is forgotten": {
			{0, 16, 16, 16, 0}, {1, 12, 12, 16, 5 * s}, {2, 10, 17, 16, 0}, {6, 12, 12, 16, 5 * s},
		},
	}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			var n fold.Settled
			start := time.Unix(1_000_000, 0)
			for _, l := range looks {
				again := n.See(l.atLeast, l.atMost, start.Add(time.Duration(l.at)*time.Second), 5*time.Second)
				if n.Shares != l.want || again != l.again {
					t.Fatalf("after %d s: %d shares and again in %s, want %d and %s", l.at, n.Shares, again, l.want, l.again)
				}
			}
		})
	}
}

func TestSettledWithoutHysteresisTakesTwoLooks(t *testing.T) {
	n := fold.Restart(16)
	now := time.Unix(1_000_000, 0)
	if again := n.See(12, 12, now, 0); n.Shares != 16 || again <= 0 {
		t.Errorf("%d shares after one look, again in %s", n.Shares, again)
	}
	if again := n.See(12, 12, now, 0); n.Shares != 12 || again != 0 {
		t.Errorf("%d shares after two looks, again in %s", n.Shares, again)
	}
}

// A number is never below the highest bound of the last hysteresis, nor above the best that was found since it was higher.
func TestSettledOverRandomHistories(t *testing.T) {
	const hysteresis = 5 * time.Second
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var n fold.Settled
		now := time.Unix(1_000_000, 0)
		type seen struct {
			at      time.Time
			atMost  int
			atLeast int
		}
		var history []seen
		for range 200 {
			now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			atLeast := rng.IntN(20)
			atMost := atLeast + max(0, rng.IntN(8)-4)
			before := n.Shares
			n.See(atLeast, atMost, now, hysteresis)
			history = append(history, seen{now, atMost, atLeast})
			if n.Shares < atLeast {
				t.Fatalf("seed %d: %d shares, %d were found", seed, n.Shares, atLeast)
			}
			if n.Shares >= before {
				if n.Shares > before && n.Shares != atLeast {
					t.Fatalf("seed %d: rose from %d to %d, %d were found", seed, before, n.Shares, atLeast)
				}
				continue
			}
			looks := 0
			for i := len(history) - 1; i >= 0 && history[i].atMost <= n.Shares; i-- {
				looks++
				if !history[i].at.After(now.Add(-hysteresis)) {
					looks += 100
					break
				}
			}
			if looks < 102 {
				t.Fatalf("seed %d: fell from %d to %d after %d low looks, or too early", seed, before, n.Shares, looks)
			}
		}
	}
}
