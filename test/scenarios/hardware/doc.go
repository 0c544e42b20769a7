// Package hardware plays the scenarios of docs/invariants.md that are about devices and hosts on a real control plane: which slice a
// gang gets, what becomes of it when the hardware changes, and what is said when there is none.
//
// Each test is named after its number there. Most bring hardware of their own, a rack, so that taints, lost hosts and broken
// pools stay theirs; those that use the shared pool of KEP-4815 leave it as they found it.
package hardware
