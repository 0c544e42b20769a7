// Package quota plays CapacityFolds on a real control plane: what quota becomes of hardware that breaks and is mended, what
// gangs of several queues make of it, who wins over an administrator, what it costs, and that the configuration in
// docs/quota.md does what it says.
//
// Most tests share one cluster, one after the other, and run under the watcher of test/invariants.
package quota
