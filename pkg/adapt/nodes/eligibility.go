package nodes

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Eligibility is Ineligible for many gangs on the same nodes: pods that ask for the same share one answer, which must not
// be changed. It is not safe for concurrent use.
type Eligibility struct {
	nodes   []*corev1.Node
	answers map[string]*eligible
}

type eligible struct {
	out map[string]string
	// asked since the last For.
	asked bool
}

// NewEligibility asks about nodes.
func NewEligibility(nodes []*corev1.Node) *Eligibility {
	return &Eligibility{nodes: nodes, answers: map[string]*eligible{}}
}

// For asks about these nodes, which must not change in place: by the same Eligibility with its answers while nothing that
// answers depend on is another, else by a new one. What nobody asked since the last For is forgotten.
func (e *Eligibility) For(nodes []*corev1.Node) *Eligibility {
	if len(nodes) != len(e.nodes) {
		return NewEligibility(nodes)
	}
	for i, n := range nodes {
		if was := e.nodes[i]; was != n && !alike(was, n) {
			return NewEligibility(nodes)
		}
	}
	e.nodes = nodes
	for asked, answer := range e.answers {
		if !answer.asked {
			delete(e.answers, asked)
		}
		answer.asked = false
	}
	return e
}

// alike reports whether Ineligible says the same of both: it looks at names, labels and taints.
func alike(a, b *corev1.Node) bool {
	return a.Name == b.Name && equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}

// Ineligible is Ineligible on the nodes.
func (e *Eligibility) Ineligible(spec *corev1.PodSpec, labels map[string]string, tolerations []corev1.Toleration) map[string]string {
	// What Ineligible looks at, and nothing else. Maps are marshalled with sorted keys; none of these types can fail.
	asked, err := json.Marshal([]any{spec.NodeName, spec.NodeSelector, spec.Affinity, spec.Tolerations, labels, tolerations})
	if err != nil {
		return Ineligible(spec, labels, tolerations, e.nodes)
	}
	answer := e.answers[string(asked)]
	if answer == nil {
		answer = &eligible{out: Ineligible(spec, labels, tolerations, e.nodes)}
		e.answers[string(asked)] = answer
	}
	answer.asked = true
	return answer.out
}
