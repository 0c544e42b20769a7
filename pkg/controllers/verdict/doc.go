// Package verdict carries what one controller found out about a reservation to the controller that acts on it.
//
// A verdict is never written down: it is found anew from the world after a restart.
package verdict
