// Package policy fences Berth's hardware and hands pinned claims to pods, inside the API server: the admission policies
// of config/policy, the proof that they are in force, and the device taints that spare kube-scheduler vain attempts.
//
// # The policies
//
//	berth-claim-status   only Berth allocates devices of an AcceleratorPool with fence Enforce
//	berth-held-claims    only Berth changes the allocation, the hold and the consumers of a claim that it holds
//	berth-claims         only Berth writes its keys and names on ResourceClaims
//	berth-reservations   only Berth writes GangReservations
//	berth-pin            pods of a gang get their claim, their host and the seating gate (contract v1)
//	berth-pods           pods of a gang are as berth-pin makes them, made by those who may, and stay so
//	berth-job-keys       Jobs are not created with the keys of another Job's reservation
//	berth-jobset-keys    the same for JobSets
//
// All of them fail closed and look only at objects that carry Berth's keys, names or devices. "Berth" is one user name,
// the variable berth of each policy.
//
// # The proof
//
// A policy takes a moment to reach an API server, can be edited, unbound or left behind by an upgrade, and nothing in
// its status says so. Probe therefore tries what each policy forbids, as a dry run, and looks for that policy's own
// sentence in the refusal. Berth itself is exempt from the policies, so each of them treats a dry run that carries the
// annotation berth.dev/probe as a stranger's. The alternative, impersonating a powerless user, would need the impersonate
// verb and a second user that may write the status of every claim in the cluster; the mark needs no right that Berth
// does not have, makes a policy only stricter, and runs through the same expressions as a stranger's write.
//
// What the probe cannot see: other API servers than the one that answered (each has its own copy of the policies, a
// moment apart), and a binding that somebody has narrowed to exclude other namespaces than Berth's.
package policy
