package kueue

// Len is how many Workloads are kept.
func (r *Readings) Len() int { return len(r.kept) }
