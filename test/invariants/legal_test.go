package invariants_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/invariants"
)

// legal ends the watch and fails if anything was said.
func (f *fixture) legal() {
	f.t.Helper()
	for _, text := range f.rec.finish() {
		f.t.Errorf("a false alarm: %s", text)
	}
}

// moved plays a gang that is evicted from host m0 and served on m1 after a change to its former host or pod, which may
// still run.
func (f *fixture) moved(change func(host *corev1.Node, p *corev1.Pod)) (former *gang, p *corev1.Pod) {
	f.t.Helper()
	host := f.node("m0", corev1.ConditionTrue)
	f.node("m1", corev1.ConditionTrue)
	workload := f.workload("m")
	former = f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady)
	p = former.pod("m0", 0, "m0")
	former.phase(v1alpha1.PhaseHandedOver)
	f.podPhase(p, corev1.PodRunning)
	former.state(kueue.CheckStatePending).phase(v1alpha1.PhaseReleasing)
	change(host, p)
	f.reserve(workload, epoch2, "right").allocate().state(kueue.CheckStateReady).pod("m1", 0, "m1")
	return former, p
}

// histories break nothing, each near to where another would.
var histories = []struct {
	name string
	play func(f *fixture)
}{
	{"a whole life", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left", "right").allocate().phase(v1alpha1.PhaseReserved).state(kueue.CheckStateReady)
		p0, p1 := g.pod("p0", 0, "n0"), g.pod("p1", 1, "n1")
		g.phase(v1alpha1.PhaseHandedOver)
		f.podPhase(p0, corev1.PodSucceeded)
		f.podPhase(p1, corev1.PodFailed)
		meta.SetStatusCondition(&g.workload.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: "Test"})
		f.must(f.client.Status().Update(f.ctx, g.workload))
		g.release() // the check of a finished Workload stays Ready
	}},
	{"moved when its former pod had ended", func(f *fixture) {
		former, _ := f.moved(func(_ *corev1.Node, p *corev1.Pod) { f.podPhase(p, corev1.PodFailed) })
		former.release()
	}},
	{"moved off a lost host", func(f *fixture) {
		former, p := f.moved(func(host *corev1.Node, _ *corev1.Pod) { f.nodeReady(host, corev1.ConditionUnknown) })
		f.delete(p)
		former.quarantine("m0")
		former.clear(0)
	}},
	{"moved off a lost host that came back", func(f *fixture) {
		former, p := f.moved(func(host *corev1.Node, _ *corev1.Pod) {
			f.nodeReady(host, corev1.ConditionUnknown)
			f.nodeReady(host, corev1.ConditionTrue)
		})
		f.delete(p)
		former.release()
	}},
	{"moved off a deleted host", func(f *fixture) {
		former, p := f.moved(func(host *corev1.Node, _ *corev1.Pod) { f.delete(host) })
		f.delete(p)
		former.release()
	}},
	{"moved off a host out of service", func(f *fixture) {
		former, p := f.moved(func(host *corev1.Node, _ *corev1.Pod) {
			host.Spec.Taints = append(host.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
			f.must(f.client.Update(f.ctx, host))
		})
		f.delete(p)
		former.release()
	}},
	{"one rank of two gangs", func(f *fixture) {
		f.node("n0", corev1.ConditionTrue)
		f.node("n1", corev1.ConditionTrue)
		f.reserve(f.workload("a"), epoch1, "left").allocate().podAfterReady("p", 0, "n0")
		f.reserve(f.workload("b"), epoch1, "right").allocate().podAfterReady("q", 0, "n1")
	}},
	{"a pod of the old template after the eviction", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady).state(kueue.CheckStatePending)
		g.pod("late", 0, "")
	}},
	{"a seated pod that is deleted before it was bound", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		p := g.pod("p", 0, "")
		p.Finalizers = []string{batchv1.JobTrackingFinalizer}
		f.must(f.client.Update(f.ctx, p))
		f.delete(p)
		g.state(kueue.CheckStateRetry)
		g.release()
		f.unfinalize(p)
	}},
	{"Workload deleted under a Ready check", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		g.workload.Finalizers = []string{kueue.ResourceInUseFinalizerName}
		f.must(f.client.Update(f.ctx, g.workload))
		g.state(kueue.CheckStateReady)
		f.delete(g.workload)
		g.release()
		f.unfinalize(g.workload)
		f.must(f.watcher.AwaitNoTrace(f.ctx, g.workload.UID))
	}},
	{"quota unset while Ready is stale", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		g.workload.Status.Conditions[0].Status = metav1.ConditionFalse
		f.must(f.client.Status().Update(f.ctx, g.workload))
		g.state(kueue.CheckStatePending)
		g.release()
	}},
	{"Kueue brings a Ready back that was taken", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().phase(v1alpha1.PhaseReserved)
		g.applied("berth-gang", kueue.CheckStateReady).applied("kueue-admission", kueue.CheckStateReady)
		g.phase(v1alpha1.PhaseReleasing).applied("berth-gang", kueue.CheckStatePending)
		g.applied("kueue-admission", kueue.CheckStateReady)
		g.clear(0)
		g.applied("berth-gang", kueue.CheckStatePending)
		g.release()
	}},
	{"pinned claim deleted by hand stays", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		f.delete(g.claims[0])
		g.state(kueue.CheckStateRetry)
		g.clear(0)
	}},
	{"the same share again after it was free", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "whole").allocate()
		g.release()
		f.reserve(f.workload("b"), epoch1, "left").allocate()
		f.reserve(f.workload("c"), epoch1, "right").allocate()
	}},
	{"admin access takes nothing", func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "whole").allocate()
		f.must(f.client.Patch(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns}},
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`))))
		admin := f.claim("admin")
		admin.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true)
		f.must(f.client.Create(f.ctx, admin))
		admin.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: f.ns, Device: "left", AdminAccess: ptr.To(true)}},
		}}
		f.must(f.client.Status().Update(f.ctx, admin))
	}},
	{"shares up to the last of a capacity", func(f *fixture) {
		f.shareable("big", "80Gi")
		a := f.shares("a", "big", "50Gi")
		f.shares("b", "big", "30Gi")
		a.release()
		f.shares("c", "big", "25Gi")
		f.shares("d", "big", "25Gi")
	}},
	{"others overdraw a capacity where no fence is", func(f *fixture) {
		f.fence(v1alpha1.FenceObserve)
		f.shareable("big", "80Gi")
		f.shares("a", "big", "80Gi")
		foreign := f.claim("foreign")
		f.must(f.client.Create(f.ctx, foreign))
		f.share(foreign, "big", "1Gi")
	}},
	{"others overdraw where no fence is", func(f *fixture) {
		f.fence(v1alpha1.FenceObserve)
		f.reserve(f.workload("a"), epoch1, "whole").allocate()
		foreign := f.claim("foreign")
		f.must(f.client.Create(f.ctx, foreign))
		f.allocate(foreign, "left")
	}},
	{"driver lowers counters under an allocation", func(f *fixture) {
		f.publish(1, "2", "whole", "left", "right", "solo")
		f.reserve(f.workload("a"), epoch1, "left").allocate()
		f.publish(1, "0", "whole", "left", "right", "solo")
		f.reserve(f.workload("b"), epoch1, "right").allocate() // it cannot have known
	}},
	{"stranger in reservedFor", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		stranger := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "stranger"},
			Spec:       corev1.PodSpec{NodeName: "n0", Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}
		f.must(f.client.Create(f.ctx, stranger))
		g.claims[0].Status.ReservedFor = append(g.claims[0].Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "stranger", UID: stranger.UID})
		f.must(f.client.Status().Update(f.ctx, g.claims[0]))
		g.clear(0)
	}},
	{"pod forced away from a healthy host", func(f *fixture) {
		f.node("healthy", corev1.ConditionTrue)
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		p := g.podAfterReady("p", 0, "healthy")
		f.podPhase(p, corev1.PodRunning)
		f.delete(p)
		g.clear(0)
	}},
	{"pod forced away from a lost host in quarantine", func(f *fixture) {
		f.node("lost", corev1.ConditionUnknown)
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		p := g.podAfterReady("p", 0, "lost")
		f.podPhase(p, corev1.PodRunning)
		f.delete(p)
		g.quarantine("lost")
		g.clear(0)
	}},
	{"pod forced away from a lost host that came back", func(f *fixture) {
		node := f.node("back", corev1.ConditionUnknown)
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		p := g.podAfterReady("p", 0, "back")
		f.podPhase(p, corev1.PodRunning)
		f.delete(p)
		f.nodeReady(node, corev1.ConditionTrue)
		g.clear(0)
	}},
	{"successor of a rank after its predecessor", func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left", "right").allocate().state(kueue.CheckStateReady)
		p := g.pod("p", 0, "n0")
		g.pod("other-rank", 1, "n1")
		g.pod("gated", 0, "")
		f.podPhase(p, corev1.PodFailed)
		g.pod("q", 0, "n0")
	}},
	{"a planned target", func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "whole").allocate()
		f.reserve(f.workload("b"), epoch1, "whole").phase(v1alpha1.PhasePlanned)
	}},
}

// applied writes the check's state as a field manager, by force as Berth and Kueue do.
func (g *gang) applied(manager string, state kueue.CheckState) *gang {
	g.f.t.Helper()
	said := map[string]any{"name": check, "state": string(state), "message": manager, "lastTransitionTime": "2026-01-01T00:00:00Z"}
	if state == kueue.CheckStateReady {
		said["podSetUpdates"] = []any{map[string]any{
			"name": "main", "labels": map[string]any{v1alpha1.LabelReservation: g.reservation.Name},
		}}
	}
	patch := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"admissionChecks": []any{said}}}}
	patch.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	patch.SetNamespace(g.workload.Namespace)
	patch.SetName(g.workload.Name)
	g.f.must(g.f.client.Status().Apply(g.f.ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(manager), client.ForceOwnership))
	return g
}

func TestLegalHistoriesRaiseNothing(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			f := newFixture(t)
			h.play(f)
			f.legal()
		})
	}
}

// What a watcher finds when it comes is not held against anybody.
func TestLateWatcher(t *testing.T) {
	f := newFixture(t, invariants.Without(1))
	g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
	f.reserve(f.workload("b"), epoch1, "whole").allocate()
	f.legal()
	f.watch()
	p := g.pod("p", 0, "n0")
	f.podPhase(p, corev1.PodSucceeded)
	g.state(kueue.CheckStatePending)
	g.release()
	f.legal()
}

// Quick lives, one after the other on the same devices: what the watches deliver out of order is no breach.
func TestManyLives(t *testing.T) {
	f := newFixture(t, invariants.WithTraceGrace(time.Nanosecond))
	began := time.Now()
	lives := 0
	for ; lives < 40 && time.Since(began) < limit; lives++ {
		g := f.reserve(f.workload("w"), fmt.Sprintf("%010x", lives), "whole").allocate().state(kueue.CheckStateReady)
		p := g.pod("p", 0, "n0")
		g.phase(v1alpha1.PhaseHandedOver)
		f.podPhase(p, corev1.PodSucceeded)
		f.delete(p)
		g.state(kueue.CheckStatePending)
		g.release()
		f.delete(g.workload)
	}
	f.legal()
	t.Logf("%d lives in %s", lives, time.Since(began).Round(time.Millisecond))
}
