// Package fold makes quota out of hardware: which shares of which devices a CapacityFold counts, what that number is now,
// when it may fall, how its targets divide it, and what to do about somebody who writes another one.
//
// The unit is the share, one host of one device, because one pod of a gang uses one and Kueue charges a claim for each pod.
// Shares of different classes add up only where each is the same amount of hardware; Compile checks that.
//
// It is part of the functional core. pkg/controllers/fold reads the objects and writes what comes out.
package fold
