// Package pool looks after what must be true before anything may be reserved: that the admission policies are in force,
// that every AcceleratorPool is fenced, and that each AdmissionCheck of ours has its parameters. It says so on the objects
// and tells the line through Fence.
package pool
