package line

// Before reports whether a comes before b in one queue.
func Before(a, b Entry) bool { return a.before(b) < 0 }

// Places orders gangs of any queues by who has the target that both need.
func Places(waiting []Entry) func(a, b Entry) int {
	return newPlaces(newTurns(waiting, nil).queues).compare
}

// Clone is a memory that forgets without the other.
func (m *Memory) Clone() *Memory {
	out := &Memory{refused: map[question]*refused{}}
	for q, r := range m.refused {
		same := *r
		out.refused[q] = &same
	}
	return out
}
