package kueue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// maxPodClaims is how many claims of a pod berth-pin swaps and berth-pods lets pass, wherever they stand among the others.
const maxPodClaims = 8

// Request is what one admitted Workload asks of Berth.
type Request struct {
	// Managed is false when no pod asks for managed devices: the check is Ready at once.
	Managed bool
	// Ended: the pods had all succeeded when Kueue admitted the gang anew, so it admitted none, and none comes any more.
	Ended bool
	Gang  gang.Gang
	Owner berth.OwnerReference
	// Flavor that Kueue assigned to the first managed pod set.
	Flavor string
	// Counts of admitted pods by pod set.
	Counts map[string]int32
	// Templates of the managed claims.
	Templates map[PodClaim]berth.TemplateReference
}

// Unneeded says why a request that is not Managed needs nothing of Berth.
func (r Request) Unneeded() string {
	if r.Ended {
		return "the pods of the gang have all succeeded, and none comes any more"
	}
	return "the gang asks for no device that Berth manages"
}

// PodClaim is an entry of a pod set's spec.resourceClaims.
type PodClaim struct{ PodSet, Name string }

// Lookup finds the objects that a Workload refers to. Each function returns nil when there is no such object.
type Lookup struct {
	Template  func(namespace, name string) *resourcev1.ResourceClaimTemplate
	Claim     func(namespace, name string) *resourcev1.ResourceClaim
	Flavor    func(name string) *kueue.ResourceFlavor
	Job       jobs.Lister
	Nodes     *nodes.Eligibility
	Inventory *inventory.Inventory
	// ClusterQueue may be nil, and Folds and Territories empty, where nobody charges for hardware.
	ClusterQueue func(name string) *kueue.ClusterQueue
	Folds        []fold.Compiled
	Territories  *Territories
}

// Read turns an admitted Workload into a request. A refusal says why it cannot be served as it is.
func Read(wl *kueue.Workload, in Lookup) (Request, *reason.Refusal) {
	req, refusal := read(wl, in)
	return req.within(wl, in.Territories), refusal
}

// within is the request of pods that keep to the hosts of their flavors.
func (r Request) within(wl *kueue.Workload, t *Territories) Request {
	if t == nil || len(t.folds) == 0 {
		return r
	}
	r.Gang.PodSets = slices.Clone(r.Gang.PodSets)
	for i := range r.Gang.PodSets {
		ps := &r.Gang.PodSets[i]
		ps.Ineligible = t.Close(ps.Ineligible, assignment(wl, kueue.PodSetReference(ps.Name)))
	}
	return r
}

// read is Read on the hosts of all flavors.
func read(wl *kueue.Workload, in Lookup) (Request, *reason.Refusal) {
	req := Request{Counts: map[string]int32{}, Templates: map[PodClaim]berth.TemplateReference{}, Gang: gang.Gang{
		Key: gang.Key{Namespace: wl.Namespace, Name: wl.Name}, UID: string(wl.UID),
	}}
	var wanted []string
	for i := range wl.Spec.PodSets {
		ps := &wl.Spec.PodSets[i]
		assigned := assignment(wl, ps.Name)
		if ps.Count > 0 && admitted(ps, assigned) == 0 {
			req.Ended = true
			continue
		}
		claims, refusal := managedClaims(wl.Namespace, ps, in)
		if refusal != nil {
			return req, refusal
		}
		if len(claims) == 0 {
			continue
		}
		if refusal := req.bind(wl, ps, claims, in); refusal != nil {
			return req, certain(refusal, classesOf(claims), in.Inventory)
		}
		set, refusal := podSet(wl, ps, assigned, in)
		if refusal != nil {
			return req, certain(refusal, classesOf(claims), in.Inventory)
		}
		wanted = append(wanted, classesOf(claims)...)
		set.Claims = claims
		req.Managed = true
		req.Gang.PodSets = append(req.Gang.PodSets, set)
		req.Counts[string(ps.Name)] = admitted(ps, assigned)
		if req.Flavor == "" {
			req.Flavor = firstFlavor(assigned)
		}
	}
	if !req.Managed {
		return req, nil
	}
	owner, refusal := jobs.OwnerOf(wl, in.Job)
	req.Owner = owner
	if refusal == nil {
		refusal = misplacedSlices(wl, in.Job(wl.Namespace, owner.Name))
	}
	return req, certain(refusal, wanted, in.Inventory)
}

// managedClaims are the entries of the pods' spec.resourceClaims that ask for managed devices.
func managedClaims(namespace string, ps *kueue.PodSet, in Lookup) ([]gang.Claim, *reason.Refusal) {
	var claims []gang.Claim
	known := 0
	var open *reason.Refusal // why it is not known of the first of the others whether Berth manages it
	for _, entry := range ps.Template.Spec.ResourceClaims {
		spec, refusal := claimSpec(namespace, entry, in)
		if refusal != nil {
			return nil, refusal
		}
		claim, managed, refusal := dra.Claim(&spec, entry.Name, in.Inventory)
		if !managed {
			continue
		}
		switch {
		case refusal != nil:
		case entry.ResourceClaimName != nil:
			refusal = &reason.Refusal{Code: reason.Unsupported, Message: fmt.Sprintf(
				"pod claim %s names ResourceClaim %s: use a ResourceClaimTemplate, so that Berth can make a claim for each slice",
				entry.Name, *entry.ResourceClaimName)}
		}
		if refusal != nil {
			return nil, certain(refusal, classesIn(&spec), in.Inventory)
		}
		claims = append(claims, claim)
		if why := unpublished(classesIn(&spec), in.Inventory); why == nil {
			known++
		} else if open == nil {
			open = why
		}
	}
	switch {
	case known > maxPodClaims:
		return nil, &reason.Refusal{Code: reason.TooManyClaims, Message: fmt.Sprintf(
			"a pod of pod set %s has %d claims for managed devices, at most %d are possible", ps.Name, known, maxPodClaims)}
	case len(claims) > maxPodClaims:
		return nil, open
	}
	return claims, nil
}

func claimSpec(namespace string, entry corev1.PodResourceClaim, in Lookup) (resourcev1.ResourceClaimSpec, *reason.Refusal) {
	switch {
	case entry.ResourceClaimTemplateName != nil:
		if t := in.Template(namespace, *entry.ResourceClaimTemplateName); t != nil {
			return t.Spec.Spec, nil
		}
		return resourcev1.ResourceClaimSpec{}, &reason.Refusal{Code: reason.ClaimMissing, Message: fmt.Sprintf(
			"ResourceClaimTemplate %s of pod claim %s does not exist", *entry.ResourceClaimTemplateName, entry.Name)}
	case entry.ResourceClaimName != nil:
		if c := in.Claim(namespace, *entry.ResourceClaimName); c != nil {
			return c.Spec, nil
		}
		return resourcev1.ResourceClaimSpec{}, &reason.Refusal{Code: reason.ClaimMissing, Message: fmt.Sprintf(
			"ResourceClaim %s of pod claim %s does not exist", *entry.ResourceClaimName, entry.Name)}
	default:
		return resourcev1.ResourceClaimSpec{}, nil
	}
}

// podSet reads everything of a pod set but its claims.
func podSet(wl *kueue.Workload, ps *kueue.PodSet, assigned *kueue.PodSetAssignment, in Lookup) (gang.PodSet, *reason.Refusal) {
	if refusal := reservedKeys(ps); refusal != nil {
		return gang.PodSet{}, refusal
	}
	if ps.MinCount != nil {
		return gang.PodSet{}, &reason.Refusal{Code: reason.CountMismatch, Message: fmt.Sprintf(
			"pod set %s may run with fewer pods (minCount): a slice is whole, so leave minCount out", ps.Name)}
	}
	count, refusal := rankCount(wl, ps, assigned)
	if refusal != nil {
		return gang.PodSet{}, refusal
	}
	slicesWanted, refusal := wantedSlices(ps)
	if refusal != nil {
		return gang.PodSet{}, refusal
	}
	interconnect, refusal := wantedInterconnect(ps)
	if refusal != nil {
		return gang.PodSet{}, refusal
	}
	if refusal := topologyAssigned(assigned, in); refusal != nil {
		return gang.PodSet{}, refusal
	}
	selector, tolerations := flavorConstraints(assigned, in)
	return gang.PodSet{
		Name:         string(ps.Name),
		Count:        count,
		Slices:       slicesWanted,
		Interconnect: interconnect,
		Requests:     nodes.Requests(&ps.Template.Spec),
		Ineligible:   in.Nodes.Ineligible(&ps.Template.Spec, selector, tolerations),
	}, nil
}

// rankCount is how many ranks the pod set has. Kueue admits fewer pods than that when some ranks succeeded before an
// eviction; the slice is whole all the same, so that the other ranks keep their meaning. More of them may succeed after that,
// while their pods still terminate.
func rankCount(wl *kueue.Workload, ps *kueue.PodSet, assigned *kueue.PodSetAssignment) (int, *reason.Refusal) {
	n := admitted(ps, assigned)
	if n == ps.Count {
		return int(n), nil
	}
	for _, r := range wl.Status.ReclaimablePods {
		if r.Name == ps.Name && n+r.Count >= ps.Count {
			return int(ps.Count), nil
		}
	}
	return 0, &reason.Refusal{Code: reason.CountMismatch, Message: fmt.Sprintf(
		"pod set %s has %d pods and Kueue admitted %d: a slice is whole", ps.Name, ps.Count, n)}
}

func admitted(ps *kueue.PodSet, assigned *kueue.PodSetAssignment) int32 {
	if assigned == nil {
		return ps.Count
	}
	return ptr.Deref(assigned.Count, ps.Count)
}

func assignment(wl *kueue.Workload, name kueue.PodSetReference) *kueue.PodSetAssignment {
	if wl.Status.Admission == nil {
		return nil
	}
	for i := range wl.Status.Admission.PodSetAssignments {
		if wl.Status.Admission.PodSetAssignments[i].Name == name {
			return &wl.Status.Admission.PodSetAssignments[i]
		}
	}
	return nil
}

// flavorConstraints are what the assigned flavors add to the pods.
func flavorConstraints(assigned *kueue.PodSetAssignment, in Lookup) (map[string]string, []corev1.Toleration) {
	if assigned == nil {
		return nil, nil
	}
	selector := map[string]string{}
	var tolerations []corev1.Toleration
	// In order and each once: resources share flavors, and two of them may name the same node label.
	names := slices.Sorted(maps.Values(assigned.Flavors))
	for _, name := range slices.Compact(names) {
		flavor := in.Flavor(string(name))
		if flavor == nil {
			continue
		}
		for k, v := range flavor.Spec.NodeLabels {
			selector[k] = v
		}
		tolerations = append(tolerations, flavor.Spec.Tolerations...)
	}
	return selector, tolerations
}

// firstFlavor names one assigned flavor, the first by resource name.
func firstFlavor(assigned *kueue.PodSetAssignment) string {
	if assigned == nil {
		return ""
	}
	var resources []string
	for r := range assigned.Flavors {
		resources = append(resources, string(r))
	}
	if len(resources) == 0 {
		return ""
	}
	slices.Sort(resources)
	return string(assigned.Flavors[corev1.ResourceName(resources[0])])
}
