// Package observability is what the controller tells its operators: logs and Prometheus metrics.
//
// No metric has a label that grows with the number of objects: gangs and reservations are told apart by reason and
// phase, which are closed lists. What happened to one gang is on the Workload and in the log.
package observability
