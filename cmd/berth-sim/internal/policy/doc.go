// Package policy is the rules by which a simulation places gangs: Berth's own and those that it is compared with.
//
// All of them place a gang of one pod set on one device that spans as many hosts as the gang has pods, and refuse for the
// same reason: no such device is free. They differ in which free device they take.
package policy
