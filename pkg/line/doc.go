// Package line says whose turn it is: the order in which waiting gangs are offered the hardware, and one pass over them.
// It is part of the functional core.
//
// Order: within a ClusterQueue by priority, then by the time since when the gang stands in line; between ClusterQueues by
// fair share, the one that holds the fewest hosts first. A gang that does not fit lets the next one try; targets and
// backfill, which keep a large gang from starving behind small ones, are not part of this release.
package line
