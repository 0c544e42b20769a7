// Package observability is what the controller tells its operators: logs and Prometheus metrics.
//
// No metric has a label that grows with gangs, pods or hosts: these are told apart by reason and phase, which are closed
// lists. Only berth_fold_shares has one value for each CapacityFold. What happened to one gang is on the Workload and in the log.
package observability
