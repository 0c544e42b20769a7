package nodes_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
)

func TestHosts(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"usable":         {func(*corev1.Node) {}, ""},
		"no hostname":    {func(n *corev1.Node) { n.Labels = nil }, "HostNameUnusable: lacks the label kubernetes.io/hostname"},
		"other's name":   {func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "b" }, "HostNameUnusable: shares its label kubernetes.io/hostname=b with another node"},
		"deleted":        {func(n *corev1.Node) { n.DeletionTimestamp = &now }, "HostUnusable: is being deleted"},
		"not ready":      {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "HostUnusable: is not Ready"},
		"no conditions":  {func(n *corev1.Node) { n.Status.Conditions = nil }, "HostUnusable: is not Ready"},
		"cordoned":       {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "HostUnusable: is cordoned"},
		"out of service": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} }, "HostUnusable: is out of service"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := dratest.Node("a")
			test.change(n)
			h := nodes.Hosts([]*corev1.Node{n, dratest.Node("b")})[0]
			got := ""
			if h.Blocked != nil {
				got = string(h.Blocked.Code) + ": " + h.Blocked.Detail
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if h.Allocatable["cpu"] != 32_000 || h.Allocatable["pods"] != 110_000 || h.Allocatable["memory"] != 256<<30*1000 {
				t.Errorf("allocatable %v", h.Allocatable)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	got := nodes.Amounts(corev1.ResourceList{"memory": resource.MustParse("8Ei"), "cpu": resource.MustParse("250m"), "gpu": resource.MustParse("-1"), "disk": resource.MustParse("10E")})
	if got["memory"] <= 0 || got["cpu"] != 250 || got["gpu"] != 0 || got["disk"] != math.MaxInt64 {
		t.Error(got)
	}
}

func TestRequests(t *testing.T) {
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	}
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{container("3")}, Containers: []corev1.Container{container("1"), container("500m")},
		Overhead: corev1.ResourceList{"cpu": resource.MustParse("100m")},
	}
	if diff := cmp.Diff(map[string]int64{"cpu": 3100, "pods": 1000}, nodes.Requests(spec)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"pods": 1000}, nodes.Requests(&corev1.PodSpec{})); diff != "" {
		t.Error(diff)
	}
}

// The API server makes limits requests where there are none when it creates the pod.
func TestLimitsOfATemplate(t *testing.T) {
	list := func(amounts ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(amounts); i += 2 {
			out[corev1.ResourceName(amounts[i])] = resource.MustParse(amounts[i+1])
		}
		return out
	}
	container := func(requests, limits corev1.ResourceList) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}
	}
	for name, row := range map[string]struct {
		spec corev1.PodSpec
		want map[string]int64
	}{
		"of a container": {
			corev1.PodSpec{Containers: container(nil, list("cpu", "60", "example.com/nic", "2"))},
			map[string]int64{"cpu": 60_000, "example.com/nic": 2000, "pods": 1000},
		},
		"of a container that asks for less": {
			corev1.PodSpec{Containers: container(list("cpu", "1"), list("cpu", "60", "memory", "1"))},
			map[string]int64{"cpu": 1000, "memory": 1000, "pods": 1000},
		},
		"of an init container": {
			corev1.PodSpec{InitContainers: container(nil, list("cpu", "4")), Containers: container(list("cpu", "1"), nil)},
			map[string]int64{"cpu": 4000, "pods": 1000},
		},
		"of the pod": {
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: list("cpu", "8", "memory", "2")}},
			map[string]int64{"cpu": 8000, "memory": 2000, "pods": 1000},
		},
		"devices of a class, whoever drives them": {
			corev1.PodSpec{Containers: container(list("cpu", "1"), list("cpu", "1", "deviceclass.resource.kubernetes.io/nic", "1"))},
			map[string]int64{"cpu": 1000, "pods": 1000},
		},
		"of the pod that asks for less": {
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "8")}},
			map[string]int64{"cpu": 2000, "pods": 1000},
		},
		"of the pod whose containers ask": {
			corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Limits: list("cpu", "8", "hugepages-2Mi", "4")},
				Containers: container(list("cpu", "3", "hugepages-2Mi", "2"), list("hugepages-2Mi", "2")),
			},
			map[string]int64{"cpu": 3000, "hugepages-2Mi": 4000, "pods": 1000},
		},
	} {
		before := row.spec.DeepCopy()
		if diff := cmp.Diff(row.want, nodes.Requests(&row.spec)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(before, &row.spec); diff != "" {
			t.Errorf("%s: the template was changed: %s", name, diff)
		}
	}
}

func TestUsedWhileThePodIsResized(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(amount)} }
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: cpu("2")}},
		Status: corev1.PodStatus{Resources: &corev1.ResourceRequirements{Requests: cpu("5")}, AllocatedResources: cpu("5")},
	}
	if diff := cmp.Diff(map[string]int64{"cpu": 5000, "pods": 1000}, nodes.Used(pod)); diff != "" {
		t.Error(diff)
	}
}

func TestOccupies(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	for _, test := range []struct {
		pod  *corev1.Pod
		want bool
	}{
		{pod("n", corev1.PodRunning), true}, {pod("n", corev1.PodPending), true}, {pod("n", ""), true}, {pod("n", corev1.PodUnknown), true},
		{pod("", corev1.PodPending), false}, {pod("n", corev1.PodSucceeded), false}, {pod("n", corev1.PodFailed), false},
	} {
		if got := nodes.Occupies(test.pod); got != test.want {
			t.Errorf("%s on %q: %v", test.pod.Status.Phase, test.pod.Spec.NodeName, got)
		}
	}
}

func TestIneligible(t *testing.T) { // Scenario 27.
	n := dratest.Node("n")
	n.Labels["zone"] = "a"
	n.Spec.Taints = []corev1.Taint{{Key: "tpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	tolerates := []corev1.Toleration{{Key: "tpu", Operator: corev1.TolerationOpEqual, Value: "yes"}}
	affinity := func(values ...string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: values}},
		}}}}}
	}
	tests := map[string]struct {
		spec   corev1.PodSpec
		labels map[string]string
		extra  []corev1.Toleration
		want   string
	}{
		"tolerated":           {spec: corev1.PodSpec{Tolerations: tolerates}},
		"tolerated by flavor": {extra: tolerates},
		"not tolerated":       {want: "has the taint tpu=yes:NoSchedule, which the pods do not tolerate"},
		"selector":            {spec: corev1.PodSpec{Tolerations: tolerates, NodeSelector: map[string]string{"zone": "a"}}},
		"other selector":      {spec: corev1.PodSpec{Tolerations: tolerates, NodeSelector: map[string]string{"zone": "b"}}, want: "does not match the pods' node selector or affinity"},
		"affinity":            {spec: corev1.PodSpec{Tolerations: tolerates, Affinity: affinity("b")}},
		"other affinity":      {spec: corev1.PodSpec{Tolerations: tolerates, Affinity: affinity("a")}, want: "does not match the pods' node selector or affinity"},
		"flavor":              {extra: tolerates, labels: map[string]string{"zone": "a"}},
		"other flavor":        {extra: tolerates, labels: map[string]string{"zone": "a", "kind": "v5e"}, want: "lacks the flavor's node label kind=v5e"},
		"named node":          {extra: tolerates, spec: corev1.PodSpec{NodeName: "m"}, want: "is not the node that the pods name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := nodes.Ineligible(&test.spec, test.labels, test.extra, []*corev1.Node{n})
			if got["n"] != test.want || (test.want == "") != (len(got) == 0) {
				t.Errorf("got %v, want %q", got, test.want)
			}
		})
	}
}

// Pods that ask for the same share an answer; whatever makes a difference to it makes another.
func TestEligibility(t *testing.T) {
	a, b := dratest.Node("a"), dratest.Node("b")
	b.Labels["zone"] = "z"
	b.Spec.Taints = []corev1.Taint{{Key: "tpu", Effect: corev1.TaintEffectNoSchedule}}
	all := []*corev1.Node{a, b}
	e := nodes.NewEligibility(all)
	tolerates := []corev1.Toleration{{Key: "tpu", Operator: corev1.TolerationOpExists}}
	zone := map[string]string{"zone": "z"}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
	}}}
	for round := range 2 {
		for name, ask := range map[string]struct {
			spec        corev1.PodSpec
			labels      map[string]string
			tolerations []corev1.Toleration
		}{
			"anything": {}, "selector": {spec: corev1.PodSpec{NodeSelector: zone}}, "affinity": {spec: corev1.PodSpec{Affinity: affinity}},
			"named": {spec: corev1.PodSpec{NodeName: "b"}}, "tolerates": {spec: corev1.PodSpec{Tolerations: tolerates}},
			"flavor": {labels: zone}, "flavor tolerates": {tolerations: tolerates}, "flavor and tolerates": {labels: zone, tolerations: tolerates},
		} {
			want := nodes.Ineligible(&ask.spec, ask.labels, ask.tolerations, all)
			if diff := cmp.Diff(want, e.Ineligible(&ask.spec, ask.labels, ask.tolerations)); diff != "" {
				t.Errorf("%s, round %d: %s", name, round, diff)
			}
		}
	}
	spec := &corev1.PodSpec{NodeSelector: map[string]string{"zone": "z", "a": "b"}}
	first := e.Ineligible(spec, nil, nil)
	first["seen"] = "before"
	other := spec.DeepCopy()
	other.Containers = []corev1.Container{{Name: "another"}}
	if e.Ineligible(other, nil, nil)["seen"] != "before" {
		t.Error("equal questions are answered twice")
	}
}

// An Eligibility stays for the next pass while names, labels and taints of the nodes do.
func TestEligibilityStays(t *testing.T) {
	a, b := dratest.Node("a"), dratest.Node("b")
	spec := &corev1.PodSpec{NodeSelector: map[string]string{"zone": "z"}}
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		stays  bool
	}{
		"nothing":   {func(*corev1.Node) {}, true},
		"heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(9, 0) }, true},
		"label":     {func(n *corev1.Node) { n.Labels["zone"] = "z" }, false},
		"taint":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}} }, false},
		"name":      {func(n *corev1.Node) { n.Name = "c" }, false},
	} {
		e := nodes.NewEligibility([]*corev1.Node{a, b})
		e.Ineligible(spec, nil, nil)["seen"] = "before"
		other := b.DeepCopy()
		row.change(other)
		next := e.For([]*corev1.Node{a, other})
		_, kept := next.Ineligible(spec, nil, nil)["seen"]
		if kept != row.stays || (next == e) != row.stays {
			t.Errorf("%s: the answer is kept: %t", name, kept)
		}
	}
	e := nodes.NewEligibility([]*corev1.Node{a, b})
	if e.For([]*corev1.Node{a}) == e {
		t.Error("a node is gone")
	}
	e.Ineligible(spec, nil, nil)["seen"] = "before"
	if e.For([]*corev1.Node{a, b}); e.Ineligible(spec, nil, nil)["seen"] == "" {
		t.Error("what was asked in the last pass is forgotten")
	}
	e.For([]*corev1.Node{a, b})
	if e.For([]*corev1.Node{a, b}); e.Ineligible(spec, nil, nil)["seen"] != "" {
		t.Error("what nobody asked for a pass is kept")
	}
}
