package line

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
)

// reservationName is <workload>-<epoch>, short enough for a label value.
func reservationName(workload, epoch string) string {
	const most = 63
	if limit := most - 1 - len(epoch); len(workload) > limit {
		workload = strings.TrimRight(workload[:limit], "-.")
	}
	return workload + "-" + epoch
}

// record is the reservation that writes a decision down.
func record(wl *kueue.Workload, check, epoch string, req adaptkueue.Request, d placement.Decision, inv *inventory.Inventory) *berth.GangReservation {
	res := &berth.GangReservation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  wl.Namespace,
			Name:       reservationName(wl.Name, epoch),
			Finalizers: []string{berth.FinalizerReservation},
		},
		Spec: berth.GangReservationSpec{
			WorkloadRef: berth.WorkloadReference{Name: wl.Name, UID: wl.UID},
			Owner:       req.Owner,
			Check:       check,
			Flavor:      req.Flavor,
			Epoch:       epoch,
			QueuedAt:    wl.CreationTimestamp,
		},
	}
	for _, ps := range d.PodSets {
		set := berth.ReservedPodSet{Name: ps.Name, Count: req.Counts[ps.Name], Hosts: hostnames(ps.Hosts, inv), Across: ps.Across}
		for _, d := range ps.Domains {
			set.Domains = append(set.Domains, d.String())
		}
		for _, c := range ps.Claims {
			rc := claim(res.Name, ps.Name, c)
			if t, known := req.Templates[adaptkueue.PodClaim{PodSet: ps.Name, Name: c.PodClaim}]; known {
				rc.Template = &t
			}
			set.Claims = append(set.Claims, rc)
		}
		res.Spec.PodSets = append(res.Spec.PodSets, set)
	}
	return res
}

func claim(reservation, podSet string, c placement.Claim) berth.ReservedClaim {
	rc := berth.ReservedClaim{
		PodClaim:     c.PodClaim,
		Prefix:       fmt.Sprintf("%s%s.%s.%s", berth.ClaimNamePrefix, reservation, podSet, c.PodClaim),
		PodsPerClaim: int32(c.PodsPerClaim),
	}
	for i, instance := range c.Instances {
		for _, d := range instance.Devices {
			rc.Devices = append(rc.Devices, berth.ReservedDevice{
				Instance: int32(i), Request: d.Request, Driver: d.Pool.Driver, Pool: d.Pool.Name,
				Generation: d.Generation, Device: d.Name, Hosts: d.Hosts, Charge: charges(d.Charge),
				Share: d.Share, Capacity: capacity(d.Capacity),
			})
		}
	}
	return rc
}

func charges(in []inventory.Charge) []berth.CounterCharge {
	out := make([]berth.CounterCharge, 0, len(in))
	for _, c := range in {
		out = append(out, berth.CounterCharge{CounterSet: c.CounterSet, Counter: c.Counter, Milli: c.Milli})
	}
	return out
}

func capacity(in []inventory.Amount) []berth.CapacityShare {
	var out []berth.CapacityShare
	for _, a := range in {
		out = append(out, berth.CapacityShare{Name: a.Name, Milli: a.Milli})
	}
	return out
}

// hostnames translates node names into values of the kubernetes.io/hostname label, which is what a nodeSelector matches.
func hostnames(nodes []string, inv *inventory.Inventory) []string {
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		name := n
		if h, known := inv.Host(n); known && h.Hostname != "" {
			name = h.Hostname
		}
		out = append(out, name)
	}
	return out
}

// queueOf is the ClusterQueue that admitted the Workload.
func queueOf(wl *kueue.Workload) string {
	if wl.Status.Admission == nil {
		return ""
	}
	return string(wl.Status.Admission.ClusterQueue)
}

func priority(wl *kueue.Workload) int32 {
	if wl.Spec.Priority == nil {
		return 0
	}
	return *wl.Spec.Priority
}
