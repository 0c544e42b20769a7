// Package reservation says what next for one GangReservation: a pure function from what can be observed to the steps that
// follow. It is part of the functional core.
//
// The shell (pkg/controllers/reservation) gathers a View, asks Next, carries the steps out and asks again until no step
// is left. Nothing is remembered between two calls: a View is read from the world each time, so a controller that dies
// at any point is continued by the next one. Steps must therefore be safe to repeat, and the order of the rules in
// serving.go and releasing.go is the order of the invariants: never Ready before held, never free before the pods are gone.
package reservation
