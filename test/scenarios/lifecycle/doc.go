// Package lifecycle plays the scenarios about the life of one gang on a real control plane: how its claims, pods,
// admissions and objects may go, in which order, and what is left afterwards.
//
// A test of a scenario in docs/invariants.md is named after its number. All share one cluster, one after the
// other, and run under the watcher of test/invariants.
package lifecycle
