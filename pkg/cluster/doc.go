// Package cluster makes the World that placement decides on from one snapshot: what exists, what is taken and what room
// is left. It owns the caches; the World itself depends on nothing but the snapshot, in whatever order its objects come.
package cluster
