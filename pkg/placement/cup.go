package placement

import "math"

// cup is a tournament for the smallest of some numbers, the first of equal ones. Setting one costs as much as there are
// rounds.
type cup struct {
	value []int64
	// best[1] is the winner; the contestants of best[i] are those of best[2i] and best[2i+1].
	best []int32
}

// none is the value of who takes no part.
const none = math.MaxInt64

// newCup of n contestants that take no part yet.
func newCup(n int) cup {
	c := cup{value: make([]int64, n), best: make([]int32, 2*n)}
	for i := range n {
		c.value[i], c.best[n+i] = none, int32(i)
	}
	for i := n - 1; i > 0; i-- {
		c.best[i] = c.winner(c.best[2*i], c.best[2*i+1])
	}
	return c
}

// set gives a contestant another value, and plays its matches again.
func (c *cup) set(i int32, value int64) {
	c.value[i] = value
	for at := (len(c.value) + int(i)) / 2; at > 0; at /= 2 {
		c.best[at] = c.winner(c.best[2*at], c.best[2*at+1])
	}
}

func (c *cup) winner(a, b int32) int32 {
	if c.value[b] < c.value[a] || c.value[b] == c.value[a] && b < a {
		return b
	}
	return a
}

// first is the winner and its value, which is none when nobody takes part.
func (c *cup) first() (int32, int64) {
	if len(c.value) == 0 {
		return -1, none
	}
	return c.best[1], c.value[c.best[1]]
}
