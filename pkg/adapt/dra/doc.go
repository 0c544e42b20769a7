// Package dra reads the objects of resource.k8s.io into the functional core and writes allocations the way
// kube-scheduler would have written them.
//
// Cache makes an inventory.Inventory of a snapshot and remembers pools that did not change. Claim reads what a pod asks
// for, Holdings what is taken, Allocation builds the result for chosen devices.
package dra
