package kueue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

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
