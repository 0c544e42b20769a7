package nodes

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Eligibility is Ineligible for many gangs on the same nodes: pods that ask for the same share one answer, which must not
// be changed. It is not safe for concurrent use.
type Eligibility struct {
	nodes   []*corev1.Node
	answers map[string]map[string]string
}

// NewEligibility asks about nodes.
func NewEligibility(nodes []*corev1.Node) *Eligibility {
	return &Eligibility{nodes: nodes, answers: map[string]map[string]string{}}
}

// Ineligible is Ineligible on the nodes.
func (e *Eligibility) Ineligible(spec *corev1.PodSpec, labels map[string]string, tolerations []corev1.Toleration) map[string]string {
	// What Ineligible looks at, and nothing else. Maps are marshalled with sorted keys; none of these types can fail.
	asked, err := json.Marshal([]any{spec.NodeName, spec.NodeSelector, spec.Affinity, spec.Tolerations, labels, tolerations})
	if err != nil {
		return Ineligible(spec, labels, tolerations, e.nodes)
	}
	answer, known := e.answers[string(asked)]
	if !known {
		answer = Ineligible(spec, labels, tolerations, e.nodes)
		e.answers[string(asked)] = answer
	}
	return answer
}
