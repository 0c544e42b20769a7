// Package shell is what the controllers are given by the process that runs them. It stands apart from package
// controllers so that each controller can import it without a cycle.
package shell
