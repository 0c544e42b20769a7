package hardware

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

func TestScenario20_CountsThatFitNoSlice(t *testing.T) {
	s := begin(t)
	r := newRack(s, "counts", 8)
	// Without a Node behind its names a device still says how many hosts it should have.
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("nowhere-%d", i))
	}
	r.publish(append(r.devices(4), device("three-hundred", whole, "", many))...)
	r.own()
	st := s.Follow()
	run(s)

	for _, test := range []struct {
		job  *batchv1.Job
		want string
	}{
		{scene.Gang("five", quad, 5), "NotDivisible: 5 pods cannot fill slices of 4 hosts (rack-4)"},
		{scene.Gang("eight", quad, 8), "CountMismatch: 8 pods need 2 slices of 4 hosts (rack-4): " +
			`ask for a larger slice or set the annotation berth.dev/slices: "2" on the pod template of the Job`},
		{scene.Gang("thirds", quad, 8, func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{berth.AnnotationSlices: "3"}
		}), "CountMismatch: 8 pods need 2 slices of 4 hosts (rack-4), and the annotation berth.dev/slices asks for 3"},
		{scene.Gang("many", whole, 300), "TooManyPods: 300 pods would share one ResourceClaim of rack-all, at most 255 can"},
		{scene.Gang("queue", quad, 4, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](8) }),
			"CountMismatch: completions is 8 and parallelism 4: a gang runs all of its ranks at once, so they must be equal"},
	} {
		job := s.Submit(test.job)
		_, message := cut(test.want)
		st.Await(job, "check Rejected: "+message)
		s.AwaitReserved(job, "False "+test.want)
		if pods, err := s.PodsOf(s.Context(), job); err != nil || len(pods) > 0 {
			t.Errorf("%s has %d pods (%v)", job.Name, len(pods), err)
		}
	}

	// A Job without pods has nothing to wait for: Kubernetes calls it complete, and it never asks for a slice.
	none := s.Submit(scene.Gang("none", quad, 0))
	s.Eventually("the end of none", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, none)
		if err != nil {
			s.Get(none)
			for _, c := range none.Status.Conditions {
				if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
					return nil // Kueue makes no Workload for a Job that is over when it comes to look
				}
			}
			return err
		}
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)
		if c == nil {
			return fmt.Errorf("the Workload has not finished: %v", wl.Status.Conditions)
		}
		if have, want := c.Reason+": "+c.Message, "Succeeded: Reached expected number of succeeded pods"; have != want {
			return fmt.Errorf("it finished because %s, want %s", have, want)
		}
		return nil
	})
	if lines := st.Of(none); slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "GangReserved True") }) {
		t.Errorf("a gang of nobody had a slice:\n%s", strings.Join(lines, "\n"))
	}
	s.AwaitNoTrace()
	idle := s.Submit(scene.Gang("idle", quad, 4, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }))
	st.Await(idle, "GangReserved False CountMismatch: completions is 4 and parallelism 0: a gang runs all of its ranks at once, so they must be equal")

	// The API server takes a request for no device as one for one device, and refuses one for less.
	nothing := s.Template(quad)
	nothing.Name, nothing.Spec.Spec.Devices.Requests[0].Exactly.Count = "nothing", 0
	s.Create(nothing)
	if got := nothing.Spec.Spec.Devices.Requests[0].Exactly.Count; got != 1 {
		t.Errorf("count 0 was stored as %d", got)
	}
	less := s.Template(quad)
	less.Name, less.Spec.Spec.Devices.Requests[0].Exactly.Count = "less", -1
	if err := s.Client.Create(s.Context(), less); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "exactly.count: Invalid value: -1") {
		t.Errorf("count -1: %v", err)
	}

	// The controller has lived through all of that.
	job := s.Submit(scene.Gang("good", quad, 4, func(j *batchv1.Job) {
		j.Spec.Template.Spec.ResourceClaims[0].ResourceClaimTemplateName = ptr.To("nothing")
	}))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	s.Finish(job)
	s.AwaitNoTrace()
}
