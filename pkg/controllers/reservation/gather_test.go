package reservation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reservation"
)

// served is a reservation of one device over two hosts, with a second claim of one device for each pod.
func served() *berth.GangReservation {
	job := kueuetest.NewJob("train", "tpu-4x4", 2)
	res := kueuetest.NewReservation("res", kueuetest.NewWorkload(job), job, "d", "h0", "h1")
	nic := berth.ReservedClaim{PodClaim: "nic", Prefix: "berth.res.main.nic", PodsPerClaim: 1, Devices: []berth.ReservedDevice{
		{Instance: 0, Request: "a", Device: "a-0", Hosts: []string{"h0"}}, {Instance: 0, Request: "b", Device: "b-0", Hosts: []string{"h0"}},
		{Instance: 1, Request: "a", Device: "a-1", Hosts: []string{"h1"}},
	}}
	res.Spec.PodSets[0].Claims = append(res.Spec.PodSets[0].Claims, nic)
	return res
}

func TestPromises(t *testing.T) {
	var got []string
	for _, p := range promises(served()) {
		text := p.podSet + " " + p.podClaim + " " + p.name
		for _, d := range p.devices {
			text += " " + d.Device
		}
		got = append(got, text)
	}
	want := []string{"main tpu berth.res.main.tpu-0 d", "main nic berth.res.main.nic-0 a-0 b-0", "main nic berth.res.main.nic-1 a-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Scenario 23: claims are made from the very template that was decided on.
func TestOnlyTheTemplateThatWasDecidedOn(t *testing.T) {
	res := served()
	res.Spec.PodSets[0].Claims[0].Template = &berth.TemplateReference{Name: "tpu-4x4", UID: "template-tpu-4x4"}
	p := promises(res)[0]
	p.devices[0].Request = "slice"
	if got := mismatch(p, kueuetest.NewTemplate("tpu-4x4")); got != nil {
		t.Error(got)
	}
	another := kueuetest.NewTemplate("tpu-4x4")
	another.UID = "another"
	want := "TemplateReplaced: ResourceClaimTemplate tpu-4x4 was replaced after devices had been chosen for what the former one asked for"
	if got := mismatch(p, another); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	// A reservation of an older release says nothing about its template; what it asks for must be there all the same.
	p.template = nil
	if got := mismatch(p, another); got != nil {
		t.Error(got)
	}
	another.Spec.Spec.Devices.Requests[0].Name = "other"
	if got := mismatch(p, another); got == nil || got.Error() != "ReservationFailed: ResourceClaimTemplate tpu-4x4 changed: it has no request slice any more" {
		t.Error(got)
	}
}

func TestNewClaimTellsItsStory(t *testing.T) {
	res := served()
	p := promises(res)[1]
	spec := kueuetest.NewTemplate("nic").Spec.Spec
	claim, err := newClaim(res, p, spec, "term")
	if err != nil {
		t.Fatal(err)
	}
	var devices []berth.ReservedDevice
	if err := json.Unmarshal([]byte(claim.Annotations[berth.AnnotationDevices]), &devices); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.devices, devices); diff != "" {
		t.Error(diff)
	}
	delete(claim.Annotations, berth.AnnotationDevices)
	want := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: "berth.res.main.nic-0", Finalizers: []string{"berth.dev/hold"}, Labels: map[string]string{"berth.dev/reservation": "res"},
		Annotations: map[string]string{
			"berth.dev/reservation-uid": "uid-res", "berth.dev/workload": "job-train", "berth.dev/workload-uid": "wl-train",
			"berth.dev/epoch": "0000000000", "berth.dev/leader": "term",
		},
	}, Spec: spec}
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Error(diff)
	}
}

// claimOf is the first claim of a reservation, held.
func claimOf(res *berth.GangReservation) *resourcev1.ResourceClaim {
	claim, err := newClaim(res, promises(res)[0], resourcev1.ResourceClaimSpec{}, "term")
	if err != nil {
		panic(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{hold("job-train", "wl-train"), {Resource: "pods", Name: "p", UID: "p"}}
	return claim
}

func TestClaimStates(t *testing.T) {
	entry := func(change func(*resourcev1.ResourceClaimConsumerReference)) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) { change(&c.Status.ReservedFor[0]) }
	}
	for _, row := range []struct {
		name     string
		change   func(*resourcev1.ResourceClaim)
		orphaned bool
		want     reservation.Claim
	}{
		{"held", func(*resourcev1.ResourceClaim) {}, false, reservation.Claim{State: reservation.Held, Finalizer: true}},
		{"in deletion", func(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = &metav1.Time{} }, false, reservation.Claim{State: reservation.Held, Finalizer: true, Deleting: true}},
		{"not allocated", func(c *resourcev1.ResourceClaim) { c.Status = resourcev1.ResourceClaimStatus{} }, false, reservation.Claim{State: reservation.Free, Finalizer: true}},
		{"no entry", func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = c.Status.ReservedFor[1:] }, false, reservation.Claim{State: reservation.Unheld, Finalizer: true}},
		{"another's entry", entry(func(r *resourcev1.ResourceClaimConsumerReference) { r.UID = "other" }), false, reservation.Claim{State: reservation.Unheld, Finalizer: true}},
		{"an entry of another kind", entry(func(r *resourcev1.ResourceClaimConsumerReference) { r.Resource = "jobs" }), false, reservation.Claim{State: reservation.Unheld, Finalizer: true}},
		{"without finalizer", func(c *resourcev1.ResourceClaim) { c.Finalizers = []string{"other"} }, false, reservation.Claim{State: reservation.Held}},
		{"of another reservation", func(c *resourcev1.ResourceClaim) { c.Annotations[berth.AnnotationReservationUID] = "other" }, false, reservation.Claim{State: reservation.Foreign, Finalizer: true}},
		{"of nobody", func(c *resourcev1.ResourceClaim) { c.Annotations = nil }, false, reservation.Claim{State: reservation.Foreign, Finalizer: true}},
		{"a leftover", func(*resourcev1.ResourceClaim) {}, true, reservation.Claim{State: reservation.Held, Finalizer: true}},
		{"what looks like a leftover", func(c *resourcev1.ResourceClaim) { c.Finalizers = nil }, true, reservation.Claim{State: reservation.Foreign}},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := served()
			claim := claimOf(res)
			row.change(claim)
			row.want.Name = claim.Name
			g := &gathered{res: res, recorded: !row.orphaned}
			if diff := cmp.Diff(row.want, g.claim(claim)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRanks(t *testing.T) {
	pod := func(name string, rank int, phase corev1.PodPhase) *corev1.Pod {
		p := kueuetest.NewPod(served(), rank)
		p.Name, p.UID, p.Status.Phase = name, types.UID(name), phase
		return p
	}
	stranger := pod("stranger", 0, corev1.PodSucceeded)
	stranger.OwnerReferences = nil
	for _, row := range []struct {
		name string
		pods []*corev1.Pod
		want []bool // Ended by rank
	}{
		{"nobody", nil, []bool{false, false}},
		{"runs", []*corev1.Pod{pod("a", 0, corev1.PodRunning)}, []bool{false, false}},
		{"succeeded", []*corev1.Pod{pod("a", 1, corev1.PodSucceeded)}, []bool{false, true}},
		{"failed: another may have come after it", []*corev1.Pod{pod("a", 0, corev1.PodFailed)}, []bool{false, false}},
		{"failed and succeeded", []*corev1.Pod{pod("a", 0, corev1.PodFailed), pod("b", 0, corev1.PodSucceeded)}, []bool{true, false}},
		{"a stranger succeeded", []*corev1.Pod{stranger}, []bool{false, false}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := &gathered{res: served(), recorded: true, pods: map[string]*corev1.Pod{}}
			for _, p := range row.pods {
				g.pods[p.Name] = p
			}
			want := []reservation.Rank{{Host: "h0", Ended: row.want[0]}, {Host: "h1", Ended: row.want[1]}}
			if diff := cmp.Diff(want, g.ranks()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Claims without a reservation tell on which hosts their pods may be. That a pod succeeded says nothing about the others.
func TestRanksOfOrphans(t *testing.T) {
	res := served()
	first, broken := claimOf(res), claimOf(res)
	broken.Name, broken.Annotations[berth.AnnotationDevices] = "broken", "{]"
	g := &gathered{res: orphan(types.NamespacedName{Namespace: "ml", Name: "res"}, []*resourcev1.ResourceClaim{first})}
	g.claims = map[string]*resourcev1.ResourceClaim{first.Name: first, broken.Name: broken}
	done := kueuetest.NewPod(res, 0)
	done.Spec.NodeName, done.Status.Phase = "h0", corev1.PodSucceeded
	g.pods = map[string]*corev1.Pod{done.Name: done}
	if diff := cmp.Diff([]reservation.Rank{{Host: "h0"}, {Host: "h1"}}, g.ranks()); diff != "" {
		t.Error(diff)
	}
	if g.res.UID != "uid-res" || g.res.Spec.WorkloadRef.UID != "wl-train" || g.res.Spec.WorkloadRef.Name != "job-train" || g.res.Spec.Epoch != "0000000000" || g.res.Status.Phase != berth.PhaseReleasing {
		t.Errorf("%+v", g.res)
	}
}
