package kueuetest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/placement"
)

// Record is the reservation that writes a decision down, of a Workload wl-<name>. Its hosts are node names.
func Record(namespace, name string, d placement.Decision) *berth.GangReservation {
	r := &berth.GangReservation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	r.Spec.WorkloadRef = berth.WorkloadReference{Name: "wl-" + name, UID: types.UID("wl-uid-" + name)}
	for _, ps := range d.PodSets {
		set := berth.ReservedPodSet{Name: ps.Name, Count: int32(len(ps.Hosts)), Hosts: ps.Hosts}
		for _, c := range ps.Claims {
			set.Claims = append(set.Claims, recorded(name, c))
		}
		r.Spec.PodSets = append(r.Spec.PodSets, set)
	}
	return r
}

func recorded(name string, c placement.Claim) berth.ReservedClaim {
	out := berth.ReservedClaim{PodClaim: c.PodClaim, Prefix: berth.ClaimNamePrefix + name, PodsPerClaim: int32(c.PodsPerClaim)}
	for i, instance := range c.Instances {
		for _, d := range instance.Devices {
			device := berth.ReservedDevice{
				Instance: int32(i), Request: d.Request, Driver: d.Pool.Driver, Pool: d.Pool.Name, Generation: d.Generation, Device: d.Name, Hosts: d.Hosts, Share: d.Share,
			}
			for _, a := range d.Capacity {
				device.Capacity = append(device.Capacity, berth.CapacityShare{Name: a.Name, Milli: a.Milli})
			}
			for _, charge := range d.Charge {
				device.Charge = append(device.Charge, berth.CounterCharge{CounterSet: charge.CounterSet, Counter: charge.Counter, Milli: charge.Milli})
			}
			out.Devices = append(out.Devices, device)
		}
	}
	return out
}
