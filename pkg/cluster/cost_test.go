package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// What a World costs is what changed since the last one, not what there is. Allocations are counted, not time.
func TestWorldCostsWhatChanged(t *testing.T) {
	costs := func(pods int, change func(*snapshot.Snapshot)) float64 {
		s := tpu(t)
		for i := range pods {
			s.Pods = append(s.Pods, pod(fmt.Sprint("p", i), fmt.Sprint("node-", i%16), "0"))
		}
		for i := range pods / 10 {
			s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", fmt.Sprint("other-", i), dratest.Result("other.example.com", "p", fmt.Sprint(i))))
		}
		other := *s
		other.Pods, other.ResourceClaims = slices.Clone(s.Pods), slices.Clone(s.ResourceClaims)
		change(&other)
		c := cluster.New()
		c.World(s)
		c.World(&other)
		turn := 0
		return testing.AllocsPerRun(20, func() {
			turn++
			c.World([]*snapshot.Snapshot{s, &other}[turn%2])
		})
	}
	for name, change := range map[string]func(*snapshot.Snapshot){
		"nothing":    func(*snapshot.Snapshot) {},
		"a pod":      func(s *snapshot.Snapshot) { s.Pods[3] = pod("p3", "node-9", "2") },
		"a pod ends": func(s *snapshot.Snapshot) { s.Pods[5] = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}} },
		"a claim": func(s *snapshot.Snapshot) {
			s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", "new", dratest.Result(driver, pool, "tpu-4x4-00")))
		},
		"a claim that holds nothing": func(s *snapshot.Snapshot) {
			s.ResourceClaims = append(s.ResourceClaims, &resourcev1.ResourceClaim{})
		},
	} {
		few, many := costs(320, change), costs(3200, change)
		if many > few+few/10+8 {
			t.Errorf("%s: %v allocations beside 320 pods, %v beside 3200", name, few, many)
		}
	}
	// Without the gang's own slice it costs that slice.
	s := tpu(t)
	c := cluster.New()
	c.World(s)
	if allocs := testing.AllocsPerRun(20, func() { c.WorldWithout(s, types.NamespacedName{Namespace: "ml", Name: "none"}) }); allocs > 24 {
		t.Errorf("a World without a reservation that is not there: %v allocations", allocs)
	}
}
