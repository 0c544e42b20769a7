// Package traffic is who comes and how long they stay: gangs drawn from a mix, or read from a trace.
//
// Times are in hours since the beginning of the simulation.
package traffic
