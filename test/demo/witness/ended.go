package witness

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Finished returns nil when a Job is complete and its pods, which the API server still shows, ran where s says.
func (o *Observation) Finished(s Seating) error {
	job := o.Job(s.Job)
	if job == nil {
		return fmt.Errorf("Job %s does not exist", s.Job)
	}
	var wrong faults
	if !Complete(job) {
		wrong.add("Job %s is not complete", s.Job)
	}
	pods, err := o.byRank(job, len(s.Nodes))
	if err != nil {
		wrong = append(wrong, err)
	}
	for rank, p := range pods {
		switch {
		case p == nil:
		case p.Spec.NodeName != s.Nodes[rank]:
			wrong.add("pod %s of rank %d ran on %s, its host was %s", p.Name, rank, p.Spec.NodeName, s.Nodes[rank])
		case p.Status.Phase != corev1.PodSucceeded:
			wrong.add("pod %s of rank %d is %s", p.Name, rank, pending(p))
		}
	}
	return wrong.err()
}

// NoTrace returns nil when nothing that Berth makes for a gang is left in any namespace but its own, where it keeps
// claims to probe its policies with.
func (o *Observation) NoTrace(own string) error {
	var wrong faults
	for _, r := range o.Reservations {
		wrong.add("GangReservation %s is left (%s)", r.Name, r.Status.Phase)
	}
	for i := range o.Claims {
		if c := &o.Claims[i]; Pinned(c) && c.Namespace != own {
			wrong.add("ResourceClaim %s is left", c.Name)
		}
	}
	return wrong.err()
}

// Nothing returns nil when a claim exists and holds no device, and the pod that names it is on no node.
func (o *Observation) Nothing(namespace, claim, pod string) error {
	c := o.Claim(namespace, claim)
	if c == nil {
		return fmt.Errorf("ResourceClaim %s does not exist", claim)
	}
	if c.Status.Allocation != nil {
		return fmt.Errorf("ResourceClaim %s holds %v", claim, o.Under(c))
	}
	for _, p := range o.Pods {
		if p.Namespace == namespace && p.Name == pod {
			if p.Spec.NodeName != "" {
				return fmt.Errorf("pod %s is on %s", pod, p.Spec.NodeName)
			}
			return nil
		}
	}
	return fmt.Errorf("pod %s does not exist", pod)
}

// Complete reports whether a Job has succeeded.
func Complete(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// Pinned reports whether a claim is one of Berth's.
func Pinned(c *resourcev1.ResourceClaim) bool {
	return strings.HasPrefix(c.Name, berth.ClaimNamePrefix) || slices.Contains(c.Finalizers, berth.FinalizerHold)
}
