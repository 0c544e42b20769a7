package reservation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reservation"
)

// gathered is a View together with the objects that it was read from.
type gathered struct {
	reservation.View
	res      *berth.GangReservation
	recorded bool // res exists in the API; false for an orphaned claim's
	workload *kueue.Workload
	promises []promised
	claims   map[string]*resourcev1.ResourceClaim
	pods     map[string]*corev1.Pod
}

// gather reads the view of one reservation; nil when there is nothing left of it.
func (r *reconciler) gather(ctx context.Context, key types.NamespacedName) (*gathered, error) {
	g := &gathered{res: &berth.GangReservation{}, claims: map[string]*resourcev1.ResourceClaim{}, pods: map[string]*corev1.Pod{}}
	var labelled resourcev1.ResourceClaimList
	if err := r.Client.List(ctx, &labelled, client.InNamespace(key.Namespace), client.MatchingLabels{berth.LabelReservation: key.Name}); err != nil {
		return nil, err
	}
	switch err := r.Client.Get(ctx, key, g.res); {
	case err == nil:
		g.recorded = true
		g.promises = promises(g.res)
	case !apierrors.IsNotFound(err):
		return nil, err
	case len(labelled.Items) == 0:
		return nil, nil
	default:
		var claims []*resourcev1.ResourceClaim
		for i := range labelled.Items {
			claims = append(claims, &labelled.Items[i])
			g.promises = append(g.promises, promised{name: labelled.Items[i].Name})
		}
		g.res = orphan(key, claims)
	}
	for _, read := range []func(context.Context) error{
		func(ctx context.Context) error { return r.demand(ctx, g) },
		func(ctx context.Context) error { return r.readClaims(ctx, g, labelled.Items) },
		func(ctx context.Context) error { return r.readPods(ctx, g) },
		func(ctx context.Context) error { return r.readHosts(ctx, g) },
	} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	g.Phase = reservation.Phase(g.res.Status.Phase)
	if g.Phase == "" {
		g.Phase = reservation.Planned
	}
	g.Target = !g.res.Holds()
	g.Deleting = g.res.DeletionTimestamp != nil
	g.Finalizer = slices.Contains(g.res.Finalizers, berth.FinalizerReservation)
	g.Recorded = g.recorded
	g.Lost = r.Board.Lost(key)
	switch g.Phase {
	case reservation.HandedOver:
		r.Backoff.Forget(g.res.Spec.WorkloadRef.UID) // only a gang that is seated has its failures behind it
	case reservation.Planned, reservation.Reserved:
		_, g.Failed = r.Backoff.Waits(g.res.Spec.WorkloadRef.UID)
	}
	return g, nil
}

func (r *reconciler) demand(ctx context.Context, g *gathered) error {
	wl := &kueue.Workload{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: g.res.Namespace, Name: g.res.Spec.WorkloadRef.Name}, wl)
	switch {
	case err == nil:
		g.workload = wl
	case !apierrors.IsNotFound(err):
		return err
	}
	if !g.recorded {
		g.Demand = reservation.Demand{Gone: true}
		return nil
	}
	g.Demand = adaptkueue.DemandFor(g.res, g.workload)
	if g.Demand.Gone {
		g.workload = nil
	}
	if !g.Demand.Unasked() {
		return nil
	}
	// A release cannot be undone, so where the cache does not know yet that the Job has started the API server is asked.
	for _, from := range []client.Reader{r.Client, r.Live} {
		if g.Started, err = started(ctx, from, g.res); err != nil || g.Started {
			return err
		}
	}
	return nil
}

// started reports whether the gang's Job runs and its template sends the pods to the reservation.
func started(ctx context.Context, from client.Reader, res *berth.GangReservation) (bool, error) {
	job := &batchv1.Job{}
	err := from.Get(ctx, types.NamespacedName{Namespace: res.Namespace, Name: res.Spec.Owner.Name}, job)
	return err == nil && job.UID == res.Spec.Owner.UID && !ptr.Deref(job.Spec.Suspend, false) &&
		job.Spec.Template.Labels[berth.LabelReservation] == res.Name, client.IgnoreNotFound(err)
}

func (r *reconciler) readClaims(ctx context.Context, g *gathered, labelled []resourcev1.ResourceClaim) error {
	for i := range labelled {
		g.claims[labelled[i].Name] = &labelled[i]
	}
	for _, p := range g.promises {
		claim, known := g.claims[p.name]
		if !known {
			// A claim of that name that is not ours carries no label of ours.
			claim = &resourcev1.ResourceClaim{}
			err := r.Client.Get(ctx, types.NamespacedName{Namespace: g.res.Namespace, Name: p.name}, claim)
			if apierrors.IsNotFound(err) {
				g.Claims = append(g.Claims, reservation.Claim{Name: p.name, State: reservation.Missing})
				continue
			}
			if err != nil {
				return err
			}
			g.claims[p.name] = claim
		}
		g.Claims = append(g.Claims, g.claim(claim))
	}
	return nil
}

func (g *gathered) claim(claim *resourcev1.ResourceClaim) reservation.Claim {
	c := reservation.Claim{
		Name: claim.Name, Deleting: claim.DeletionTimestamp != nil,
		Finalizer: slices.Contains(claim.Finalizers, berth.FinalizerHold),
	}
	switch {
	case claim.Annotations[berth.AnnotationReservationUID] != string(g.res.UID) || (!g.recorded && !c.Finalizer):
		// Without a record the finalizer alone tells a leftover from what somebody made up.
		c.State = reservation.Foreign
	case claim.Status.Allocation == nil:
		c.State = reservation.Free
	case held(claim):
		c.State = reservation.Held
	default:
		c.State = reservation.Unheld
	}
	return c
}

// readPods finds the pods that carry the reservation's label and those that stand in one of its claims. For the latter the
// informer's silence proves nothing, so the API server is asked: an entry keeps the allocation until its pod is gone.
func (r *reconciler) readPods(ctx context.Context, g *gathered) error {
	var list corev1.PodList
	if err := r.Client.List(ctx, &list, client.InNamespace(g.res.Namespace), client.MatchingLabels{berth.LabelReservation: g.res.Name}); err != nil {
		return err
	}
	byUID := map[types.UID]*corev1.Pod{}
	for i := range list.Items {
		byUID[list.Items[i].UID] = &list.Items[i]
	}
	seated := map[types.UID]bool{}
	for _, p := range g.promises {
		claim := g.claims[p.name]
		if claim == nil {
			continue
		}
		for _, ref := range claim.Status.ReservedFor {
			if !isPod(ref) {
				continue
			}
			seated[ref.UID] = true
			if _, known := byUID[ref.UID]; known {
				continue
			}
			pod := &corev1.Pod{}
			err := r.Live.Get(ctx, types.NamespacedName{Namespace: g.res.Namespace, Name: ref.Name}, pod)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if err == nil && pod.UID == ref.UID {
				byUID[ref.UID] = pod
			}
		}
	}
	for uid, pod := range byUID {
		_, stranger := jobs.SeatOf(g.res, pod)
		g.pods[pod.Name] = pod
		g.Pods = append(g.Pods, reservation.Pod{
			Name: pod.Name, Stranger: stranger != nil && g.recorded,
			Gated: jobs.Gated(pod), Seated: seated[uid], Terminal: jobs.Ended(pod), Deleting: pod.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(g.Pods, func(a, b reservation.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// readHosts finds which shares may still run a pod that nobody can see.
func (r *reconciler) readHosts(ctx context.Context, g *gathered) error {
	doubtful := func(name string) (bool, error) {
		node := &corev1.Node{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, node)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && nodes.Doubtful(node), err
	}
	var err error
	for _, s := range g.res.Status.Quarantine {
		share := reservation.Share{Host: s.Node}
		if share.Doubtful, err = doubtful(s.Node); err != nil {
			return err
		}
		g.Quarantine = append(g.Quarantine, share)
	}
	// Before the first pod was let go there is nothing to doubt.
	if g.recorded && !apimeta.IsStatusConditionTrue(g.res.Status.Conditions, berth.ReservationSeated) {
		return nil
	}
	for _, rank := range g.ranks() {
		if rank.Doubtful, err = doubtful(rank.Host); err != nil {
			return err
		}
		g.Ranks = append(g.Ranks, rank)
	}
	return nil
}

// ranks are the shares and whether each one's pod is known to have ended; where there is no record, nothing is known.
func (g *gathered) ranks() []reservation.Rank {
	var ranks []reservation.Rank
	if !g.recorded {
		for _, host := range g.orphanHosts() {
			ranks = append(ranks, reservation.Rank{Host: host})
		}
		return ranks
	}
	type at struct {
		podSet string
		rank   int
	}
	succeeded := map[at]bool{}
	for _, p := range g.pods {
		if seat, err := jobs.SeatOf(g.res, p); err == nil && p.Status.Phase == corev1.PodSucceeded {
			succeeded[at{seat.PodSet, seat.Rank}] = true
		}
	}
	for _, ps := range g.res.Spec.PodSets {
		for rank, host := range jobs.NodesOf(ps) {
			if host != "" {
				ranks = append(ranks, reservation.Rank{Host: host, Ended: succeeded[at{ps.Name, rank}]})
			}
		}
	}
	return ranks
}

// orphanHosts are the nodes that the stories of claims without a reservation name, each once. A story that does not parse
// names none; such a claim is released by its entries alone.
func (g *gathered) orphanHosts() []string {
	var hosts []string
	for _, claim := range g.claims {
		var devices []berth.ReservedDevice
		if json.Unmarshal([]byte(claim.Annotations[berth.AnnotationDevices]), &devices) != nil {
			continue
		}
		for _, d := range devices {
			for _, h := range d.Hosts {
				if !slices.Contains(hosts, h) {
					hosts = append(hosts, h)
				}
			}
		}
	}
	return hosts
}
