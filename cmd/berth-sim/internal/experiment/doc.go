// Package experiment runs scenarios: every policy on the same gangs, seed by seed, so that differences between policies are
// differences of pairs.
package experiment
