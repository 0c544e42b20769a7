// Package guard holds the scenarios in which somebody or something gets in Berth's way: strangers, forged keys, edited
// claims, other schedulers, a queue on hold, pods that do not end, lost hosts and quotas.
//
// Each test is named after its number in docs/invariants.md, runs on a whole control plane, and leaves the cluster
// as it found it.
package guard
