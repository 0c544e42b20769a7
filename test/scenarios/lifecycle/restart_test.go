package lifecycle

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/scene"
)

// with puts a plan between a controller and the stage's namespace. What it writes elsewhere, above all to try out the
// policies, is not the plan's.
func (s *stage) with(plan *faults.Plan) scene.RunOptions {
	return scene.RunOptions{WrapClient: func(c client.WithWatch) client.WithWatch {
		return faults.WrapEach(c, func(namespace string) *faults.Plan {
			if namespace == s.Namespace {
				return plan
			}
			return nil
		})
	}}
}

// TestRestart: the controller dies at a write, and another one is started. The gang runs exactly once, on the reservation
// that was made first, and leaves no trace. It has four claims, so that some places lie in the middle of them.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name string
		at   string
		kind faults.Kind
		// release: the write is one of those that give the slice back.
		release bool
	}{
		{name: "reservation-created", at: "create gangreservations", kind: faults.After},
		{name: "half-of-the-claims-created", at: "create resourceclaims#2", kind: faults.After},
		{name: "claims-created", at: "create resourceclaims#4", kind: faults.After},
		{name: "half-allocated", at: "update resourceclaims/status#2", kind: faults.After},
		{name: "ready-not-recorded", at: "update gangreservations/status#1", kind: faults.Before},
		{name: "handed-over", at: "update gangreservations/status#2", kind: faults.After},
		{name: "half-entered", at: "update resourceclaims/status#6", kind: faults.After},
		{name: "half-ungated", at: "patch pods#2", kind: faults.After},
		{name: "half-of-the-claims-deleted", at: "delete resourceclaims#2", kind: faults.After, release: true},
		{name: "half-cleared", at: "update resourceclaims/status#10", kind: faults.After, release: true},
		{name: "half-let-go", at: "update resourceclaims#2", kind: faults.After, release: true},
		{name: "reservation-deleted", at: "delete gangreservations", kind: faults.After, release: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := set(t)
			plan := faults.NewPlan(faults.Fault{At: faults.At(c.at), Kind: c.kind})
			first := s.Run(s.with(plan), scene.RunOptions{Configure: scene.ShortWrites})
			job := s.Submit(scene.Gang("train", "tpu-2x2", 4))
			if c.release {
				s.AwaitSeated(job)
				s.Finish(job)
			}
			select {
			case <-plan.Fired():
			case <-first.Ended():
				t.Fatalf("the controller ended before the write %s; there were %v", c.at, plan.Record())
			case <-time.After(scene.Patience):
				t.Fatalf("no write %s; there were %v", c.at, plan.Record())
			}
			_ = first.Stop() // it is dead already, and says so
			s.Run()
			if !c.release {
				s.AwaitSeated(job)
				s.Finish(job)
			}
			s.AwaitNoTrace()
			s.ranOnce(job)
		})
	}
}

// ranOnce asks the audit log: four pods were made and nothing was reserved twice.
func (s *stage) ranOnce(job *batchv1.Job) {
	s.Helper()
	pods, err := s.Cluster.Writes(s.Context(), func(w cluster.Write) bool {
		return w.Namespace == s.Namespace && w.Verb == "create" && w.Resource == "pods" && w.Code < 300
	})
	s.must(err, "reading the audit log")
	if len(pods) != 4 {
		s.Errorf("%d pods were made, want 4: %v", len(pods), pods)
	}
	for resource, want := range map[string]int{"gangreservations": 1, "resourceclaims": 4} {
		if made := s.wrote("create", resource); len(made) != want {
			s.Errorf("Berth made %d %s, want %d: %v", len(made), resource, want, made)
		}
	}
	s.Eventually("the end of "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err == nil && wl.Status.SchedulingStats != nil {
			s.Errorf("the gang was evicted: %v", wl.Status.SchedulingStats)
		}
		return err
	})
}

// TestTwoControllers: of two processes only the one with the lease acts. When it stops, the other one goes on where it was.
func TestTwoControllers(t *testing.T) {
	s := set(t)
	one, two := faults.NewPlan(), faults.NewPlan()
	first := s.Run(s.with(one))
	second := scene.Start(t, s.Cluster, s.with(two))
	job := s.Submit(scene.Gang("train", "tpu-2x2", 4))
	s.AwaitSeated(job)
	select {
	case <-second.Leading():
		t.Fatal("both controllers lead")
	default:
	}
	if wrote := two.Record(); len(wrote) > 0 {
		t.Errorf("the controller without the lease wrote %v", wrote)
	}

	s.must(first.Stop(), "stopping the first controller")
	until := len(one.Record())
	select {
	case <-second.Leading():
	case <-time.After(scene.Patience):
		t.Fatal("the second controller does not come to lead")
	}
	s.Finish(job)
	s.AwaitNoTrace()
	s.ranOnce(job)
	if late := one.Record()[until:]; len(late) > 0 {
		t.Errorf("the first controller wrote %v after it had stopped", late)
	}
	var released []string
	for _, site := range two.Record() {
		if strings.HasPrefix(site.Class(), "delete") {
			released = append(released, site.Class())
		}
	}
	if len(released) != 5 {
		t.Errorf("the second controller deleted %v, want four claims and the reservation", released)
	}
}
