package kueue

import (
	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Readings keep from pass to pass what Read said of each Workload and what it looked at for that, so that of thousands that
// wait only those are read again of which something is another. An object must not change in place: another one with the
// same name is what is noticed. What is returned is shared and must not be changed. The zero value has read nothing; it is
// not safe for concurrent use.
type Readings struct {
	kept map[*kueue.Workload]*reading
}

type reading struct {
	// asked since the last Sweep.
	asked bool
	// admission is the Workload's part of its epochs, once somebody asked for one.
	admission *string
	// looked is everything that the request depends on besides the Workload, nil before Read.
	looked *looked
	// request on the hosts of all flavors.
	request Request
	refusal *reason.Refusal
}

// looked is what Read found. Objects are compared by their addresses.
type looked struct {
	inventory *inventory.Inventory
	nodes     *nodes.Eligibility
	templates []found[*resourcev1.ResourceClaimTemplate]
	claims    []found[*resourcev1.ResourceClaim]
	flavors   []found[*kueue.ResourceFlavor]
	jobs      []found[*batchv1.Job]
}

// found is the object of a name, nil where there was none.
type found[P comparable] struct {
	namespace, name string
	object          P
}

// Read is Read.
func (r *Readings) Read(wl *kueue.Workload, in Lookup) (Request, *reason.Refusal) {
	k := r.of(wl)
	if k.looked == nil || !k.looked.stands(in) {
		k.looked = &looked{inventory: in.Inventory, nodes: in.Nodes}
		k.request, k.refusal = read(wl, k.looked.watch(in))
	}
	return k.request.within(wl, in.Territories), k.refusal
}

// Epoch is Epoch.
func (r *Readings) Epoch(wl *kueue.Workload, check kueue.AdmissionCheckReference) string {
	k := r.of(wl)
	if k.admission == nil {
		a := admission(wl)
		k.admission = &a
	}
	return epoch(*k.admission, wl, check)
}

// Sweep forgets the Workloads that nobody asked about since the last Sweep.
func (r *Readings) Sweep() {
	for wl, k := range r.kept {
		if !k.asked {
			delete(r.kept, wl)
		}
		k.asked = false
	}
}

func (r *Readings) of(wl *kueue.Workload) *reading {
	k := r.kept[wl]
	if k == nil {
		if r.kept == nil {
			r.kept = map[*kueue.Workload]*reading{}
		}
		k = &reading{}
		r.kept[wl] = k
	}
	k.asked = true
	return k
}

// watch is in, writing down what is looked up.
func (l *looked) watch(in Lookup) Lookup {
	out := in
	out.Template = func(namespace, name string) *resourcev1.ResourceClaimTemplate {
		return remember(&l.templates, namespace, name, in.Template(namespace, name))
	}
	out.Claim = func(namespace, name string) *resourcev1.ResourceClaim {
		return remember(&l.claims, namespace, name, in.Claim(namespace, name))
	}
	out.Flavor = func(name string) *kueue.ResourceFlavor { return remember(&l.flavors, "", name, in.Flavor(name)) }
	out.Job = func(namespace, name string) *batchv1.Job {
		return remember(&l.jobs, namespace, name, in.Job(namespace, name))
	}
	return out
}

func remember[P comparable](list *[]found[P], namespace, name string, object P) P {
	*list = append(*list, found[P]{namespace, name, object})
	return object
}

// stands reports whether in would find the same.
func (l *looked) stands(in Lookup) bool {
	return l.inventory == in.Inventory && l.nodes == in.Nodes && same(l.templates, in.Template) && same(l.claims, in.Claim) &&
		same(l.flavors, func(_, name string) *kueue.ResourceFlavor { return in.Flavor(name) }) && same(l.jobs, in.Job)
}

func same[P comparable](list []found[P], now func(namespace, name string) P) bool {
	for _, f := range list {
		if now(f.namespace, f.name) != f.object {
			return false
		}
	}
	return true
}
