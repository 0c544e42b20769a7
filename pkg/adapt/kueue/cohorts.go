package kueue

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Cohorts is the tree above the ClusterQueues. A cohort may exist in name only, and nothing keeps people from making a ring
// of them.
type Cohorts struct {
	parents map[string]string
	groups  map[string][]kueue.ResourceGroup
	queues  []*kueue.ClusterQueue
}

// NewCohorts reads the tree.
func NewCohorts(cohorts []*kueue.Cohort, queues []*kueue.ClusterQueue) Cohorts {
	c := Cohorts{parents: make(map[string]string, len(cohorts)), groups: make(map[string][]kueue.ResourceGroup, len(cohorts)), queues: queues}
	for _, cohort := range cohorts {
		c.parents[cohort.Name] = string(cohort.Spec.ParentName)
		c.groups[cohort.Name] = cohort.Spec.ResourceGroups
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

// Drawn is what those below a cohort take of one of its quotas, given what is charged to each ClusterQueue. A ClusterQueue
// uses up its own nominalQuota first, and only what goes beyond that counts in the cohort above it, and so on upwards. In a
// ring of cohorts, which Kueue does not serve, each counts once.
func (c Cohorts) Drawn(cohort string, of Quota, charged func(queue string) int64) int64 {
	return c.drawn(cohort, of, charged, map[string]bool{})
}

func (c Cohorts) drawn(cohort string, of Quota, charged func(queue string) int64, visited map[string]bool) int64 {
	visited[cohort] = true
	sum := int64(0)
	for _, q := range c.queues {
		if string(q.Spec.CohortName) == cohort {
			sum += max(0, charged(q.Name)-nominal(q.Spec.ResourceGroups, of))
		}
	}
	for below, parent := range c.parents {
		if parent == cohort && !visited[below] {
			sum += max(0, c.drawn(below, of, charged, visited)-nominal(c.groups[below], of))
		}
	}
	return sum
}

func nominal(groups []kueue.ResourceGroup, of Quota) int64 {
	if quota := QuotaIn(groups, of.Flavor, of.Resource); quota != nil {
		return quota.NominalQuota.Value()
	}
	return 0
}
