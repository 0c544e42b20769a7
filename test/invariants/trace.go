package invariants

import (
	"context"
	"fmt"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// traces is what quorum knows of Workloads and of what Berth made for them.
type traces struct {
	alive map[types.UID]bool // Workloads that exist
	left  map[types.UID][]trace
}

// trace is one object that Berth made.
type trace struct {
	kind        kind
	obj         client.Object
	reservation types.NamespacedName
	quarantine  bool // it stands for a share that may still run a pod
}

func (w *Watcher) findTraces(ctx context.Context) (traces, error) {
	found := traces{alive: map[types.UID]bool{}, left: map[types.UID][]trace{}}
	// What was made for a Workload is listed before the Workloads: one that is missing then was gone, or not made yet,
	// and for one that is not made yet there is nothing.
	rs, cs, ws := &v1alpha1.GangReservationList{}, &resourcev1.ResourceClaimList{}, &kueue.WorkloadList{}
	for _, list := range []client.ObjectList{rs, cs, ws} {
		if err := w.client.List(ctx, list); err != nil && !absent(err) {
			return found, err
		}
	}
	inQuarantine := map[types.NamespacedName]bool{}
	for i := range rs.Items {
		r := &rs.Items[i]
		key := client.ObjectKeyFromObject(r)
		inQuarantine[key] = len(r.Status.Quarantine) > 0
		found.add(r.Spec.WorkloadRef.UID, trace{reservations, r, key, inQuarantine[key]})
	}
	for i := range cs.Items {
		c := &cs.Items[i]
		if uid := c.Annotations[v1alpha1.AnnotationWorkloadUID]; uid != "" {
			key := types.NamespacedName{Namespace: c.Namespace, Name: c.Labels[v1alpha1.LabelReservation]}
			found.add(types.UID(uid), trace{claims, c, key, inQuarantine[key]})
		}
	}
	for i := range ws.Items {
		found.alive[ws.Items[i].UID] = true
	}
	return found, nil
}

func (f *traces) add(uid types.UID, t trace) { f.left[uid] = append(f.left[uid], t) }

// AwaitNoTrace returns when the Workload with this UID is gone and with it everything that Berth made for it
// (invariant 7). When ctx ends before, it returns an error that names what is left, and if the Workload and its last pod
// were gone that is a breach. A share in quarantine may stay, so it is left to ctx and no breach.
func (w *Watcher) AwaitNoTrace(ctx context.Context, workloadUID types.UID) error {
	w.t.Helper()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		found, err := w.findTraces(ctx)
		if err == nil && !found.alive[workloadUID] && len(found.left[workloadUID]) == 0 {
			return nil
		}
		select {
		case <-changed:
			continue
		case <-time.After(time.Second): // the API server may have been away
			continue
		case <-ctx.Done():
		}
		last, cancel := context.WithTimeout(context.Background(), settleLimit)
		defer cancel()
		if err := w.settle(last); err != nil {
			return err
		}
		if found, err = w.findTraces(last); err != nil {
			return err
		}
		switch {
		case found.alive[workloadUID]:
			return fmt.Errorf("the Workload with uid %s still exists: %w", workloadUID, context.Cause(ctx))
		case len(found.left[workloadUID]) == 0:
			return nil
		}
		if b := w.leftOver(workloadUID, found.left[workloadUID], time.Now()); b != nil {
			w.report(b)
			return b
		}
		return fmt.Errorf("pods or quarantined shares of the Workload with uid %s still exist: %w", workloadUID, context.Cause(ctx))
	}
}

// judgeTraces is invariant 7 at the end of a test: what is left of Workloads that are gone for longer than the grace.
func (w *Watcher) judgeTraces(ctx context.Context) error {
	found, err := w.findTraces(ctx)
	if err != nil {
		return err
	}
	for uid, left := range found.left {
		if !found.alive[uid] {
			if b := w.leftOver(uid, left, time.Now().Add(-w.options.traceGrace)); b != nil {
				w.report(b)
			}
		}
	}
	return nil
}

// leftOver returns a breach if the Workload, which is gone, and its pods were gone before a time.
func (w *Watcher) leftOver(uid types.UID, left []trace, before time.Time) *Breach {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.started // a Workload that we never saw
	if gone, ok := w.memory.gone[uid]; ok {
		since = gone
	}
	var texts []string
	for _, t := range left {
		if t.quarantine {
			return nil
		}
		for _, pod := range w.memory.pods {
			if pod.obj != nil && pod.namespace == t.reservation.Namespace && pod.reservation == t.reservation.Name &&
				pod.controlled && !terminal(pod.obj) {
				return nil
			}
		}
		if last := w.memory.podGone[t.reservation]; last.After(since) {
			since = last
		}
		texts = append(texts, named(t.kind, client.ObjectKeyFromObject(t.obj)))
	}
	if !since.Before(before) {
		return nil
	}
	b := &Breach{
		Invariant: 7, seen: time.Now(),
		What: fmt.Sprintf("Workload with uid %s and its pods are gone since %s, but there remain: %s",
			uid, since.UTC().Format(time.RFC3339), strings.Join(texts, ", ")),
	}
	for _, t := range left {
		b = b.show(t.kind, t.obj)
	}
	return b
}
