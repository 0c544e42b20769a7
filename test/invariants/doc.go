// Package invariants watches a cluster while a test runs on it and fails the test at the first breach of one of
// Berth's invariants 1 to 4, 6, 7 and 11, which docs/invariants.md lists.
//
//	w := invariants.Watch(t, cfg, invariants.WithAuditLog(path))
//	…
//	w.AwaitNoTrace(ctx, workload.UID)
//
// It judges from the API alone and shares no code with what it judges, except for the API types: it adds up counters
// and shares of devices and follows epochs by itself.
//
// # How it avoids false alarms
//
// Every version of every object is kept for a while under its resourceVersion. All objects of the clusters this
// package is for live in one etcd, whose revision the resourceVersion is: versions of different kinds can be put in
// order, and the state at one revision can be put together afterwards, however the watches were interleaved.
//
// A breach that one kind alone shows (3, parts of 6 and 11) is proven by the watch event: one watch delivers in order, so
// the state existed. A breach between kinds is at first a suspicion, because the watches are not ordered among
// themselves. Then every kind is listed from quorum (no resourceVersion), and the judgement waits until each watch has
// delivered what its list contains and what it no longer contains. Those lists are later than the suspicious revision,
// so it is judged again *at that revision* with everything that any object which was known or still exists had become
// by then. If it is the absence of an object that makes the breach, the API server is asked for that object at exactly
// that revision, which etcd still knows.
//
// # How a watch that is behind hides nothing
//
// What looks innocent may be a breach of which one watch has not told yet. A rule that the late event itself would not
// apply again is therefore judged a second time, after the lists of the next suspicion or a few seconds later, and again
// at the revision of its event.
//
// # What is legal
//
//   - A Ready check on a Workload that is Finished or being deleted. On one that lost its quota reservation Ready is
//     stale, but until Berth has written Pending the claims must be held all the same.
//   - A Ready that Kueue's scheduler wrote back from memory after Berth had taken it: Kueue's, not Berth's, word.
//   - Overdraw that others cause where no fence is in force, or that existed before the watcher.
//   - Strangers' pods in reservedFor: without the claim's reservation label or without a controller.
//   - A pod beside the one that had its rank in an earlier admission, if the host of that one was not Ready, gone or out of
//     service at some time: a gang that is moved does not wait for the pods there.
//   - What an allocator could not know yet: a counter that a driver lowered within the last seconds.
package invariants
