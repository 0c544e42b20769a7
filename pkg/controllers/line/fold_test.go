package line

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

const shares = "berth.dev/shares"

// folds adds a fold of the 4x4 slices of one DRA pool into a flavor.
func (s *site) folds(pool, flavor string) {
	f := &berth.CapacityFold{ObjectMeta: metav1.ObjectMeta{Name: "fold-" + flavor}}
	f.Spec = berth.CapacityFoldSpec{
		PoolSelector: &berth.PoolSelector{Names: []string{pool}}, DeviceClasses: []string{"tpu-4x4"}, Flavor: flavor, Resource: shares,
		Targets: []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: "quota-" + flavor}},
	}
	s.CapacityFolds = append(s.CapacityFolds, f)
}

// assigned sets the flavor that Kueue charges the shares to, and how many.
func assigned(w kueuetest.Workload, flavor string, charged int64) {
	psa := &w.Status.Admission.PodSetAssignments[0]
	psa.Flavors[shares] = kueue.ResourceFlavorReference(flavor)
	psa.ResourceUsage = corev1.ResourceList{shares: *resource.NewQuantity(charged, resource.DecimalSI)}
}

func TestAGangStaysWithItsFlavor(t *testing.T) {
	tests := map[string]struct {
		flavor string
		taken  int
		want   string
	}{
		"its flavor is one pool": {"b", 0, "c reserves pod-b/tpu-4x4-00"},
		"which is full": {"b", 2, "a reserves pod-b/tpu-4x4-00\nb reserves pod-b/tpu-4x4-01\n" +
			"c Pending NoFreeSlice: no tpu-4x4 is free: 2 of 4 are held by ml/job-a-b0ccc94300, ml/job-b-7775416600; 2 are on hosts that the pods may not use: " +
			"hosts pod-a-0, pod-a-1, pod-a-2, pod-a-3, pod-a-4 and 3 more (each belongs to flavor a, and Kueue assigned b); " +
			"waits for pod-b/tpu-4x4-00: drains when ml/job-a-b0ccc94300 ends\nc keeps pod-b/tpu-4x4-00"},
		"its flavor has no fold": {"c", 0, "c Pending HostUnusable: no tpu-4x4 is free: 4 of 4 are on hosts that the pods may not use: " +
			"hosts pod-a-0, pod-a-1, pod-a-2, pod-a-3, pod-a-4 and 3 more (each belongs to flavor a, and Kueue assigned c), " +
			"hosts pod-b-0, pod-b-1, pod-b-2, pod-b-3, pod-b-4 and 3 more (each belongs to flavor b, and Kueue assigned c)"},
		"it is not charged for shares": {"", 0, "c reserves pod-a/tpu-4x4-00"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.folds("pod-a", "a")
			s.folds("pod-b", "b")
			for i := range test.taken {
				assigned(s.waits([]string{"a", "b"}[i]), test.flavor, 4)
			}
			c := s.waits("c")
			assigned(c, test.flavor, 4)
			if test.flavor == "" {
				delete(c.Status.Admission.PodSetAssignments[0].Flavors, shares)
			}
			if got := strings.TrimSpace(s.pass().tell()); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestNotCharged(t *testing.T) {
	tests := map[string]struct {
		covered corev1.ResourceName
		charged int64
		// said is what the Workload says from before.
		said reason.Code
		ago  time.Duration
		want string
	}{
		"charged":              {shares, 4, "", 0, "a reserves pod-a/tpu-4x4-00"},
		"not charged":          {shares, 0, "", 0, "a Retry @"},
		"for some":             {shares, 3, "", 0, "a Retry @"},
		"again":                {shares, 0, reason.NotCharged, 20 * time.Second, "a Pending @\nagain in 40s"},
		"again, a minute long": {shares, 0, reason.NotCharged, time.Minute, "a Retry @"},
		"after another reason": {shares, 0, reason.NoFreeSlice, 0, "a Retry @"},
		"nobody charges":       {"cpu", 0, "", 0, "a reserves pod-a/tpu-4x4-00"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.folds("pod-a", kueuetest.Flavor)
			queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: kueuetest.Queue}}
			queue.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{test.covered}}}
			s.ClusterQueues = append(s.ClusterQueues, queue)
			w := s.waits("a")
			assigned(w, kueuetest.Flavor, test.charged)
			if test.said != "" {
				w.Condition(berth.ConditionGangReserved, false, now)
				w.Status.Conditions[len(w.Status.Conditions)-1].Reason = string(test.said)
				w.Condition(kueue.WorkloadQuotaReserved, true, now.Add(-test.ago))
			}
			sentence := fmt.Sprintf("NotCharged: Kueue charges pod set main %d of 4 berth.dev/shares and is asked again; "+
				"if that does not help, its deviceClassMappings do not give DeviceClass tpu-4x4 that resource", test.charged)
			if got, want := strings.TrimSpace(s.pass().tell()), strings.ReplaceAll(test.want, "@", sentence); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
