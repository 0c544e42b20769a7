// Package leadership makes sure that at most one process allocates devices, and that nothing which an earlier leader
// still has under way can take effect once a new one has begun.
//
// A Lease alone does not give that. It tells a process that it may try, on its own clock, and the process may be
// stopped between looking at the clock and sending. Three things together do:
//
//  1. Guard lets a write start only while the lease certainly holds, bounds it inside the lease on the client, and lets
//     at most one write of a term that has meanwhile ended escape per goroutine (see "stopped process").
//  2. Takeover waits until the old lease and the longest write under it are over, then rewrites an annotation on every
//     Berth claim without an allocation. From then on an allocation that was decided before fails with a conflict,
//     whenever it arrives.
//     It also waits until the cache shows every claim, every reservation and every Workload that a reservation serves as
//     the API server has them: a stand-by whose watches lag would otherwise undo what it has not heard of.
//  3. The process exits when the lease is lost. No state is carried into another term.
//
// # Stopped process
//
// A process can be stopped (SIGSTOP, a paused VM, a long collection) after the check and before the request leaves. It
// then sends one write per goroutine after somebody else took over, and the next check stops it. That write is harmless
// because of what it can be:
//
//   - a change (update, patch, status) carries the resourceVersion that it was decided on. For an allocation this is
//     the version of an unallocated claim, and Takeover has bumped all of these: conflict. Other objects: whatever the
//     new leader has written since makes it a conflict, and otherwise it says what the new leader is about to say.
//     One change carries the UID alone: seating takes the gate off a pod. The pod has its entry in reservedFor before, and
//     while it exists no release clears that, so a late write meets a pod that is waited for, or none;
//   - a create makes an unallocated claim or a reservation, which hold nothing. Allocating is another write, hence
//     another check;
//   - a delete carries a UID, and claims are kept by their finalizer until somebody clears the allocation, which is a
//     change.
//
// So every other writer must set resourceVersion on changes and preconditions on deletes; Guard cannot do it for them.
//
// # Clocks
//
// No two clocks are compared. The leader counts from the moment before it sent a renewal, candidates from when they saw
// it, so a candidate's lease always ends later, if both clocks run at the same rate; Options.Margin covers the rest.
// Since a monotonic clock may stand still while a VM is suspended, Guard also looks at the wall clock and believes
// whichever says that more time has passed.
package leadership
