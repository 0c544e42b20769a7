package fold

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// flavor is a ResourceFlavor that folds name, with the hosts of all of them.
type flavor struct {
	name string
	// of is the fold that creates it: the oldest one that is Ready and not paused; nil when there is none.
	of *folded
	// whole is false when the hosts of some fold are not known.
	whole bool
	hosts map[string]struct{}
}

// flavors of all folds, by name.
func (v *view) flavors() []flavor {
	byName := map[string]*flavor{}
	for i := range v.folds {
		f := &v.folds[i]
		fl := byName[f.compiled.Flavor]
		if fl == nil {
			fl = &flavor{name: f.compiled.Flavor, whole: true, hosts: map[string]struct{}{}}
			byName[fl.name] = fl
		}
		if f.compiled.Problem != nil {
			fl.whole = false
			continue
		}
		for h := range f.compiled.Hosts {
			fl.hosts[h] = struct{}{}
		}
		if fl.of == nil && !pauses(f.object.Annotations[berth.AnnotationFoldPaused]) {
			fl.of = f
		}
	}
	out := make([]flavor, 0, len(byName))
	for _, fl := range byName {
		out = append(out, *fl)
	}
	slices.SortFunc(out, func(a, b flavor) int { return cmp.Compare(a.name, b.name) })
	return out
}

// kept reports that Berth keeps a ResourceFlavor: one that it created, and that nobody has given a topology, with which Kueue
// makes it immutable.
func keptFlavor(rf *kueue.ResourceFlavor) bool {
	return rf.Labels[berth.LabelFold] != "" && rf.Spec.TopologyName == nil && rf.DeletionTimestamp == nil
}

// should is the spec that a kept ResourceFlavor should have. What it has stays as long as nothing speaks against it.
func (fl *flavor) should(s *snapshot.Snapshot, has kueue.ResourceFlavorSpec) kueue.ResourceFlavorSpec {
	hosts, others := fl.split(s.Nodes)
	if len(hosts) == 0 {
		return has
	}
	has.NodeLabels = sharedLabel(hosts, others, has.NodeLabels)
	has.Tolerations = tolerations(hosts)
	return has
}

func (fl *flavor) split(nodes []*corev1.Node) (hosts, others []*corev1.Node) {
	for _, n := range nodes {
		if _, is := fl.hosts[n.Name]; is {
			hosts = append(hosts, n)
		} else {
			others = append(others, n)
		}
	}
	return hosts, others
}

// sharedLabel is one label that all hosts have and no other node: the present one if it is still so, else the first by its key,
// those of Kubernetes itself last; nil when there is none.
func sharedLabel(hosts, others []*corev1.Node, present map[string]string) map[string]string {
	var keys []string
	for key, value := range hosts[0].Labels {
		has := func(n *corev1.Node) bool { v, labelled := n.Labels[key]; return labelled && v == value }
		if key == corev1.LabelHostname || slices.ContainsFunc(others, has) ||
			slices.ContainsFunc(hosts, func(n *corev1.Node) bool { return !has(n) }) {
			continue
		}
		if was, labelled := present[key]; labelled && was == value && len(present) == 1 {
			return present
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil
	}
	first := slices.MinFunc(keys, func(a, b string) int {
		return cmp.Or(order(kubernetes(a))-order(kubernetes(b)), inventory.Natural(a, b))
	})
	return map[string]string{first: hosts[0].Labels[first]}
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// kubernetes reports that a key is one of Kubernetes' own.
func kubernetes(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && (within(domain, "kubernetes.io") || within(domain, "k8s.io"))
}

func within(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

// tolerations of the taints that all hosts have, but for those that come and go with the state of a node or with Berth's
// reservations. Kueue allows 8.
func tolerations(hosts []*corev1.Node) []corev1.Toleration {
	const most = 8
	var out []corev1.Toleration
	for _, taint := range hosts[0].Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || passing(taint.Key) {
			continue
		}
		if slices.ContainsFunc(hosts, func(n *corev1.Node) bool {
			return !slices.ContainsFunc(n.Spec.Taints, func(other corev1.Taint) bool {
				return other.Key == taint.Key && other.Value == taint.Value && other.Effect == taint.Effect
			})
		}) {
			continue
		}
		t := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
		if taint.Value == "" {
			t.Operator = corev1.TolerationOpExists
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b corev1.Toleration) int {
		return cmp.Or(inventory.Natural(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	return out[:min(len(out), most)]
}

// passing reports that a taint says how a node is doing, not what it is.
func passing(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && (within(domain, "node.kubernetes.io") || within(domain, "node.cloudprovider.kubernetes.io") || within(domain, "berth.dev"))
}

func sameFlavor(a, b kueue.ResourceFlavorSpec) bool { return equality.Semantic.DeepEqual(a, b) }
