package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzNodes reads Nodes and Pods as kubelets, administrators and users can write them: what is there, who may stand on it,
// and what is taken. A host that is blocked says why, and a pod never makes room.
func FuzzNodes(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	b := fuzztest.New(site)
	site.ResourceSlices, site.DeviceClasses, site.DeviceTaintRules, site.ResourceClaims, site.ResourceClaimTemplates = nil, nil, nil, nil, nil
	site.AcceleratorPools, site.Jobs, site.Workloads, site.Reservations, site.Configs = nil, nil, nil, nil, nil
	site.AdmissionChecks, site.ClusterQueues, site.LocalQueues = nil, nil, nil
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, site)
		hosts := Hosts(s.Nodes)
		l := ledger.New(inventory.Build(inventory.Input{Hosts: hosts}))
		empty := map[string]int{}
		for _, h := range hosts {
			if h.Blocked != nil && (h.Blocked.Code == "" || h.Blocked.Detail == "") {
				t.Errorf("host %q is blocked without a reason: %+v", h.Name, h.Blocked)
			}
			empty[h.Name] = l.Room(h.Name, map[string]int64{"cpu": 1000})
		}
		kept := NewEligibility(s.Nodes)
		for _, p := range s.Pods {
			for name, amount := range Requests(&p.Spec) {
				if amount < 0 {
					t.Errorf("a pod asks for %d of %q", amount, name)
				}
			}
			var labels map[string]string
			var tolerations []corev1.Toleration
			for _, flavor := range s.ResourceFlavors {
				labels, tolerations = flavor.Spec.NodeLabels, flavor.Spec.Tolerations
			}
			for name, why := range kept.Ineligible(&p.Spec, labels, tolerations) {
				if why == "" {
					t.Errorf("node %q may not be used, and nothing says why", name)
				}
			}
			if Occupies(p) {
				l.Use(p.Spec.NodeName, p.Namespace+"/"+p.Name, Used(p))
			}
		}
		for _, h := range hosts {
			if room := l.Room(h.Name, map[string]int64{"cpu": 1000}); room > empty[h.Name] {
				t.Errorf("host %q has room for %d, and for %d without its pods", h.Name, room, empty[h.Name])
			}
		}
	})
}
