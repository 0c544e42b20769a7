// Package wholepath measures gangs on a real control plane, from the Job to its last pod: the same Jobs through Kueue alone,
// through Kueue and kube-scheduler's own allocation of devices, and through Berth. docs/performance.md has the figures.
//
// No watcher of invariants runs here, which would be measured too; test/e2e and test/scenarios have it.
package wholepath
