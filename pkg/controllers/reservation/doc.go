// Package reservation carries out what pkg/reservation decides, for one GangReservation at a time.
//
// gather reads one View, decide is reservation.Next, apply does the steps; this repeats until no step is left. A
// ResourceClaim whose reservation is gone is released by the story that its annotations tell.
package reservation
