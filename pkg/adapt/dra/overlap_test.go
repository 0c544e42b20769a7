package dra_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

func accelerators(name string, at time.Time, pools ...string) *berth.AcceleratorPool {
	p := dratest.Pool(driver)
	p.Name, p.CreationTimestamp = name, metav1.NewTime(at)
	if len(pools) > 0 {
		p.Spec.PoolSelector = &berth.PoolSelector{Names: pools}
	}
	return p
}

// Whoever comes later takes nothing over, whatever its name.
func TestTheOlderAcceleratorPoolKeepsTheDRAPool(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var pools []*inventory.Pool
	for i := range 8 {
		pools = append(pools, &inventory.Pool{ID: inventory.PoolID{Driver: driver, Name: fmt.Sprintf("pod-%d", 10-i)}})
	}
	pools = append(pools, &inventory.Pool{ID: inventory.PoolID{Driver: "other.example.com", Name: "pod-9"}})
	tests := map[string]struct {
		all   []*berth.AcceleratorPool
		owner string // of pod-9
		// overlaps by AcceleratorPool, in the order of all.
		overlaps []string
	}{
		"one": {[]*berth.AcceleratorPool{accelerators("tpu", first)}, "tpu", []string{""}},
		"a later one with an earlier name": {
			[]*berth.AcceleratorPool{accelerators("a", first.Add(time.Second), "pod-9"), accelerators("tpu", first)}, "tpu",
			[]string{"DRA pool pod-9 is managed by AcceleratorPool tpu, which is older", ""},
		},
		"as old": {
			[]*berth.AcceleratorPool{accelerators("b", first, "pod-10", "pod-9"), accelerators("a", first)}, "a",
			[]string{"DRA pools pod-9, pod-10 are managed by AcceleratorPool a, which is as old and comes first by name", ""},
		},
		"many": {
			[]*berth.AcceleratorPool{accelerators("a", first.Add(time.Hour)), accelerators("tpu", first)}, "tpu",
			[]string{"DRA pools pod-3, pod-4, pod-5, pod-6, pod-7 and 3 more are managed by AcceleratorPool tpu, which is older", ""},
		},
		"two owners": {
			[]*berth.AcceleratorPool{accelerators("c", first.Add(time.Hour)), accelerators("z", first, "pod-9"), accelerators("b", first, "pod-8")}, "z",
			[]string{"DRA pool pod-8 is managed by AcceleratorPool b, which is older; DRA pool pod-9 is managed by AcceleratorPool z, which is older", "", ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := dra.NewManaged(test.all)
			if got := m.Owner(inventory.PoolID{Driver: driver, Name: "pod-9"}); got == nil || got.Name != test.owner {
				t.Errorf("pod-9 is managed by %v, want %s", got, test.owner)
			}
			for i, p := range test.all {
				var told []string
				for _, o := range m.Overlaps(p, pools) {
					told = append(told, o.String())
				}
				if got := strings.Join(told, "; "); got != test.overlaps[i] {
					t.Errorf("of %s\n got %s\nwant %s", p.Name, got, test.overlaps[i])
				}
			}
		})
	}
}
