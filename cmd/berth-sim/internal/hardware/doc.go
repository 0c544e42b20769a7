// Package hardware is what gangs are placed on in a simulation: pools of a known family, or what a cluster publishes, read
// from the files that kubectl-berth reads.
package hardware
