// Command berth-sim simulates gangs on accelerator hardware under different placement policies, with Berth's own ledger, line
// and placement, and says how good they are: how much of the hardware does work, who is turned away, who waits and for how
// long, how many hosts are needed, and how far all that is from the best that is possible.
//
// It exits with 1 when a simulation cannot be carried out and with 2 when it was called wrongly or the input is bad.
// docs/simulation.md describes the models, the input and what was found.
package main
