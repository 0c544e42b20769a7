// Package gang is the request: what the pods of one Workload need, all of it together or nothing.
//
// It is part of the functional core. pkg/adapt/kueue makes a Gang from a Workload; pkg/placement answers it.
package gang
