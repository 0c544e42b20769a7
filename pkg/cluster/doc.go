// Package cluster makes the World that placement decides on from a snapshot: what exists, what is taken and what room is
// left. The World depends on nothing but the snapshot, in whatever order its objects come.
//
// It is kept up, not made anew. A Cluster remembers the objects of the last snapshot and what it booked for each. The next
// one is compared place by place: an object at the same address, or of the same version, is what it was, because nobody
// changes the objects of a snapshot. For those that went, came or changed, what was booked is given back and booked anew;
// what depends on several objects (the seats of a gang, a reservation that is released with its last claim) is looked at
// again when one of them changed. The inventory is read again when hardware changed, and a DRA pool only when its own
// slices did. So a World costs a comparison of pointers for each object, and work for what changed.
//
// A Cluster cannot drift for long: what cannot be given back is a breach, Audit compares everything with what is built
// from nothing, and after a breach the next World is built from nothing.
package cluster
