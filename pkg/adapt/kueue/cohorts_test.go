package kueue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
)

func TestUnder(t *testing.T) {
	var cohorts []*kueue.Cohort
	for child, parent := range map[string]string{"top": "", "left": "top", "right": "top", "a": "b", "b": "c", "c": "a", "self": "self"} {
		cohorts = append(cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: child}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}})
	}
	var queues []*kueue.ClusterQueue
	for queue, cohort := range map[string]string{
		"q-top": "top", "q-left": "left", "q-left-2": "left", "q-alone": "", "q-implicit": "implicit", "q-b": "b", "q-self": "self",
	} {
		queues = append(queues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ClusterQueueSpec{CohortName: kueue.CohortReference(cohort)}})
	}
	tree := adaptkueue.NewCohorts(cohorts, queues)
	for cohort, want := range map[string]string{
		"top": "q-left q-left-2 q-top", "left": "q-left q-left-2", "right": "", "implicit": "q-implicit", "unknown": "", "": "",
		"a": "q-b", "b": "q-b", "c": "q-b", "self": "q-self",
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(tree.Under(cohort))), " "); got != want {
			t.Errorf("under %q: %s, want %s", cohort, got, want)
		}
	}
}

// What a queue has of its own is used up first; the rest is drawn from the cohort above it, and so on upwards.
func TestDrawn(t *testing.T) {
	of := adaptkueue.Quota{Flavor: "tpu", Resource: "shares"}
	quota := func(n string) []kueue.ResourceGroup {
		return []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{{Name: "tpu", Resources: []kueue.ResourceQuota{
			{Name: "shares", NominalQuota: resource.MustParse(n)},
		}}}}}
	}
	cohort := func(name, parent, n string) *kueue.Cohort {
		return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent), ResourceGroups: quota(n)}}
	}
	queue := func(name, in, n string) *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{CohortName: kueue.CohortReference(in), ResourceGroups: quota(n)}}
	}
	tree := adaptkueue.NewCohorts(
		[]*kueue.Cohort{cohort("top", "", "8"), cohort("left", "top", "4"), cohort("ring-a", "ring-b", "1"), cohort("ring-b", "ring-a", "1")},
		[]*kueue.ClusterQueue{queue("own", "top", "8"), queue("none", "left", "0"), queue("little", "left", "2"), queue("implicit", "named", "0"), queue("round", "ring-a", "0")},
	)
	charged := map[string]int64{"own": 6, "none": 5, "little": 4, "implicit": 3, "round": 9, "elsewhere": 7}
	for name, want := range map[string]int64{
		"left":   7, // 5, and 4 of which 2 are its own
		"top":    3, // nothing of own, and 7 of which 4 are left's
		"named":  3,
		"ring-a": 9,
		"ring-b": 8,
	} {
		if got := tree.Drawn(name, of, func(q string) int64 { return charged[q] }); got != want {
			t.Errorf("%d is drawn from %s, want %d", got, name, want)
		}
	}
}
