package jobs

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzSeat meets pods, forged and honest, with reservations: labels, annotations and claims of the hand-over contract. A
// pod that has a seat is the owner's, stands on that rank's host and names that rank's claims.
func FuzzSeat(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	b := fuzztest.New(site)
	site.Nodes, site.ResourceSlices, site.DeviceClasses, site.DeviceTaintRules, site.ResourceClaims, site.ResourceClaimTemplates = nil, nil, nil, nil, nil, nil
	site.AcceleratorPools, site.Configs, site.AdmissionChecks, site.ClusterQueues, site.LocalQueues, site.ResourceFlavors = nil, nil, nil, nil, nil, nil
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, site)
		for _, res := range s.Reservations {
			for _, ps := range res.Spec.PodSets {
				if nodes := NodesOf(ps); len(nodes) != len(ps.Hosts) {
					t.Errorf("%d nodes under %d hosts", len(nodes), len(ps.Hosts))
				}
			}
			for _, p := range s.Pods {
				Gated(p)
				Ended(p)
				seat, err := SeatOf(res, p)
				if err != nil {
					continue
				}
				if !Controls(res.Spec.Owner, p) {
					t.Errorf("pod %s is a stranger's and has a seat", p.Name)
				}
				if seat.Rank < 0 {
					t.Errorf("pod %s has rank %d", p.Name, seat.Rank)
				}
				named := map[string]bool{}
				for _, c := range p.Spec.ResourceClaims {
					if c.ResourceClaimName != nil {
						named[*c.ResourceClaimName] = true
					}
				}
				for _, c := range seat.Claims {
					if !named[c] {
						t.Errorf("pod %s has a seat in claim %s and does not name it", p.Name, c)
					}
				}
				fits := false
				for _, ps := range res.Spec.PodSets {
					fits = fits || ps.Name == seat.PodSet && seat.Rank < len(ps.Hosts) && p.Spec.NodeSelector[corev1.LabelHostname] == ps.Hosts[seat.Rank]
				}
				if !fits {
					t.Errorf("pod %s has the seat %+v on another host", p.Name, seat)
				}
			}
		}
		find := func(namespace, name string) *batchv1.Job {
			for _, j := range s.Jobs {
				if j.Namespace == namespace && j.Name == name {
					return j
				}
			}
			return nil
		}
		for _, wl := range s.Workloads {
			owner, refusal := OwnerOf(wl, find)
			if (refusal == nil) == (owner.Name == "") || refusal != nil && refusal.Message == "" {
				t.Errorf("owner %+v, refusal %+v", owner, refusal)
			}
		}
	})
}
