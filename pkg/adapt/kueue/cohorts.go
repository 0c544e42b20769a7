package kueue

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Cohorts is the tree above the ClusterQueues. A cohort may exist in name only, and nothing keeps people from making a ring
// of them.
type Cohorts struct {
	parents map[string]string
	queues  []*kueue.ClusterQueue
}

// NewCohorts reads the tree.
func NewCohorts(cohorts []*kueue.Cohort, queues []*kueue.ClusterQueue) Cohorts {
	c := Cohorts{parents: make(map[string]string, len(cohorts)), queues: queues}
	for _, cohort := range cohorts {
		c.parents[cohort.Name] = string(cohort.Spec.ParentName)
	}
	return c
}

// Under are the names of the ClusterQueues that are in the cohort or in one below it.
func (c Cohorts) Under(cohort string) map[string]bool {
	under := map[string]bool{}
	for _, q := range c.queues {
		visited := map[string]bool{}
		for at := string(q.Spec.CohortName); at != "" && !visited[at]; at = c.parents[at] {
			if at == cohort {
				under[q.Name] = true
				break
			}
			visited[at] = true
		}
	}
	return under
}
