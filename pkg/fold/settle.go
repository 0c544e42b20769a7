package fold

import "time"

// Settled is a number that rises at once and falls late. The zero value knows nothing.
type Settled struct {
	// Shares is the number.
	Shares int
	known  bool
	// A fall to falling was first seen at since.
	pending bool
	falling int
	since   time.Time
}

// Restart returns a number that was settled before this process began.
func Restart(shares int) Settled { return Settled{Shares: shares, known: true} }

// See takes in an observation: the hardware serves atLeast and cannot exceed atMost. The number rises to atLeast at once. It
// falls to atMost when it was seen that low twice, hysteresis apart, and at no time higher in between; an unproved search can
// so neither promise what is not there nor take away what may be. The result is how long after now it should be looked at
// again because a fall is due; zero when none is.
//
// It is the stabilization window of Kubernetes' HorizontalPodAutoscaler, for one direction.
func (s *Settled) See(atLeast, atMost int, now time.Time, hysteresis time.Duration) time.Duration {
	switch {
	case !s.known || atLeast >= s.Shares:
		*s = Settled{Shares: atLeast, known: true}
		return 0
	case atMost >= s.Shares:
		s.pending = false
		return 0
	case !s.pending || atMost > s.falling:
		s.pending, s.falling, s.since = true, atMost, now
		return s.wait(hysteresis)
	case now.Before(s.since.Add(hysteresis)):
		return s.since.Add(hysteresis).Sub(now)
	}
	s.Shares, s.pending = s.falling, false
	if atMost < s.Shares {
		s.pending, s.falling, s.since = true, atMost, now
		return s.wait(hysteresis)
	}
	return 0
}

// wait is never zero: a second look is due in any case.
func (s *Settled) wait(hysteresis time.Duration) time.Duration {
	return max(hysteresis, time.Millisecond)
}
