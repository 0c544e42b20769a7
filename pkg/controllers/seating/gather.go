package seating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reservation"
)

// patience is how long pods may be on their way before their absence is worth a word.
const patience = 10 * time.Second

// gathered is a view together with the objects that it was read from.
type gathered struct {
	reservation.SeatingView
	res    *berth.GangReservation
	claims map[string]*resourcev1.ResourceClaim
	pods   map[string]*corev1.Pod
	// since is when the gang was admitted; deadline is when all of it must be there.
	since, deadline time.Time
}

// gather reads the view of one reservation; nil when nobody is to be seated there now.
func (r *reconciler) gather(ctx context.Context, key types.NamespacedName) (*gathered, error) {
	g := &gathered{res: &berth.GangReservation{}, claims: map[string]*resourcev1.ResourceClaim{}, pods: map[string]*corev1.Pod{}}
	if err := r.Client.Get(ctx, key, g.res); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if g.res.DeletionTimestamp != nil || (g.res.Status.Phase != berth.PhaseReserved && g.res.Status.Phase != berth.PhaseHandedOver) {
		return nil, nil
	}
	wl := &kueue.Workload{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: g.res.Spec.WorkloadRef.Name}, wl); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	// Pods that were sent here go on coming when the check is taken off.
	if d := adaptkueue.DemandFor(g.res, wl); !(d.Wanted() && d.Named || d.Unasked()) || !workload.IsAdmitted(wl) {
		return nil, nil
	}
	whole, err := r.readClaims(ctx, g)
	if err != nil || !whole {
		return nil, err
	}
	g.Begun = apimeta.IsStatusConditionTrue(g.res.Status.Conditions, berth.ReservationSeated)
	for _, read := range []func(context.Context, *gathered) error{r.readPods, r.readFormer, r.expect} {
		if err := read(ctx, g); err != nil {
			return nil, err
		}
	}
	return g, r.readDeadline(ctx, g, wl)
}

// expect counts the pods that the first seating waits for: those that Kueue admitted, less the ranks for which the Job makes
// none. Kueue admits a pod for a rank that failed for good, and for one that succeeded while its Workload was being evicted.
// Without any pod there is no gang, whatever the Job says.
func (r *reconciler) expect(ctx context.Context, g *gathered) error {
	if g.Begun {
		return nil
	}
	job := &batchv1.Job{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: g.res.Namespace, Name: g.res.Spec.Owner.Name}, job)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	over := jobs.Over(g.res.Spec.Owner, job)
	for _, ps := range g.res.Spec.PodSets {
		left := len(ps.Hosts) - over.Below(len(ps.Hosts))
		g.Expected += min(int(ps.Count), max(1, left))
	}
	return nil
}

// readClaims reads every promised claim; false unless all of them are held and none is on its way out.
func (r *reconciler) readClaims(ctx context.Context, g *gathered) (bool, error) {
	var list resourcev1.ResourceClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(g.res.Namespace), client.MatchingLabels{berth.LabelReservation: g.res.Name}); err != nil {
		return false, err
	}
	for i := range list.Items {
		g.claims[list.Items[i].Name] = &list.Items[i]
	}
	for _, name := range promised(g.res) {
		claim := g.claims[name]
		if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Allocation == nil ||
			claim.Annotations[berth.AnnotationReservationUID] != string(g.res.UID) {
			return false, nil
		}
		c := reservation.SeatingClaim{Name: name}
		for _, ref := range claim.Status.ReservedFor {
			if ref.APIGroup == "" && ref.Resource == "pods" {
				c.Entries = append(c.Entries, string(ref.UID))
			} else {
				c.Others++
			}
		}
		if c.Others == 0 {
			return false, nil
		}
		g.Claims = append(g.Claims, c)
	}
	return true, nil
}

// promised are the names of all claims of a reservation.
func promised(res *berth.GangReservation) []string {
	var names []string
	for _, ps := range res.Spec.PodSets {
		for _, c := range ps.Claims {
			for _, d := range c.Devices {
				if name := jobs.ClaimName(c.Prefix, int(d.Instance)); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func (r *reconciler) readPods(ctx context.Context, g *gathered) error {
	var list corev1.PodList
	if err := r.Client.List(ctx, &list, client.InNamespace(g.res.Namespace), client.MatchingLabels{berth.LabelReservation: g.res.Name}); err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		seat, err := jobs.SeatOf(g.res, pod)
		if err != nil {
			continue // a stranger; the reservation controller deletes it
		}
		g.pods[pod.Name] = pod
		g.Pods = append(g.Pods, reservation.SeatingPod{
			Name: pod.Name, UID: string(pod.UID), PodSet: seat.PodSet, Rank: seat.Rank, Claims: seat.Claims,
			Gated: jobs.Gated(pod), Terminal: jobs.Ended(pod), Deleting: pod.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(g.Pods, func(a, b reservation.SeatingPod) int {
		return cmp.Or(cmp.Compare(a.PodSet, b.PodSet), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// readFormer finds the gang's pods of another reservation that may still run. As in the line, those on a host that is not
// Ready are not waited for: nobody knows when it will end them.
func (r *reconciler) readFormer(ctx context.Context, g *gathered) error {
	if g.Begun {
		return nil
	}
	var list corev1.PodList
	// Those of all gangs of the namespace, which are not changed here and not copied.
	err := r.Client.List(ctx, &list, client.InNamespace(g.res.Namespace), client.HasLabels{berth.LabelReservation}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Labels[berth.LabelReservation] == g.res.Name || pod.Spec.NodeName == "" || jobs.Ended(pod) || !jobs.Controls(g.res.Spec.Owner, pod) {
			continue
		}
		node := &corev1.Node{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && nodes.Ready(node) {
			g.Former = append(g.Former, pod.Name)
		}
	}
	slices.Sort(g.Former)
	return nil
}

// readDeadline finds until when the whole gang must be there, and after some patience what keeps the rest away.
func (r *reconciler) readDeadline(ctx context.Context, g *gathered, wl *kueue.Workload) error {
	if g.Begun {
		return nil
	}
	limit, err := r.seatingTimeout(ctx, g.res.Spec.Check)
	if err != nil {
		return err
	}
	g.since = apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime.Time
	g.deadline = g.since.Add(limit)
	g.Late = !r.Now().Before(g.deadline)
	if len(g.Pods) < g.Expected && (g.Late || r.Now().Sub(g.since) >= patience) {
		g.Blocker, err = r.blocker(ctx, g.res)
	}
	return err
}

// seatingTimeout is the AdmissionCheck's own, or the controller's.
func (r *reconciler) seatingTimeout(ctx context.Context, check string) (time.Duration, error) {
	fallback := r.Config.Seating.Timeout.Duration
	ac := &kueue.AdmissionCheck{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: check}, ac); err != nil {
		return fallback, client.IgnoreNotFound(err)
	}
	if ac.Spec.Parameters == nil {
		return fallback, nil
	}
	config := &berth.GangReservationConfig{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: ac.Spec.Parameters.Name}, config); err != nil {
		return fallback, client.IgnoreNotFound(err)
	}
	return config.Spec.Seating.Timeout(fallback), nil
}

// blocker reads from the owner's events why pods are missing: it is the only place where the Job controller says so.
func (r *reconciler) blocker(ctx context.Context, res *berth.GangReservation) (string, error) {
	var list corev1.EventList
	err := r.Live.List(ctx, &list, client.InNamespace(res.Namespace), client.MatchingFields{
		"involvedObject.uid": string(res.Spec.Owner.UID), "type": corev1.EventTypeWarning,
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	var newest *corev1.Event
	for i := range list.Items {
		e := &list.Items[i]
		if e.Reason == "FailedCreate" && (newest == nil || newest.LastTimestamp.Before(&e.LastTimestamp)) {
			newest = e
		}
	}
	if newest == nil {
		return "", nil
	}
	return fmt.Sprintf("%s: %s", newest.Reason, stable(newest.Message)), nil
}
