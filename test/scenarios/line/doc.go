// Package line plays the waiting line on a real control plane: what is kept for a large gang while small ones keep coming,
// who is let in meanwhile, who is evicted for it, and that a restart forgets nothing of it.
//
// All tests share one cluster, one after the other, and run under the watcher of test/invariants.
package line
