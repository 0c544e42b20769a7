// Package fold keeps the quota that CapacityFolds make out of hardware: it counts what pkg/fold counts, writes the number into
// Cohorts and ClusterQueues, and says on the CapacityFold what it did and why.
//
// One look is about all folds. What is to be written stands in the status of the fold before it is written, so that a process
// that dies in between knows afterwards which numbers are Berth's and which somebody else's. In an object that is not Berth's
// one number is changed and nothing else, on the version that was read for it.
package fold
