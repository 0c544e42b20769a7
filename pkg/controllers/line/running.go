package line

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/line"
)

// running lists the gangs that hold devices, with when they will have ended as far as that is known.
func (v *view) running() []line.Running {
	workloads := make(map[types.UID]*kueue.Workload, len(v.snapshot.Workloads))
	for _, wl := range v.snapshot.Workloads {
		workloads[wl.UID] = wl
	}
	pods := map[string][]string{}
	for _, p := range v.pinned {
		of := p.Namespace + "/" + p.Labels[berth.LabelReservation]
		pods[of] = append(pods[of], p.Namespace+"/"+p.Name)
	}
	going := v.going()
	all := make([]line.Running, 0, len(v.reservations))
	for key, res := range v.reservations {
		r := line.Running{Owner: key.String(), Pods: pods[key.String()], Since: res.CreationTimestamp.Time, Lent: res.Spec.Lent}
		for _, ps := range res.Spec.PodSets {
			for rank := range ps.Hosts {
				// As pkg/cluster names the room of a pod that is still to come.
				r.Pods = append(r.Pods, fmt.Sprintf("%s/%s[%s/%d]", res.Namespace, res.Spec.WorkloadRef.Name, ps.Name, rank))
			}
		}
		wl := workloads[res.Spec.WorkloadRef.UID]
		switch {
		case res.Status.Phase == berth.PhaseReleasing || wl == nil:
			// A time that moved along with the clock would never be overdue, and a release may not come to its end.
			r.Ends = v.now
			if since, begun := going[res.UID]; begun {
				r.Ends = since
			}
		default:
			r.Ends = adaptkueue.Ends(wl, v.assumed(res.Spec.Check), v.now)
		}
		if wl != nil {
			r.Priority = priority(wl)
		}
		all = append(all, r)
	}
	return all
}

// going says of the reservations whose claims are in deletion since when they are, by UID.
func (v *view) going() map[types.UID]time.Time {
	going := map[types.UID]time.Time{}
	for _, c := range v.snapshot.ResourceClaims {
		uid := types.UID(dra.ReservationUID(c))
		if uid == "" || c.DeletionTimestamp == nil {
			continue
		}
		if since, known := going[uid]; !known || c.DeletionTimestamp.Time.Before(since) {
			going[uid] = c.DeletionTimestamp.Time
		}
	}
	return going
}

// backfill is the policy of a check. Its zero value stands for the defaults.
func (v *view) backfill(check string) berth.BackfillPolicy {
	if config := v.configOf(v.checks[kueue.AdmissionCheckReference(check)]); config != nil {
		return config.Spec.Backfill
	}
	return berth.BackfillPolicy{}
}

// assumed is for how long gangs of a check are assumed to run; zero when nobody knows.
func (v *view) assumed(check string) time.Duration {
	if s := v.backfill(check).AssumedSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}
