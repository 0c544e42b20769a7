// Package kueuetest builds what a gang consists of for tests: its Workload, its Job, its template, its reservation and its
// pods, as Kueue, the Job controller and the pod policy make them.
package kueuetest
