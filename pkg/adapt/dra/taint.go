package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/inventory"
)

// LabelFence marks the DeviceTaintRules that Berth itself creates to keep kube-scheduler away. They are no defect of the
// hardware and do not count here.
const LabelFence = "berth.dev/fence"

// ruleTaints are the taints that rules add to devices of one pool, by device name; "" is every device.
func ruleTaints(rules []*resourcev1.DeviceTaintRule, pool inventory.PoolID) map[string][]inventory.Taint {
	var out map[string][]inventory.Taint
	for _, r := range rules {
		s := r.Spec.DeviceSelector
		if _, own := r.Labels[LabelFence]; own || s == nil {
			continue // A rule without a selector matches nothing.
		}
		if s.Driver != nil && *s.Driver != pool.Driver || s.Pool != nil && *s.Pool != pool.Name {
			continue
		}
		device := ""
		if s.Device != nil {
			if device = *s.Device; device == "" {
				continue
			}
		}
		if out == nil {
			out = map[string][]inventory.Taint{}
		}
		t := r.Spec.Taint
		out[device] = append(out[device], inventory.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// taintsKey tells sets of rule taints apart.
func taintsKey(taints map[string][]inventory.Taint) string {
	var lines []string
	for device, list := range taints {
		for _, t := range list {
			lines = append(lines, fmt.Sprintf("%q %q %q %q", device, t.Key, t.Value, t.Effect))
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	return strings.Join(lines, "\n")
}
