package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// createClaims creates what is missing. A refusal for good is remembered: the next round gives the whole set back.
func (r *reconciler) createClaims(ctx context.Context, g *gathered, names []string) error {
	for _, p := range g.promises {
		if !slices.Contains(names, p.name) {
			continue
		}
		spec, refusal, err := r.templateSpec(ctx, g, p)
		if err != nil {
			return err
		}
		if refusal != nil {
			r.Backoff.Failed(g.workload.UID, refusal)
			return nil
		}
		claim, err := newClaim(g.res, p, spec, r.Term)
		if err != nil {
			return err
		}
		switch err := r.Client.Create(ctx, claim); {
		case err == nil || apierrors.IsAlreadyExists(err):
		case final(err):
			r.Backoff.Failed(g.workload.UID, &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
				"the API server refused ResourceClaim %s: %s", p.name, message(err))})
			return nil
		default:
			return err
		}
	}
	return nil
}

// templateSpec is the spec that the pod's template would have given to the claim.
func (r *reconciler) templateSpec(ctx context.Context, g *gathered, p promised) (resourcev1.ResourceClaimSpec, *reason.Refusal, error) {
	gone := &reason.Refusal{Code: reason.ClaimMissing, Message: fmt.Sprintf("pod claim %s no longer names a ResourceClaimTemplate that exists", p.podClaim)}
	for _, ps := range g.workload.Spec.PodSets {
		if string(ps.Name) != p.podSet {
			continue
		}
		for _, entry := range ps.Template.Spec.ResourceClaims {
			if entry.Name != p.podClaim || entry.ResourceClaimTemplateName == nil {
				continue
			}
			template := &resourcev1.ResourceClaimTemplate{}
			err := r.Client.Get(ctx, types.NamespacedName{Namespace: g.res.Namespace, Name: *entry.ResourceClaimTemplateName}, template)
			if apierrors.IsNotFound(err) {
				return resourcev1.ResourceClaimSpec{}, gone, nil
			}
			if err != nil {
				return resourcev1.ResourceClaimSpec{}, nil, err
			}
			return *template.Spec.Spec.DeepCopy(), mismatch(p, template), nil
		}
	}
	return resourcev1.ResourceClaimSpec{}, gone, nil
}

// mismatch refuses a template that is not the one that was decided on, or does not ask for what was decided.
func mismatch(p promised, t *resourcev1.ResourceClaimTemplate) *reason.Refusal {
	if p.template != nil && (t.Name != p.template.Name || t.UID != p.template.UID) {
		return &reason.Refusal{Code: reason.TemplateReplaced, Message: fmt.Sprintf(
			"ResourceClaimTemplate %s was replaced after devices had been chosen for what the former one asked for", t.Name)}
	}
	for _, d := range p.devices {
		if !slices.ContainsFunc(t.Spec.Spec.Devices.Requests, func(q resourcev1.DeviceRequest) bool { return q.Name == d.Request }) {
			return &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
				"ResourceClaimTemplate %s changed: it has no request %s any more", t.Name, d.Request)}
		}
	}
	return nil
}

// allocate re-reads every intent from the API server and then allocates, each claim in one write with its hold.
//
// Two leaders that do not know of each other have both written their intent before they read: at least one of them sees
// the other's. That, and the conditions on resourceVersion, is what keeps a device from being given out twice.
func (r *reconciler) allocate(ctx context.Context, g *gathered, names []string) error {
	s, refusal, err := r.recheck(ctx, g)
	if err != nil {
		return err
	}
	if refusal != nil {
		return r.release(ctx, g, refusal)
	}
	for _, p := range g.promises {
		if !slices.Contains(names, p.name) {
			continue
		}
		claim := g.claims[p.name].DeepCopy()
		allocation, err := dra.Allocation(&claim.Spec, claim.UID, instance(p), s, metav1.NewTime(r.Now()))
		if err != nil {
			return r.release(ctx, g, &reason.Refusal{Code: reason.Contended, Message: err.Error()})
		}
		claim.Status.Allocation = allocation
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, hold(g.res.Spec.WorkloadRef.Name, g.res.Spec.WorkloadRef.UID))
		switch err := r.Client.Status().Update(ctx, claim); {
		case err == nil:
		case final(err):
			return r.release(ctx, g, &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
				"the API server refused to allocate ResourceClaim %s: %s", p.name, message(err))})
		default:
			return err
		}
	}
	return nil
}

// instance is what a promised claim holds, in the words of the placement.
func instance(p promised) placement.Instance {
	var in placement.Instance
	for _, d := range p.devices {
		in.Devices = append(in.Devices, placement.Device{
			Request: d.Request, Pool: inventory.PoolID{Driver: d.Driver, Name: d.Pool},
			Generation: d.Generation, Name: d.Device, Hosts: d.Hosts, Share: d.Share, Capacity: dra.Amounts(d.Capacity),
		})
	}
	return in
}

// recheck holds this reservation's devices against all that is promised or taken now. Room was judged when the decision was
// made.
func (r *reconciler) recheck(ctx context.Context, g *gathered) (*snapshot.Snapshot, *reason.Refusal, error) {
	s, err := snapshot.Read(ctx, r.Client, r.TaintRules)
	if err != nil {
		return nil, nil, err
	}
	if s.Reservations, err = r.liveReservations(ctx); err != nil {
		return nil, nil, err
	}
	ours := map[string]bool{g.res.Namespace + "/" + g.res.Name: true}
	for _, p := range g.promises {
		ours[g.res.Namespace+"/"+p.name] = true
	}
	for _, o := range r.Cluster.World(s).Ledger.Overdrawn() {
		if slices.ContainsFunc(o.Owners, func(owner string) bool { return ours[owner] }) {
			return nil, &reason.Refusal{Code: reason.Contended, Message: fmt.Sprintf(
				"others took what was decided on in pool %s: %s", o.Pool, strings.Join(o.Owners, ", "))}, nil
		}
	}
	return s, nil, nil
}

func (r *reconciler) liveReservations(ctx context.Context) ([]*berth.GangReservation, error) {
	var list berth.GangReservationList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, err
	}
	all := make([]*berth.GangReservation, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// keep puts our finalizer back where somebody took it off.
func (r *reconciler) keep(ctx context.Context, g *gathered, names []string) error {
	for _, name := range names {
		claim := g.claims[name].DeepCopy()
		claim.Finalizers = append(claim.Finalizers, berth.FinalizerHold)
		if err := r.Client.Update(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// rehold puts the Workload's entry back where somebody took it out.
func (r *reconciler) rehold(ctx context.Context, g *gathered, names []string) error {
	for _, name := range names {
		claim := g.claims[name].DeepCopy()
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, hold(g.res.Spec.WorkloadRef.Name, g.res.Spec.WorkloadRef.UID))
		if err := r.Client.Status().Update(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// final reports whether the API server refused a write for a reason that repeating it at once will not change.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// message is what the API server said.
func message(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
