package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/test/demo/witness"
)

// picture is what an observation looks like: a square of hosts, the Jobs by name, and then claims that are not Berth's.
func picture(o *witness.Observation) render.Picture {
	p := render.Picture{Columns: int(math.Sqrt(float64(len(o.Nodes))))}
	at := map[string]int{}
	for _, name := range hostNames(o) {
		at[name] = len(p.Hosts)
		p.Hosts = append(p.Hosts, render.PictureHost{Name: name})
	}
	share := func(node string, holder int) *render.Share {
		h := &p.Hosts[at[node]]
		for i := range h.Shares {
			if h.Shares[i].Line == holder {
				return &h.Shares[i]
			}
		}
		h.Shares = append(h.Shares, render.Share{Line: holder, Rank: render.NoPod})
		return &h.Shares[len(h.Shares)-1]
	}
	hold := func(claim *resourcev1.ResourceClaim, holder int) {
		for _, node := range o.Under(claim) {
			if _, known := at[node]; known {
				share(node, holder).Held = true
			}
		}
	}

	jobs := slices.Clone(o.Jobs)
	slices.SortFunc(jobs, func(a, b batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	for i := range jobs {
		job := &jobs[i]
		p.Lines = append(p.Lines, render.PictureLine{
			Letter: string(rune('a' + i)), Name: job.Name,
			Wants: fmt.Sprintf("%d pods, %s", ptr.Deref(job.Spec.Parallelism, 1), template(job)),
			Story: story(o, job),
		})
		for _, claim := range claimsOf(o, job) {
			hold(claim, i)
		}
		for _, pod := range o.PodsOf(job) {
			rank, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
			if _, known := at[pod.Spec.NodeName]; err == nil && known && pod.Status.Phase == corev1.PodRunning {
				share(pod.Spec.NodeName, i).Rank = rank
			}
		}
	}
	for i := range o.Claims {
		claim := &o.Claims[i]
		if witness.Pinned(claim) {
			continue
		}
		story := "holds nothing"
		if slice := devices(claim); slice != "" {
			story = "holds " + slice
		}
		p.Lines = append(p.Lines, render.PictureLine{Letter: "x", Name: claim.Name, Wants: "an ordinary claim", Story: story})
		hold(claim, len(p.Lines)-1)
	}
	return p
}

// hostNames are the nodes' names, node-2 before node-10.
func hostNames(o *witness.Observation) []string {
	var names []string
	for _, n := range o.Nodes {
		names = append(names, n.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names
}

// template names the Job's first ResourceClaimTemplate, which in this story is named after its class.
func template(job *batchv1.Job) string {
	for _, c := range job.Spec.Template.Spec.ResourceClaims {
		return ptr.Deref(c.ResourceClaimTemplateName, "")
	}
	return ""
}

// undecided is the story of a Job that nobody has said anything of yet.
const undecided = "is in the queue"

// story is what a Job does or waits for, in a few words.
func story(o *witness.Observation, job *batchv1.Job) string {
	slice := devices(claimsOf(o, job)...)
	pods, running, ended := int(ptr.Deref(job.Spec.Parallelism, 1)), 0, 0
	for _, pod := range o.PodsOf(job) {
		switch pod.Status.Phase {
		case corev1.PodRunning:
			running++
		case corev1.PodSucceeded, corev1.PodFailed:
			ended++
		}
	}
	wl := o.WorkloadOf(job)
	switch {
	case witness.Complete(job) && slice != "":
		return "has finished, gives back " + slice
	case witness.Complete(job):
		return "has finished"
	case slice != "" && ended > 0:
		return fmt.Sprintf("holds %s; %d of %d pods have ended", slice, ended, pods)
	case slice != "":
		return fmt.Sprintf("holds %s; %d of %d pods run", slice, running, pods)
	case wl != nil:
		if c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved); c != nil && c.Status == metav1.ConditionFalse {
			return "waits: " + c.Message
		}
	}
	return undecided
}

// claimsOf are the pinned claims of a Job.
func claimsOf(o *witness.Observation, job *batchv1.Job) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, r := range o.Reservations {
		if r.Spec.Owner.UID != job.UID {
			continue
		}
		for i := range o.Claims {
			if c := &o.Claims[i]; c.Namespace == r.Namespace && c.Labels[berth.LabelReservation] == r.Name {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// devices are the names of what claims hold.
func devices(claims ...*resourcev1.ResourceClaim) string {
	var names []string
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			names = append(names, r.Device)
		}
	}
	return strings.Join(names, ", ")
}
