// Package mirror lists what informers hold without copying it: each object at the address that the informer has it at, and
// at the same place from list to list, so that whoever remembers the last list finds what changed by comparing pointers.
//
// An informer's own List copies all of them in another order each time: for 300,000 pods some 400 MB. A Mirror hears of
// every change from inside the informer's store, through an indexer that indexes nothing: a list is never older than an
// event that was delivered before it was asked for. Only when the informer lists anew, after a watch broke, does the store
// forget objects without asking its indexers; those are heard of by their events.
package mirror
