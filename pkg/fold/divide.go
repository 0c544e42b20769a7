package fold

// Share is one target's part of a number.
type Share struct {
	// Weight in proportion to the others; with 0 the target gets Min only.
	Weight int
	Min    int
	// Max is negative for no limit. It goes before Min and everything else.
	Max int
	// Holds is the quota that the target has now, and Charged what Kueue charges to it. The target does not fall below both:
	// the difference would count as borrowed, and Kueue might preempt for it.
	Holds, Charged int
}

// atLeast is what the target gets in any case.
func (s Share) atLeast() int { return s.limit(max(s.Min, min(s.Holds, s.Charged))) }

func (s Share) limit(n int) int {
	if s.Max >= 0 {
		return min(n, s.Max)
	}
	return n
}

// Divide gives each target a whole number of shares, in proportion to the weights as far as the limits allow. They add up to
// number unless the limits make that impossible: then to more where targets must keep what they have, to less where all are
// at their max.
//
// Shares are given out one by one, each to the target that is furthest behind its weight (Webster's method), earlier targets
// first among equals. So a number that grows by one never takes anything from anybody.
func Divide(number int, targets []Share) []int {
	out := make([]int, len(targets))
	left := number
	for i, t := range targets {
		out[i] = t.atLeast()
		left -= out[i]
	}
	for ; left > 0; left-- {
		next := -1
		for i, t := range targets {
			if t.Weight == 0 || t.limit(out[i]+1) <= out[i] {
				continue
			}
			// (2n+1)/weight, compared without division.
			if next < 0 || (2*out[i]+1)*targets[next].Weight < (2*out[next]+1)*t.Weight {
				next = i
			}
		}
		if next < 0 {
			break
		}
		out[next]++
	}
	return out
}
