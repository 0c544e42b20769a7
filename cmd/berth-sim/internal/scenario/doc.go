// Package scenario is what a simulation is asked: hardware, gangs, a line, policies, and how often and for how long. It
// reads scenarios from YAML and says what is wrong with them, with file, line and field.
package scenario
