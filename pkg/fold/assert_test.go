package fold_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/fold"
)

// A story is what stands in a target at each look, what the number should be, and what comes of it.
func TestAssert(t *testing.T) {
	holds := func(n int64) fold.Seen {
		return fold.Seen{Exists: true, HasEntry: true, Milli: n * 1000, LendingLimit: -1}
	}
	paused := func(s fold.Seen, value string) fold.Seen {
		s.Paused, s.Stops = value, value != "" && value != "false"
		return s
	}
	lends := func(s fold.Seen, limit int64) fold.Seen {
		s.LendingLimit = limit * 1000
		return s
	}
	type look struct {
		seen    fold.Seen
		want    int
		write   bool
		verdict fold.Verdict
	}
	tests := map[string][]look{
		"the first number replaces whatever was typed": {{holds(99), 16, true, fold.Follows}, {holds(16), 16, false, fold.Follows}},
		"it follows":                       {{holds(16), 16, false, fold.Follows}, {holds(16), 12, true, fold.Follows}, {holds(12), 12, false, fold.Follows}, {holds(12), 16, true, fold.Follows}},
		"a write that got lost is written": {{holds(16), 16, false, fold.Follows}, {holds(16), 12, true, fold.Follows}, {holds(16), 12, true, fold.Follows}, {holds(16), 8, true, fold.Follows}, {holds(8), 8, false, fold.Follows}},
		"a change is taken back once": {
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, true, fold.Follows},
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, false, fold.Contested},
			{holds(20), 12, false, fold.Contested},
			{holds(12), 12, false, fold.Contested},
		},
		"somebody who restores the former number is somebody": {
			{holds(16), 16, false, fold.Follows},
			{holds(16), 12, true, fold.Follows},
			{holds(12), 12, false, fold.Follows},
			{holds(16), 12, true, fold.Follows},
			{holds(12), 12, false, fold.Follows},
			{holds(16), 12, false, fold.Contested},
		},
		"a fraction is a change": {
			{holds(16), 16, false, fold.Follows},
			{fold.Seen{Exists: true, HasEntry: true, Milli: 15500, LendingLimit: -1}, 16, true, fold.Follows},
		},
		"pausing leaves it, and ends a contest": {
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, true, fold.Follows},
			{holds(20), 16, true, fold.Follows},
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, false, fold.Contested},
			{paused(holds(20), "true"), 16, false, fold.Paused},
			{holds(20), 16, true, fold.Follows},
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, true, fold.Follows},
		},
		"any new value of the annotation ends a contest": {
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, true, fold.Follows},
			{holds(16), 16, false, fold.Follows},
			{holds(20), 16, false, fold.Contested},
			{paused(holds(20), "false"), 16, true, fold.Follows},
		},
		"no such object":   {{fold.Seen{LendingLimit: -1}, 16, false, fold.Missing}, {holds(0), 16, true, fold.Follows}},
		"no such quota":    {{fold.Seen{Exists: true, LendingLimit: -1}, 16, false, fold.NoEntry}, {holds(0), 16, true, fold.Follows}},
		"ours, to be made": {{fold.Seen{Owned: true, LendingLimit: -1}, 16, true, fold.Follows}, {fold.Seen{Owned: true, Exists: true, LendingLimit: -1}, 16, true, fold.Follows}, {holds(16), 16, false, fold.Follows}},
		"lendingLimit": {
			{lends(holds(16), 14), 16, false, fold.Follows},
			{lends(holds(16), 14), 12, false, fold.AboveLendingLimit},
			{lends(holds(16), 12), 12, true, fold.Follows},
			// What waited for the limit was nobody's change.
			{lends(holds(12), 12), 12, false, fold.Follows},
			{lends(holds(20), 12), 12, true, fold.Follows},
		},
	}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			memory := fold.Forgotten
			for i, l := range looks {
				var write bool
				var verdict fold.Verdict
				write, verdict, memory = fold.Assert(l.want, l.seen, memory)
				if write != l.write || verdict != l.verdict {
					t.Fatalf("look %d: write %v, verdict %d; want %v, %d", i, write, verdict, l.write, l.verdict)
				}
			}
		})
	}
}
