// Package inventory is what exists: DRA pools with their counters and devices, and the hosts that they stand on.
//
// It is part of the functional core. pkg/adapt/dra reads ResourceSlices into it; an Inventory never changes after it
// was built.
package inventory
