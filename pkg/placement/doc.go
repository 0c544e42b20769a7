// Package placement decides which devices serve a gang.
//
// It is part of the functional core: a pure function of a gang.Gang and a World (what exists, what is taken, what room
// the hosts have). It returns the decision together with its reasons and changes nothing. The shell writes decisions
// down as GangReservations and charges them in the ledger.
package placement
