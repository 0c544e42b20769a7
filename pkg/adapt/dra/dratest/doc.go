// Package dratest builds hardware for tests: nodes, ResourceSlices and classes, from code or from files.
package dratest
