package hardware

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

func TestScenario01_FirstCandidateShortOfCPU(t *testing.T) {
	s := begin(t)
	r := newRack(s, "cpu", 12)
	r.publish(r.devices(4)...)
	r.own()
	st := s.Follow()
	run(s)
	r.fill("cpu-1")

	first := s.Submit(scene.Gang("first", quad, 4))
	s.AwaitSeated(first)
	s.AwaitReserved(first, r.on("rack-4-1", r.hosts[4:8]))

	// Now the third is the only one left, and it has no room either.
	blocker := r.fill("cpu-11")
	second := s.Submit(scene.Gang("second", quad, 4))
	s.AwaitReserved(second, fmt.Sprintf("False HostsBusy: no rack-4 is free: 1 of 3 is held by %s/%s; "+
		"2 have no room: host cpu-1 needs 1 cpu, has 0 (pod %s/filler-cpu-1)",
		s.Namespace, reservation(s, first).Name, s.Namespace))

	// It is the blocker's end that wakes the gang: while nothing happens nobody looks.
	awaitQuiet(s)
	clearOut(s, blocker)
	s.AwaitSeated(second)
	s.AwaitReserved(second, r.on("rack-4-2", r.hosts[8:12]))
	st.Never("impossible")
	s.Finish(first)
	s.Finish(second)
	s.AwaitNoTrace()
}

// TestScenario01_LimitsAreRequests: pods that only say how much they may use ask for as much, and one host has no room for it.
func TestScenario01_LimitsAreRequests(t *testing.T) {
	s := begin(t)
	r := standard(s, "limits")
	run(s)
	fill(s, "limits-1", "4")

	job := s.Submit(scene.Gang("gang", quad, 4, func(j *batchv1.Job) {
		resources := &j.Spec.Template.Spec.Containers[0].Resources
		resources.Requests, resources.Limits = nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6")}
	}))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	s.Finish(job)
	s.AwaitNoTrace()
}

// awaitQuiet waits until no pass over the line has been made for two seconds.
func awaitQuiet(s *scene.Scene) {
	s.Helper()
	passes, since := -1.0, time.Now()
	s.Eventually("quiet", func(context.Context) error {
		now, err := passesMade()
		if err != nil {
			return err
		}
		if now != passes {
			passes, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Errorf("pass %v was made %s ago", passes, time.Since(since))
		}
		return nil
	})
}

// passesMade reads how often the line has been reconciled in this process.
func passesMade() (float64, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "line" {
					sum, found = sum+m.GetCounter().GetValue(), true
				}
			}
		}
	}
	if !found {
		return 0, errors.New("there is no metric of the line's passes")
	}
	return sum, nil
}

// TestUpstreamsFailureSolved is the hole that KEP-4815 and gang scheduling in Kubernetes 1.37 leave: the first fit of the
// first pod has one busy host, and the gang waits for ever while two other slices are entirely free.
func TestUpstreamsFailureSolved(t *testing.T) {
	s := begin(t)
	run(s)
	fill(s, "node-5", "32")

	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.AwaitReserved(job, "True Reserved: tpu-4x4-02 (pod-a) on node-2, node-3, node-6, node-7")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestRoomTakenBetweenReservationAndBinding: the scheduler comes too late to a host that somebody else has filled.
func TestRoomTakenBetweenReservationAndBinding(t *testing.T) {
	s := begin(t)
	r := standard(s, "room")
	st := s.Follow()
	run(s)
	restore := without(s, cluster.Scheduler)

	job := s.Submit(scene.Gang("gang", quad, 4))
	awaitUngated(s, job)
	from := reservation(s, job)
	r.fill("room-2")
	restore()

	awaitMoved(s, job, from)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	st.Await(job, "check Retry: the room that was kept for the gang on host room-2 is taken")
	st.Await(job, "GangReserved False HostsBusy: the room that was kept for the gang on host room-2 is taken")
	s.Finish(job)
	s.AwaitNoTrace()
}
