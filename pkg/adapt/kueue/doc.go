// Package kueue reads Kueue's objects into the core's nouns and writes what Berth says on a Workload: the state of its
// admission check, the condition GangReserved, and Requeued where Kueue forgets it.
//
// Facts that it rests on (Kueue 0.17, pkg/workload): a Workload has no admission ID, so an Epoch is derived; eviction
// resets every check, unsetting quota without eviction does not; Retry must not be written while Evicted is True.
package kueue
