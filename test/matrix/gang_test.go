package matrix

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// gang is one Job of a test, in a namespace of its own, on one lane.
type gang struct {
	*world
	lane      lane
	namespace string
	job       *batchv1.Job
	// whenWhole is what is done to a gang that runs whole; end, if it is nil.
	whenWhole func(ctx context.Context, reservation string) error
	// over are objects that the gang must not be served by any more: a deleted Workload, a deleted claim.
	over map[types.UID]bool
	// ended are the reservations whose pods were told to end.
	ended map[string]bool
	// served are all reservations that were ever seen.
	served map[types.UID]string
}

// newGang is a gang that nothing exists of yet.
func (w *world) newGang(namespace string, l lane, class string, pods int32) *gang {
	g := &gang{world: w, lane: l, namespace: namespace, over: map[types.UID]bool{}, ended: map[string]bool{}, served: map[types.UID]string{}}
	g.job = scene.Gang("gang", class, pods)
	g.job.Namespace = namespace
	return g
}

// prepare makes the namespace with a queue and a template.
func (g *gang) prepare(ctx context.Context) error {
	if err := g.cluster.CreateNamespace(ctx, g.namespace, nil); err != nil {
		return err
	}
	class := *g.job.Spec.Template.Spec.ResourceClaims[0].ResourceClaimTemplateName
	template := (&scene.Scene{Namespace: g.namespace}).Template(class)
	return errors.Join(g.client.Create(ctx, g.queue()), g.client.Create(ctx, template))
}

func (g *gang) queue() *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: scene.LocalQueue},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(g.lane.String())},
	}
}

// remove deletes the Job and the queue, which Kueue would go on counting for. The namespace stays: it is empty and costs
// nothing.
func (g *gang) remove(ctx context.Context) error {
	job := g.client.Delete(ctx, g.job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	queue := g.client.Delete(ctx, g.queue())
	return errors.Join(client.IgnoreNotFound(job), client.IgnoreNotFound(queue))
}

func (g *gang) submit(ctx context.Context) error { return g.client.Create(ctx, g.job) }

// workload is the Job's Workload; nil when there is none.
func (g *gang) workload(ctx context.Context) (*kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := g.seen.List(ctx, &list, client.InNamespace(g.namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if ref := metav1.GetControllerOf(&list.Items[i]); ref != nil && ref.Name == g.job.Name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// whole returns the reservation by which the gang runs now, or an error that says what is missing: the Workload is
// admitted, every claim of its reservation is held, and every pod runs on the host of its rank.
func (g *gang) whole(ctx context.Context) (string, error) {
	wl, err := g.workload(ctx)
	switch {
	case err != nil:
		return "", err
	case wl == nil:
		return "", errors.New("there is no Workload")
	case wl.DeletionTimestamp != nil || g.over[wl.UID]:
		return "", fmt.Errorf("Workload %s is being deleted", wl.Name)
	case !workload.IsAdmitted(wl) || workload.IsEvicted(wl) || workload.IsFinished(wl):
		return "", fmt.Errorf("Workload %s is not admitted: %s", wl.Name, told(wl))
	}
	res, err := g.reservationOf(ctx, wl)
	if err != nil {
		return "", err
	}
	claims, err := g.claims(ctx, res.Name)
	if err != nil {
		return "", err
	}
	if len(claims) == 0 {
		return "", fmt.Errorf("GangReservation %s has no claims", res.Name)
	}
	for _, c := range claims {
		if c.DeletionTimestamp != nil || g.over[c.UID] || c.Status.Allocation == nil {
			return "", fmt.Errorf("ResourceClaim %s is not held", c.Name)
		}
	}
	return res.Name, g.seated(ctx, res)
}

func (g *gang) reservationOf(ctx context.Context, wl *kueue.Workload) (*berth.GangReservation, error) {
	var list berth.GangReservationList
	if err := g.seen.List(ctx, &list, client.InNamespace(g.namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Spec.WorkloadRef.UID == wl.UID && r.DeletionTimestamp == nil && r.Status.Phase == berth.PhaseHandedOver {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no reservation is handed over to Workload %s: %s; %s", wl.Name, told(wl), phases(list.Items))
}

func (g *gang) seated(ctx context.Context, res *berth.GangReservation) error {
	pods, err := g.pods(ctx)
	if err != nil {
		return err
	}
	hosts := res.Spec.PodSets[0].Hosts
	on := map[int]string{}
	for i := range pods {
		p := &pods[i]
		rank, ranked := jobs.Rank(p)
		switch {
		case !ranked || rank >= len(hosts):
			return fmt.Errorf("pod %s has no rank", p.Name)
		case p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning:
			return fmt.Errorf("pod %s of rank %d does not run: %s, gates %v", p.Name, rank, p.Status.Phase, p.Spec.SchedulingGates)
		case p.Spec.NodeName != hosts[rank]:
			return fmt.Errorf("rank %d runs on %s, its host is %s", rank, p.Spec.NodeName, hosts[rank])
		}
		on[rank] = p.Spec.NodeName
	}
	if len(on) != len(hosts) || len(pods) != len(hosts) {
		return fmt.Errorf("%d pods run on %d of %d hosts", len(pods), len(on), len(hosts))
	}
	return nil
}

func (g *gang) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := g.seen.List(ctx, &list, client.InNamespace(g.namespace))
	return list.Items, err
}

// claims are those of one reservation, or all that Berth made in the namespace.
func (g *gang) claims(ctx context.Context, reservation string) ([]resourcev1.ResourceClaim, error) {
	var list resourcev1.ResourceClaimList
	selector := client.ListOption(client.HasLabels{berth.LabelReservation})
	if reservation != "" {
		selector = client.MatchingLabels{berth.LabelReservation: reservation}
	}
	err := g.seen.List(ctx, &list, client.InNamespace(g.namespace), selector)
	return list.Items, err
}

// goOn does to a gang that runs whole what is to be done.
func (g *gang) goOn(ctx context.Context, reservation string) error {
	if g.whenWhole != nil {
		return g.whenWhole(ctx, reservation)
	}
	return g.end(ctx, reservation)
}

// end lets the pods of a whole gang succeed, once for each reservation.
func (g *gang) end(ctx context.Context, reservation string) error {
	if g.ended[reservation] {
		return nil
	}
	_, err := g.cluster.CompletePods(ctx, g.namespace, batchv1.JobNameLabel+"="+g.job.Name)
	g.ended[reservation] = err == nil
	return err
}

// finished returns nil when the Job is complete and nothing that Berth made for it is left. On the way it lets a gang
// that is whole come to its end.
func (g *gang) finished(ctx context.Context) error {
	job := &batchv1.Job{}
	if err := g.seen.Get(ctx, client.ObjectKeyFromObject(g.job), job); err != nil {
		return err
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return fmt.Errorf("the Job failed: %s: %s", c.Reason, c.Message)
		}
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return g.noTrace(ctx)
		}
	}
	reservation, err := g.whole(ctx)
	if err != nil {
		return err
	}
	if err := g.goOn(ctx, reservation); err != nil {
		return err
	}
	return errors.New("the gang is whole and told to go on")
}

// gone returns nil when neither the Job nor anything that was made for it is left.
func (g *gang) gone(ctx context.Context) error {
	err := g.seen.Get(ctx, client.ObjectKeyFromObject(g.job), &batchv1.Job{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Job exists (%w)", err)
	}
	if wl, err := g.workload(ctx); err != nil || wl != nil {
		return fmt.Errorf("the Workload exists (%w)", err)
	}
	if pods, err := g.pods(ctx); err != nil || len(pods) > 0 {
		return fmt.Errorf("%d pods exist (%w)", len(pods), err)
	}
	return g.noTrace(ctx)
}

// withoutNamespaces returns nil when all the namespaces are gone.
func (w *world) withoutNamespaces(names []string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, name := range names {
			ns := &corev1.Namespace{}
			if err := w.seen.Get(ctx, client.ObjectKey{Name: name}, ns); !apierrors.IsNotFound(err) {
				return fmt.Errorf("namespace %s exists: %v (%w)", name, ns.Status.Conditions, err)
			}
		}
		return nil
	}
}

// noTrace returns nil when the namespace holds neither a reservation nor a claim of Berth's.
func (g *gang) noTrace(ctx context.Context) error {
	var reservations berth.GangReservationList
	if err := g.seen.List(ctx, &reservations, client.InNamespace(g.namespace)); err != nil {
		return err
	}
	claims, err := g.claims(ctx, "")
	if err != nil {
		return err
	}
	if len(reservations.Items) > 0 || len(claims) > 0 {
		return fmt.Errorf("there are left: %d claims, %s", len(claims), phases(reservations.Items))
	}
	return nil
}

// atRest returns nil when nothing moves any more in a queue that is held: the gang was admitted before and runs whole or
// has run, or its quota is taken back and nothing is held for it.
func (g *gang) atRest(ctx context.Context) error {
	job := &batchv1.Job{}
	if err := g.seen.Get(ctx, client.ObjectKeyFromObject(g.job), job); err != nil {
		return err
	}
	if job.Status.CompletionTime != nil {
		return g.noTrace(ctx)
	}
	_, err := g.whole(ctx)
	if err == nil {
		return nil
	}
	wl, werr := g.workload(ctx)
	if werr != nil || wl == nil || workload.HasQuotaReservation(wl) {
		return err
	}
	return g.noTrace(ctx)
}

// count notes which reservations there are.
func (g *gang) count(ctx context.Context) error {
	var list berth.GangReservationList
	if err := g.seen.List(ctx, &list, client.InNamespace(g.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		g.served[list.Items[i].UID] = list.Items[i].Name
	}
	return nil
}

// undisturbed returns nil when one reservation has served the gang from its beginning to its end.
func (g *gang) undisturbed(ctx context.Context) error {
	if len(g.served) > 1 {
		return fmt.Errorf("the slice was given back and reserved again: %v", g.served)
	}
	wl, err := g.workload(ctx)
	if err != nil || wl == nil {
		return err
	}
	if stats := wl.Status.SchedulingStats; stats != nil && len(stats.Evictions) > 0 {
		return fmt.Errorf("Workload %s was evicted: %+v", wl.Name, stats.Evictions)
	}
	return nil
}

func told(wl *kueue.Workload) string {
	var all []string
	for _, c := range wl.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, c := range wl.Status.AdmissionChecks {
		all = append(all, fmt.Sprintf("check %s=%s (%s)", c.Name, c.State, c.Message))
	}
	return strings.Join(all, ", ")
}

func phases(reservations []berth.GangReservation) string {
	all := []string{strconv.Itoa(len(reservations)) + " reservations"}
	for i := range reservations {
		r := &reservations[i]
		text := fmt.Sprintf("%s is %s", r.Name, r.Status.Phase)
		if r.DeletionTimestamp != nil {
			text += " and being deleted"
		}
		for _, c := range r.Status.Conditions {
			text += fmt.Sprintf(", %s: %s", c.Type, c.Message)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
