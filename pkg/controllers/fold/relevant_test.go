package fold

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func TestRelevant(t *testing.T) {
	for name, row := range map[string]struct {
		obj    client.Object
		change func(client.Object)
		want   bool
	}{
		"a heartbeat": {dratest.Node("n"), func(o client.Object) {
			o.(*corev1.Node).Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		}, false},
		"Ready":       {dratest.Node("n"), func(o client.Object) { broken(o.(*corev1.Node)) }, true},
		"cordoned":    {dratest.Node("n"), func(o client.Object) { o.(*corev1.Node).Spec.Unschedulable = true }, true},
		"node labels": {dratest.Node("n"), func(o client.Object) { o.(*corev1.Node).Labels["a"] = "b" }, true},
		"node taints": {dratest.Node("n"), func(o client.Object) { o.(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: "a"}} }, true},
		"node going":  {dratest.Node("n"), func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: start}) }, true},
		"a check": {charged(), func(o client.Object) {
			kueuetest.Workload{Workload: o.(*kueue.Workload)}.State(kueue.CheckStateReady).Admitted()
		}, false},
		"evicted":  {charged(), func(o client.Object) { kueuetest.Workload{Workload: o.(*kueue.Workload)}.Evicted() }, true},
		"finished": {charged(), func(o client.Object) { kueuetest.Workload{Workload: o.(*kueue.Workload)}.Finished() }, true},
		"no quota": {charged(), func(o client.Object) {
			kueuetest.Workload{Workload: o.(*kueue.Workload)}.Condition(kueue.WorkloadQuotaReserved, false, start)
		}, true},
		"moved": {charged(), func(o client.Object) { kueuetest.Workload{Workload: o.(*kueue.Workload)}.In("elsewhere") }, true},
		"a pod succeeded": {charged(), func(o client.Object) {
			o.(*kueue.Workload).Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "a", Count: 1}}
		}, true},
		"a condition of a reservation": {&berth.GangReservation{}, func(o client.Object) {
			o.(*berth.GangReservation).Status.Conditions = []metav1.Condition{{Type: "Progressing"}}
		}, false},
		"a phase": {&berth.GangReservation{}, func(o client.Object) { o.(*berth.GangReservation).Status.Phase = berth.PhaseReleasing }, true},
		"a quarantine": {&berth.GangReservation{}, func(o client.Object) {
			o.(*berth.GangReservation).Status.Quarantine = []berth.QuarantinedShare{{Node: "n"}}
		}, true},
		"a pod is seated": {dratest.Claim("ml", "a"), func(o client.Object) {
			o.(*resourcev1.ResourceClaim).Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Name: "p"}}
		}, false},
		"deallocated":              {dratest.Claim("ml", "a"), func(o client.Object) { o.(*resourcev1.ResourceClaim).Status.Allocation = nil }, true},
		"whose a claim is":         {dratest.Claim("ml", "a"), func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"what Kueue counts":        {queue("a", "", "1"), func(o client.Object) { o.(*kueue.ClusterQueue).Status.PendingWorkloads = 7 }, false},
		"a quota":                  {queue("a", "", "1"), func(o client.Object) { o.SetGeneration(2) }, true},
		"an annotation":            {queue("a", "", "1"), func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"a label of a Cohort":      {&kueue.Cohort{}, func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }, true},
		"a flavor going":           {&kueue.ResourceFlavor{}, func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: start}) }, true},
		"our own status":           {newFold(), func(o client.Object) { o.(*berth.CapacityFold).Status.Shares = 1 }, false},
		"a fold":                   {newFold(), func(o client.Object) { o.SetGeneration(2) }, true},
		"a fold without finalizer": {newFold(), func(o client.Object) { o.SetFinalizers([]string{"a"}) }, true},
		"a pool's status":          {dratest.Pool(driver), func(o client.Object) { o.(*berth.AcceleratorPool).Status.Hosts.Total = 1 }, false},
		"a slice":                  {dratest.NewSlice("s", driver, "p").ResourceSlice, func(client.Object) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			row.obj.SetResourceVersion("1")
			now := row.obj.DeepCopyObject().(client.Object)
			row.change(now)
			now.SetResourceVersion("2")
			if got := (relevant{}).Update(event.UpdateEvent{ObjectOld: row.obj, ObjectNew: now}); got != row.want {
				t.Errorf("passes: %v", got)
			}
		})
	}
	waiting := kueuetest.NewWorkload(kueuetest.NewJob("a", "pair", 2)).Workload
	for obj, want := range map[client.Object]bool{waiting: false, charged(): true, queue("a", "", "1"): true} {
		if got := (relevant{}).Create(event.CreateEvent{Object: obj}); got != want {
			t.Errorf("%T: %v", obj, got)
		}
	}
}

func charged() *kueue.Workload {
	return kueuetest.NewWorkload(kueuetest.NewJob("a", "pair", 2)).QuotaReserved(kueuetest.Start).Workload
}
