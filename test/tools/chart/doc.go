// Package chart tests that the two ways to install Berth install the same: charts/berth, as Helm renders it, and config/,
// as kustomize does. It is a module of its own because Berth itself needs neither.
package chart
