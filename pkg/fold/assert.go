package fold

// Seen is what stands in one target.
type Seen struct {
	// Exists says whether the object is there, and HasEntry whether it has a quota for the flavor and resource.
	Exists, HasEntry bool
	// Milli is that quota in thousandths.
	Milli int64
	// LendingLimit in thousandths; negative for none.
	LendingLimit int64
	// Paused is what the annotations that pause it say, "" when there are none.
	Paused string
	// Stops is true when they pause it.
	Stops bool
	// Owned is true when Berth created the object, so that it may add the entry.
	Owned bool
}

// Memory is what is remembered of one target from look to look.
type Memory struct {
	// Quota is the number that was decided last; negative before the first.
	Quota int
	// Previous is the number that stood there when Quota was decided, until Quota was seen there; negative for none. A write
	// that nobody knows the outcome of leaves one of the two.
	Previous int
	// Asserted is true when a change by somebody else was taken back, Contested when it was changed again.
	Asserted, Contested bool
	// Paused is Seen.Paused when that was.
	Paused string
}

// Forgotten is the memory of a target that was never written.
var Forgotten = Memory{Quota: -1, Previous: -1}

// Verdict is how a target stands.
type Verdict int

// Verdicts.
const (
	// Follows: it holds the number, or is about to.
	Follows Verdict = iota
	Missing
	NoEntry
	Paused
	Contested
	AboveLendingLimit
)

// Assert decides whether the number is written into the target. Who wins over somebody else is decided here: what others
// changed is asserted once; the next change is left alone until the fold or the annotation changes, which is what a caller
// says with Forgotten, and what another Seen.Paused says.
func Assert(want int, seen Seen, was Memory) (write bool, verdict Verdict, now Memory) {
	if seen.Paused != was.Paused {
		was = Forgotten
		was.Paused = seen.Paused
	}
	milli := int64(want) * 1000
	holds := func(n int) bool { return n >= 0 && seen.Milli == int64(n)*1000 }
	switch {
	case seen.Stops:
		now = Forgotten
		now.Paused = seen.Paused
		return false, Paused, now
	case !seen.Exists && !seen.Owned:
		return false, Missing, was
	case !seen.Exists:
		return true, Follows, decided(want, -1, was)
	case !seen.HasEntry && !seen.Owned:
		return false, NoEntry, was
	case !seen.HasEntry:
		return true, Follows, decided(want, -1, was)
	case was.Contested:
		return false, Contested, was
	case seen.Milli == milli:
		return false, Follows, decided(want, -1, was)
	}
	ours := was.Quota < 0 || holds(was.Quota) || holds(was.Previous)
	switch {
	case !ours && was.Asserted:
		was.Contested = true
		return false, Contested, was
	case seen.LendingLimit > milli:
		previous := -1
		if ours {
			previous = int(seen.Milli / 1000)
		}
		return false, AboveLendingLimit, decided(want, previous, was)
	case !ours:
		was.Asserted = true
	}
	return true, Follows, decided(want, int(seen.Milli/1000), was)
}

func decided(want, previous int, was Memory) Memory {
	was.Quota, was.Previous = want, previous
	return was
}
