// Package seating lets the pods of a gang go: all of them at first, later each successor when its predecessor is gone.
//
// Every pinned pod is created behind the gate berth.dev/seating. Seating writes all new pods of a claim into its
// status.reservedFor in one write and then takes the gates off in parallel. A pod that finds itself there binds without a
// write of its own, so two hundred pods of one claim do not fight over it.
package seating
