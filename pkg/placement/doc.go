// Package placement decides which devices serve a gang.
//
// It is part of the functional core: a pure function of a gang.Gang and a World (what exists, what is taken, what room
// the hosts have). It returns the decision together with its reasons and changes nothing. The shell writes decisions
// down as GangReservations and charges them in the ledger.
//
// FirstFit takes the first devices by name. Scored weighs all of them by what each would cost others; docs/placement.md says
// how. Both refuse for the same reasons.
package placement
