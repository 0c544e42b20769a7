package nodes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Ineligible says for each node that pods of the template may not use, why. Labels are further node labels that the
// pods will be given as a node selector, and tolerations further tolerations, both from the ResourceFlavor. Nodes that
// the pods may use are not in the result.
func Ineligible(spec *corev1.PodSpec, labels map[string]string, tolerations []corev1.Toleration, nodes []*corev1.Node) map[string]string {
	out := map[string]string{}
	affinity := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity)
	all := slices.Concat(spec.Tolerations, tolerations)
	keys := slices.Sorted(maps.Keys(labels))
	for _, n := range nodes {
		if why := ineligible(n, spec, affinity, labels, keys, all); why != "" {
			out[n.Name] = why
		}
	}
	return out
}

func ineligible(n *corev1.Node, spec *corev1.PodSpec, affinity nodeaffinity.RequiredNodeAffinity, labels map[string]string, keys []string, tolerations []corev1.Toleration) string {
	if spec.NodeName != "" && spec.NodeName != n.Name {
		return "is not the node that the pods name"
	}
	match, err := affinity.Match(n)
	switch {
	case err != nil:
		return fmt.Sprintf("cannot be compared with the pods' node affinity: %v", err)
	case !match:
		return "does not match the pods' node selector or affinity"
	}
	for _, k := range keys {
		if n.Labels[k] != labels[k] {
			return fmt.Sprintf("lacks the flavor's node label %s=%s", k, labels[k])
		}
	}
	taint, found := schedulinghelper.FindMatchingUntoleratedTaint(logr.Discard(), n.Spec.Taints, tolerations, keepsAway, true)
	if found {
		return "has the taint " + taint.ToString() + ", which the pods do not tolerate"
	}
	return ""
}

// Bars says why the scheduler does not bind a pod to the node, whatever room there is on it; empty when it would. What a
// pod tolerates and selects is read from the pod itself, so nothing of the flavor that it was admitted with is missing.
func Bars(n *corev1.Node, pod *corev1.Pod) string {
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulinghelper.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &cordoned, true) {
		return "is cordoned"
	}
	affinity := nodeaffinity.NewRequiredNodeAffinity(pod.Spec.NodeSelector, pod.Spec.Affinity)
	return ineligible(n, &corev1.PodSpec{}, affinity, nil, nil, pod.Spec.Tolerations)
}

func keepsAway(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}
