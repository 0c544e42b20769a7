package fold

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func labelled(name string, labels ...string) *corev1.Node {
	n := dratest.Node(name)
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

func TestSharedLabel(t *testing.T) {
	others := []*corev1.Node{labelled("o", "kubernetes.io/os", "linux", "zone", "a")}
	for name, row := range map[string]struct {
		hosts   []*corev1.Node
		present map[string]string
		want    map[string]string
	}{
		"none":                     {[]*corev1.Node{labelled("a"), labelled("b")}, nil, nil},
		"one host":                 {[]*corev1.Node{labelled("a")}, nil, nil},
		"others have it too":       {[]*corev1.Node{labelled("a", "zone", "a")}, nil, nil},
		"others have another":      {[]*corev1.Node{labelled("a", "zone", "b")}, nil, map[string]string{"zone": "b"}},
		"not all have it":          {[]*corev1.Node{labelled("a", "rack", "1"), labelled("b")}, nil, nil},
		"they have different ones": {[]*corev1.Node{labelled("a", "rack", "1"), labelled("b", "rack", "2")}, nil, nil},
		"the first": {
			[]*corev1.Node{labelled("a", "rack-10", "1", "rack-9", "1"), labelled("b", "rack-10", "1", "rack-9", "1")}, nil, map[string]string{"rack-9": "1"},
		},
		"Kubernetes' own are last": {
			[]*corev1.Node{labelled("a", "beta.kubernetes.io/arch", "x", "node.kubernetes.io/type", "x", "x.example.com/pod", "a")}, nil, map[string]string{"x.example.com/pod": "a"},
		},
		"but better than none":    {[]*corev1.Node{labelled("a", "node.kubernetes.io/type", "x")}, nil, map[string]string{"node.kubernetes.io/type": "x"}},
		"the present one stays":   {[]*corev1.Node{labelled("a", "a", "1", "b", "1")}, map[string]string{"b": "1"}, map[string]string{"b": "1"}},
		"as long as it is so":     {[]*corev1.Node{labelled("a", "a", "1", "b", "2")}, map[string]string{"b": "1"}, map[string]string{"a": "1"}},
		"two are more than it is": {[]*corev1.Node{labelled("a", "a", "1", "b", "1")}, map[string]string{"b": "1", "c": "1"}, map[string]string{"a": "1"}},
		"an empty value":          {[]*corev1.Node{labelled("a", "gpu", "")}, nil, map[string]string{"gpu": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, sharedLabel(row.hosts, others, row.present)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	tainted := func(taints ...corev1.Taint) *corev1.Node {
		n := dratest.Node("n")
		n.Spec.Taints = taints
		return n
	}
	own := corev1.Taint{Key: "tpu", Value: "v5e", Effect: corev1.TaintEffectNoSchedule}
	bare := corev1.Taint{Key: "accelerator", Effect: corev1.TaintEffectNoExecute}
	passing := []corev1.Taint{
		{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}, {Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: corev1.TaintEffectNoSchedule},
		{Key: "berth.dev/held", Value: "ml/a", Effect: corev1.TaintEffectNoSchedule}, {Key: "maybe", Effect: corev1.TaintEffectPreferNoSchedule},
	}
	got := tolerations([]*corev1.Node{tainted(append(passing, own, bare)...), tainted(append(passing, bare, own)...)})
	if diff := cmp.Diff([]corev1.Toleration{
		{Key: "accelerator", Operator: "Exists", Effect: "NoExecute"}, {Key: "tpu", Operator: "Equal", Value: "v5e", Effect: "NoSchedule"},
	}, got); diff != "" {
		t.Error(diff)
	}
	other := own
	other.Value = "v6"
	if got := tolerations([]*corev1.Node{tainted(own), tainted(other)}); len(got) > 0 {
		t.Errorf("taints that differ: %v", got)
	}
	var many []corev1.Taint
	for _, key := range []string{"i", "h", "g", "f", "e", "d", "c", "b", "a"} {
		many = append(many, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	if got := tolerations([]*corev1.Node{tainted(many...)}); len(got) != 8 || got[0].Key != "a" || got[7].Key != "h" {
		t.Errorf("%v", got)
	}
}

func TestKeepsTheFlavorThatItMade(t *testing.T) {
	l := newLooker(t)
	l.create(newFold())
	l.looks()
	flavor := func() *kueue.ResourceFlavor { return read(l, "tpu-v5e", &kueue.ResourceFlavor{}) }
	if f := flavor(); f.Labels[berth.LabelFold] != "tpus" || !cmp.Equal(f.Spec, kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"example.com/pod": "a"}}) {
		t.Errorf("%+v", f)
	}
	taint := corev1.Taint{Key: "tpu", Effect: corev1.TaintEffectNoSchedule}
	for _, h := range []string{"h0", "h1", "h2", "h3"} {
		l.wrote("")
		edit(l, h, &corev1.Node{}, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint} })
	}
	edit(l, "other", &corev1.Node{}, func(n *corev1.Node) { n.Labels["example.com/pod"] = "a" })
	l.wrote("update ResourceFlavor")
	want := kueue.ResourceFlavorSpec{Tolerations: []corev1.Toleration{{Key: "tpu", Operator: "Exists", Effect: "NoSchedule"}}}
	if diff := cmp.Diff(want, flavor().Spec); diff != "" {
		t.Error(diff)
	}
	l.wrote("")
	// What Kueue would refuse is not tried.
	edit(l, "tpu-v5e", &kueue.ResourceFlavor{}, func(f *kueue.ResourceFlavor) {
		f.Spec.NodeLabels, f.Spec.TopologyName = map[string]string{"a": "b"}, ptr.To[kueue.TopologyReference]("racks")
	})
	l.wrote("")
	// A flavor that is not Berth's any more is left alone, and one that is gone comes back.
	edit(l, "tpu-v5e", &kueue.ResourceFlavor{}, func(f *kueue.ResourceFlavor) { f.Spec.TopologyName, f.Labels = nil, nil })
	l.wrote("")
	if err := l.Delete(t.Context(), flavor()); err != nil {
		t.Fatal(err)
	}
	l.wrote("create ResourceFlavor")
}

func TestUsesTheFlavorThatIsThere(t *testing.T) {
	theirs := &kueue.ResourceFlavor{}
	theirs.Name, theirs.Spec.NodeLabels = "tpu-v5e", map[string]string{"a": "b"}
	l := newLooker(t, theirs)
	l.create(newFold())
	l.wrote("create Cohort, update CapacityFold, update status CapacityFold")
	if got := read(l, "tpu-v5e", &kueue.ResourceFlavor{}); len(got.Labels) > 0 || !cmp.Equal(got.Spec.NodeLabels, map[string]string{"a": "b"}) {
		t.Errorf("%+v", got)
	}
}

// Two folds in one flavor: it stands for the hosts of both, and only when both are known.
func TestFlavorOfTwoFolds(t *testing.T) {
	l := newLooker(t)
	for _, obj := range moreHardware() {
		l.create(obj)
	}
	edit(l, "other", &corev1.Node{}, func(n *corev1.Node) { n.Labels["example.com/pod"] = "a" })
	l.create(newFold())
	l.create(newFold(into("Cohort second"), func(f *berth.CapacityFold) {
		f.Name, f.UID, f.Spec.DeviceClasses = "second", "fold-2", []string{"other"}
	}))
	l.looks()
	got := read(l, "tpu-v5e", &kueue.ResourceFlavor{})
	if !cmp.Equal(got.Spec.NodeLabels, map[string]string{"example.com/pod": "a"}) {
		t.Errorf("%v", got.Spec.NodeLabels)
	}
	edit(l, "second", &berth.CapacityFold{}, func(f *berth.CapacityFold) { f.Generation, f.Spec.DeviceClasses = 2, []string{"unknown"} })
	l.wrote("update status CapacityFold")
	if got := read(l, "tpu-v5e", &kueue.ResourceFlavor{}); len(got.Spec.NodeLabels) != 1 {
		t.Errorf("%v", got.Spec.NodeLabels)
	}
}
