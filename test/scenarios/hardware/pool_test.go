package hardware

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

func TestScenario05_NewGenerationDropsAnAllocatedDevice(t *testing.T) {
	s := begin(t)
	r := standard(s, "drops")
	run(s)
	gang := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(gang)
	s.AwaitReserved(gang, r.on("rack-4-0", r.hosts[:4]))
	before := portrait(s, gang)

	// The gang's own quad is gone, what it was made of and the other quad are there. A new device on one of its hosts takes
	// nothing of what the gang has.
	counters := r.counters(2, 2)
	counters.Spec.SharedCounters[0].Counters["spare"] = resourcev1.Counter{Value: resource.MustParse("1")}
	spare := device("spare", single, "", r.hosts[:1])
	spare.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
		CounterSet: "hosts", Counters: map[string]resourcev1.Counter{"spare": {Value: resource.MustParse("1")}},
	}}
	r.Create(counters)
	r.Create(r.offer(2, 2, append([]resourcev1.Device{r.device(4, 1), spare}, r.devices(2, 1)...)...))
	r.withdraw(1)
	r.awaitShapes("rack-4 1/1", "rack-2 2/4", "rack-1 5/9")
	other := s.Submit(scene.Gang("other", quad, 4))
	s.AwaitSeated(other)
	s.AwaitReserved(other, r.on("rack-4-1", r.hosts[4:]))

	within := s.Submit(scene.Gang("within", pair, 2))
	s.AwaitReserved(within, fmt.Sprintf("False NoFreeSlice: no rack-2 is free: 4 of 4 are held by %s/%s, %s/%s",
		s.Namespace, reservation(s, gang).Name, s.Namespace, reservation(s, other).Name))
	lone := s.Submit(scene.Gang("lone", single, 1))
	s.AwaitSeated(lone)
	s.AwaitReserved(lone, r.on("spare", r.hosts[:1]))
	if after := portrait(s, gang); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}

	s.Finish(gang)
	s.AwaitSeated(within)
	s.AwaitReserved(within, r.on("rack-2-0", r.hosts[:2]))
	s.Finish(other)
	s.Finish(within)
	s.Finish(lone)
	s.AwaitNoTrace()
}

// portrait is everything of a running gang that must not change: pods and where they run, claims and what they hold.
func portrait(s *scene.Scene, job *batchv1.Job) string {
	s.Helper()
	pods, err := s.PodsOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	var lines []string
	for _, p := range pods {
		lines = append(lines, fmt.Sprintf("pod %s %s on %s, ended %v, deleted %v", p.Name, p.UID, p.Spec.NodeName, jobs.Ended(&p), p.DeletionTimestamp))
	}
	var claims resourcev1.ResourceClaimList
	res := reservation(s, job)
	err = s.Client.List(s.Context(), &claims, client.InNamespace(s.Namespace), client.MatchingLabels{berth.LabelReservation: res.Name})
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range claims.Items {
		lines = append(lines, fmt.Sprintf("claim %s %s: %v for %v", c.Name, c.UID, c.Status.Allocation, c.Status.ReservedFor))
	}
	return strings.Join(append(lines, "reservation "+res.Name+" "+string(res.UID)), "\n")
}

func TestScenario06_NewGenerationPublishedSliceBySlice(t *testing.T) {
	s := begin(t)
	r := standard(s, "slowly")
	st := s.Follow()
	run(s)
	r.awaitCondition(berth.PoolReady, "True Complete: 1 pool is complete and valid")

	r.Create(r.counters(2, 3))
	r.awaitCondition(berth.PoolReady, "False PoolIncomplete: 1 of 1 pool cannot be used: "+
		"pool slowly.rack.example.com/slowly: 1 of 3 slices of generation 2 are published")
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitReserved(job, "False PoolIncomplete: no rack-4 is published: "+
		"pool slowly.rack.example.com/slowly: 1 of 3 slices of generation 2 are published")

	// Devices of the class are there now, and the pool is still not whole.
	part := r.offer(2, 3, r.devices(4)...)
	part.Name += "-quads"
	r.Create(part)
	s.AwaitReserved(job, "False PoolIncomplete: no rack-4 can be given out: "+
		"pool slowly.rack.example.com/slowly: 2 of 3 slices of generation 2 are published")
	assertHoldsNothing(s, job)
	r.Create(r.offer(2, 3, r.devices(8, 2, 1)...))
	s.AwaitSeated(job)
	s.AwaitReserved(job, r.on("rack-4-0", r.hosts[:4]))
	if got := reservation(s, job).Spec.PodSets[0].Claims[0].Devices[0].Generation; got != 2 {
		t.Errorf("it was reserved from generation %d", got)
	}
	r.awaitCondition(berth.PoolReady, "True Complete: 1 pool is complete and valid")
	r.withdraw(1)
	st.Never("retry")
	s.Finish(job)
	s.AwaitNoTrace()
}

func TestScenario08_BrokenPoolsBesideAGoodOne(t *testing.T) {
	s := begin(t)
	r := newRack(s, "broken", 8)
	run(s)

	// The layout of 1.34, counters and devices in one slice, does not get past this API server.
	mixed := r.offer(1, 1, r.devices(4)...)
	mixed.Spec.SharedCounters = r.counters(1, 1).Spec.SharedCounters
	err := s.Client.Create(s.Context(), mixed)
	if !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), "only one of `sharedCounters` or `devices` is allowed") {
		t.Errorf("counters and devices in one slice: %v", err)
	}

	// Of three pools of the driver one is well; it has the pairs.
	r.publish(r.devices(2)...)
	publishAs := func(pool, counterSet string, counters []string, d resourcev1.Device) {
		c, o := r.counters(1, 2), r.offer(1, 2, d)
		for _, slice := range []*resourcev1.ResourceSlice{c, o} {
			slice.Name, slice.Spec.Pool.Name = pool+"-"+slice.Name, pool
		}
		has := map[string]resourcev1.Counter{}
		for _, name := range counters {
			has[name] = resourcev1.Counter{Value: resource.MustParse("4")}
		}
		c.Spec.SharedCounters = []resourcev1.CounterSet{{Name: counterSet, Counters: has}}
		r.Create(c)
		r.Create(o)
	}
	publishAs("no-set", "else", r.hosts, r.device(4, 0))
	publishAs("no-counter", "hosts", r.hosts[:3], r.device(4, 0))
	r.own()

	noCounter := "pool broken.rack.example.com/no-counter: slice no-counter-broken-devices-1, device rack-4-0: " +
		"counter broken-3 does not exist in counter set hosts"
	noSet := "pool broken.rack.example.com/no-set: slice no-set-broken-devices-1, device rack-4-0: " +
		"counter set hosts does not exist in the pool"
	r.awaitCondition(berth.PoolReady, "False PoolInvalid: 2 of 3 pools cannot be used: "+noCounter)
	p := r.owner("")
	s.Get(p)
	want := []berth.PoolProblem{
		{Name: "no-counter", Reason: "PoolInvalid", Message: noCounter}, {Name: "no-set", Reason: "PoolInvalid", Message: noSet},
	}
	if len(p.Status.WorstPools) != 2 || p.Status.WorstPools[0] != want[0] || p.Status.WorstPools[1] != want[1] {
		t.Errorf("worst pools %+v, want %+v", p.Status.WorstPools, want)
	}

	waiting := s.Submit(scene.Gang("waiting", quad, 4))
	s.AwaitReserved(waiting, "False PoolInvalid: no rack-4 can be given out: "+noCounter)
	assertHoldsNothing(s, waiting)
	running := s.Submit(scene.Gang("running", pair, 2))
	s.AwaitSeated(running)
	s.AwaitReserved(running, r.on("rack-2-0", r.hosts[:2]))

	// The driver repairs one pool in place, and the gang that waited gets its slice.
	repaired := &resourcev1.ResourceSlice{}
	s.Eventually("repairing", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, types.NamespacedName{Name: "no-counter-broken-counters-1"}, repaired); err != nil {
			return err
		}
		repaired.Spec.SharedCounters[0].Counters["broken-3"] = resourcev1.Counter{Value: resource.MustParse("4")}
		return s.Client.Update(ctx, repaired)
	})
	s.AwaitSeated(waiting)
	s.AwaitReserved(waiting, "True Reserved: rack-4-0 (no-counter) on broken-0, broken-1, broken-2, broken-3")
	s.Finish(running)
	s.Finish(waiting)
	s.AwaitNoTrace()
}
