package hardware

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/test/scene"
)

func TestScenario10_NoExecuteMovesTheGangAsAWhole(t *testing.T) {
	s := begin(t)
	r := standard(s, "exec")
	st := s.Follow()
	run(s)
	// A single pod that counts as failed would end the Job.
	job := s.Submit(scene.Gang("gang", quad, 4, func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	r.awaitShapes("rack-all 0/1", "rack-4 1/2", "rack-2 2/4", "rack-1 4/8")
	from := reservation(s, job)

	// One host in the gang's slice breaks. kube-controller-manager does not care: nobody holds that device.
	broken := r.taint("rack-1-1", resourcev1.DeviceTaintEffectNoExecute)
	moved := awaitMoved(s, job, from)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:]))
	st.Await(job, "check Retry: device rack-4-0 in pool exec carries the taint repair:NoExecute")
	st.Await(job, "GangReserved False DeviceTainted: device rack-4-0 in pool exec carries the taint repair:NoExecute")

	// What contains the broken host is out, what stands beside it is not.
	r.awaitShapes("rack-all 0/1", "rack-4 0/2", "rack-2 1/4", "rack-1 3/8")
	beside := s.Submit(scene.Gang("beside", pair, 2))
	s.AwaitSeated(beside)
	s.AwaitReserved(beside, r.on("rack-2-1", r.hosts[2:4]))
	s.Finish(beside)
	s.Eventually("the end of beside", func(ctx context.Context) error {
		if _, err := s.ReservationOf(ctx, beside); err == nil {
			return errors.New("it still has its reservation")
		}
		return nil
	})
	r.untaint(broken)

	// Now the very device of the gang. Left to itself kube-controller-manager would evict its pods one by one.
	r.taint("rack-4-1", resourcev1.DeviceTaintEffectNoExecute)
	awaitMoved(s, job, moved)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	st.Await(job, "check Retry: device rack-4-1 in pool exec carries the taint repair:NoExecute")
	r.awaitShapes("rack-all 0/1", "rack-4 0/2", "rack-2 2/4", "rack-1 4/8")
	s.Finish(job)
	s.AwaitNoTrace()
}

func TestScenario10_NoScheduleLeavesTheGangAlone(t *testing.T) {
	s := begin(t)
	r := standard(s, "sched")
	st := s.Follow()
	run(s)
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	before := portrait(s, job)

	r.taint("rack-4-0", resourcev1.DeviceTaintEffectNoSchedule)
	next := s.Submit(scene.Gang("next", quad, 4))
	s.AwaitSeated(next)
	s.AwaitReserved(next, r.on("rack-4-1", r.hosts[4:]))
	late := s.Submit(scene.Gang("late", quad, 4))
	s.AwaitReserved(late, fmt.Sprintf("False NoFreeSlice: no rack-4 is free: 1 of 2 is held by %s/%s; 1 is tainted: sched/rack-4-0 repair:NoSchedule",
		s.Namespace, reservation(s, next).Name))
	if after := portrait(s, job); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}

	// The tainted device is free now, and is not given out; its parts are well.
	s.Finish(job)
	r.awaitShapes("rack-all 0/1", "rack-4 0/2", "rack-2 2/4", "rack-1 4/8")
	part := s.Submit(scene.Gang("part", pair, 2))
	s.AwaitSeated(part)
	s.AwaitReserved(part, r.on("rack-2-0", r.hosts[:2]))
	s.Finish(part)
	s.Finish(next)
	s.AwaitSeated(late)
	s.AwaitReserved(late, r.on("rack-4-1", r.hosts[4:]))
	st.Never("retry")
	s.Finish(late)
	s.AwaitNoTrace()
}

func TestScenario10_AGangThatToleratesTheTaintStays(t *testing.T) {
	s := begin(t)
	r := standard(s, "bears")
	st := s.Follow()
	run(s)
	// Without an effect a toleration is for all of them.
	bears := s.Template(quad)
	bears.Name = "bears"
	bears.Spec.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "repair", Operator: resourcev1.DeviceTolerationOpExists}}
	s.Create(bears)
	tolerating := func(name string) *batchv1.Job {
		return scene.Gang(name, quad, 4, func(j *batchv1.Job) {
			j.Spec.BackoffLimit = ptr.To[int32](0)
			j.Spec.Template.Spec.ResourceClaims[0].ResourceClaimTemplateName = ptr.To("bears")
		})
	}
	job := s.Submit(tolerating("gang"))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	before := portrait(s, job)

	r.taint("rack-4-0", resourcev1.DeviceTaintEffectNoExecute)
	r.taint("rack-4-1", resourcev1.DeviceTaintEffectNoExecute)
	r.awaitShapes("rack-all 0/1", "rack-4 0/2", "rack-2 2/4", "rack-1 4/8")
	other := s.Submit(scene.Gang("other", quad, 4))
	s.AwaitReserved(other, "False DeviceTainted: no rack-4 is free: 2 of 2 are tainted: "+
		"bears/rack-4-0 repair:NoExecute, bears/rack-4-1 repair:NoExecute")
	second := s.Submit(tolerating("second"))
	s.AwaitSeated(second)
	s.AwaitReserved(second, r.on("rack-4-1", r.hosts[4:]))
	if after := portrait(s, job); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}
	st.Never("retry")
	s.Finish(job)
	s.Finish(second)
	s.DeleteJob(other)
	s.AwaitNoTrace()
}

// taint puts a taint on one device, as an administrator does.
func (r *rack) taint(device string, effect resourcev1.DeviceTaintEffect) *resourcev1.DeviceTaintRule {
	r.Helper()
	rule := &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: r.name + "-" + device},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(r.driver), Pool: ptr.To(r.name), Device: ptr.To(device)},
			Taint:          resourcev1.DeviceTaint{Key: "repair", Effect: effect},
		},
	}
	r.Create(rule)
	return rule
}

func (r *rack) untaint(rule *resourcev1.DeviceTaintRule) {
	r.Helper()
	if err := r.Client.Delete(r.Context(), rule); err != nil {
		r.Fatalf("removing the taint: %v", err)
	}
}
