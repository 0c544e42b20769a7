// Package controllers puts the controller process together: one leader, one set of clients, and the controllers of its
// subpackages.
//
// A write passes three wrappers on its way out: the guard of the lease, the counter of writes and, in tests, whatever
// injects faults. Reads come from the cache, which is warm before the election, so that a stand-by takes over without
// a fresh list.
package controllers
