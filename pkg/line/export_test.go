package line

// Before reports whether a comes before b in one queue.
func Before(a, b Entry) bool { return a.before(b) < 0 }
