// Command kubectl-berth answers from files what Berth would do: which gangs fit and where, how much there is, who holds
// what, and why a gang does not have its slice. It needs no cluster and decides with the controller's own packages.
//
// It exits with 0 when every gang fits, with 1 when some do not, and with 2 when it was called wrongly or the input is
// bad. docs/cli.md describes the commands and the JSON.
package main
