package policy_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func fromUnstructured(from map[string]any, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from, to)
}

// What no driver can publish and no node can carry is refused when it is written, with a word on what it must be, and not
// by the DeviceTaintRule that is made of it later.
func TestAcceleratorPoolsThatCannotMatch(t *testing.T) {
	w := fenced(t)
	const (
		name   = "a pool name is one or more DNS subdomains in lower case, separated by slashes, as in ResourceSlice.spec.pool.name"
		prefix = "no pool name begins like this: a pool name is one or more DNS subdomains in lower case, separated by slashes"
		rank   = "rankLabel must be the key of a node label, for example example.com/position or position"
		node   = "nodeLabel must be the key of a node label, for example example.com/cube or cube"
		driver = "driver must be the DNS name that the driver writes into ResourceSlice.spec.driver, in lower case"
	)
	names := func(names ...string) func(*v1alpha1.AcceleratorPoolSpec) {
		return func(s *v1alpha1.AcceleratorPoolSpec) { s.PoolSelector = &v1alpha1.PoolSelector{Names: names} }
	}
	prefixes := func(prefixes ...string) func(*v1alpha1.AcceleratorPoolSpec) {
		return func(s *v1alpha1.AcceleratorPoolSpec) { s.PoolSelector = &v1alpha1.PoolSelector{Prefixes: prefixes} }
	}
	ranked := func(label string) func(*v1alpha1.AcceleratorPoolSpec) {
		return func(s *v1alpha1.AcceleratorPoolSpec) { s.RankLabel = label }
	}
	tied := func(label string) func(*v1alpha1.AcceleratorPoolSpec) {
		return func(s *v1alpha1.AcceleratorPoolSpec) { s.Interconnect = &v1alpha1.Interconnect{NodeLabel: label} }
	}
	driven := func(driver string) func(*v1alpha1.AcceleratorPoolSpec) {
		return func(s *v1alpha1.AcceleratorPoolSpec) { s.Driver = driver }
	}
	long := strings.Repeat("x", 63)
	for _, row := range []struct {
		change func(*v1alpha1.AcceleratorPoolSpec)
		want   string // empty: it is accepted
	}{
		{names("pod-a", "0", "rack-1/pod-a", "node-1.example.com/a/b.c"), ""},
		{names("POD-A"), name},
		{names("pod-a", "A B%%"), name},
		{names("/pod-a"), name},
		{names("pod-a/"), name},
		{names("a//b"), name},
		{names("a..b"), name},
		{names("-a"), name},
		{names("a-"), name},
		{prefixes("pod-", "p", "rack-1/", "rack-1/pod-", "node-1.", "a.b"), ""},
		{prefixes("POD-"), prefix},
		{prefixes("-pod"), prefix},
		{prefixes("/"), prefix},
		{prefixes("a//"), prefix},
		{prefixes("a-/b"), prefix},
		{ranked(""), ""},
		{ranked("position"), ""},
		{ranked("Example_1.x"), ""},
		{ranked("topology.example.com/" + long), ""},
		{ranked("not a label!!"), rank},
		{ranked("example.com/"), rank},
		{ranked("Example.com/position"), rank},
		{ranked("a/b/c"), rank},
		{ranked(long + "x"), rank},
		{tied("example.com/cube"), ""},
		{tied("no cube"), node},
		{driven("A B%%"), driver},
		{driven("tpu.example.com"), ""},
	} {
		pool := acceleratorPool("cannot-match", "cannot.example.com", "", nil)
		row.change(&pool.Spec)
		err := w.admin.Create(t.Context(), pool, client.DryRunAll)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%+v was refused: %v", pool.Spec, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%+v: %v, want %q", pool.Spec, err, row.want)
		}
	}
}
