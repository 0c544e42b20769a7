package invariants

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// host is a node at one moment.
func host(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
	}
	return n
}

// TestNodeTurns: what is known of a node between revisions 20 and 30.
func TestNodeTurns(t *testing.T) {
	seen := func(rv uint64, obj *corev1.Node) version { return version{since: rv, rv: rv, obj: obj} }
	up, lost := host(corev1.ConditionTrue), host(corev1.ConditionUnknown)
	for name, c := range map[string]struct {
		versions []version
		alive    bool // at some time
		sound    bool // at all times
	}{
		"never seen":                     {nil, true, false},
		"ready":                          {[]version{seen(10, up)}, true, true},
		"lost":                           {[]version{seen(10, up), seen(15, lost)}, false, false},
		"lost in between":                {[]version{seen(10, up), seen(25, lost)}, true, false},
		"lost afterwards":                {[]version{seen(10, up), seen(35, lost)}, true, true},
		"lost perhaps in between":        {[]version{seen(10, up), {since: 25, rv: 35, obj: lost}}, true, false},
		"back in between":                {[]version{seen(10, lost), seen(25, up)}, true, false},
		"back afterwards":                {[]version{seen(10, lost), seen(35, up)}, false, false},
		"back perhaps in between":        {[]version{seen(10, lost), {since: 25, rv: 35, obj: up}}, true, false},
		"lost and back before":           {[]version{seen(10, up), seen(12, lost), seen(15, up)}, true, true},
		"deleted":                        {[]version{seen(10, lost), {since: 15, rv: 15, gone: true, obj: lost}}, true, false},
		"deleted in between":             {[]version{seen(10, up), {since: 25, rv: 25, gone: true, obj: up}}, true, false},
		"out of service":                 {[]version{seen(10, lost), seen(15, host(corev1.ConditionUnknown, corev1.TaintNodeOutOfService))}, true, false},
		"out of service, but ready":      {[]version{seen(10, up), seen(25, host(corev1.ConditionTrue, corev1.TaintNodeOutOfService))}, true, false},
		"made in between, not yet ready": {[]version{seen(25, lost)}, true, false},
		"made in between":                {[]version{seen(25, up)}, true, false},
		"made afterwards, not yet ready": {[]version{seen(35, lost)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			for _, v := range c.versions {
				m.turn(v.obj.(*corev1.Node), v)
			}
			if got := m.aliveWithin("host", 20, 30); got != c.alive {
				t.Errorf("alive within: %t, want %t", got, c.alive)
			}
			if got := m.soundThroughout("host", 20, 30); got != c.sound {
				t.Errorf("sound throughout: %t, want %t", got, c.sound)
			}
		})
	}
}
