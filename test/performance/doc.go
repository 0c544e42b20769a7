// Package performance measures Berth as a whole: a decision beside kube-scheduler's own allocator in the same run, worlds of
// up to 65,000 hosts, what a pass costs that finds little changed, and what 10,000 hosts with 300,000 pods take to start
// and to keep. docs/performance.md says what was measured and how to measure it again.
//
// Budgets are held by ratios and counts in ordinary tests, never by time.
package performance
