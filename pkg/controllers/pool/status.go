package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/policy"
)

// listed bounds the lists in a status.
const listed = 16

// writePool keeps the status of one AcceleratorPool; it writes only when something changed.
func (r *reconciler) writePool(ctx context.Context, p *berth.AcceleratorPool, v *view) error {
	if p.DeletionTimestamp != nil {
		return nil
	}
	changed := p.DeepCopy()
	changed.Status = describe(p, v)
	if equality.Semantic.DeepEqual(p.Status, changed.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, changed); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing AcceleratorPool %s: %w", p.Name, err)
	}
	return nil
}

// describe is the status that one AcceleratorPool should have.
func describe(p *berth.AcceleratorPool, v *view) berth.AcceleratorPoolStatus {
	managed := dra.NewManaged(v.snapshot.AcceleratorPools)
	mine := func(id inventory.PoolID) bool {
		owner := managed.Owner(id)
		return owner != nil && owner.Name == p.Name
	}
	status := berth.AcceleratorPoolStatus{
		ObservedGeneration: p.Generation,
		Conditions:         slices.Clone(p.Status.Conditions),
		Holders:            foreignHolders(v, mine),
	}
	for _, pool := range v.world.Inventory.Pools() {
		if !mine(pool.ID) {
			continue
		}
		status.Pools.Total++
		if pool.Usable() {
			status.Pools.Usable++
		} else if len(status.WorstPools) < listed {
			status.WorstPools = append(status.WorstPools, berth.PoolProblem{
				Name: pool.ID.Name, Reason: string(pool.Problem.Code), Message: pool.Problem.Message,
			})
		}
	}
	status.Shapes = shapes(v, mine)
	hosts := capacity.CountHosts(v.world.Inventory, v.world.Ledger, mine)
	status.Hosts = berth.HostCounts{
		Total: int32(hosts.Total), Usable: int32(hosts.Usable), Reserved: int32(hosts.Held),
		Quarantined: int32(hosts.Quarantined), Stranded: int32(hosts.Stranded),
	}
	set := func(kind string, ok bool, why, message string) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: why, Message: message,
			ObservedGeneration: p.Generation, LastTransitionTime: metav1.NewTime(v.now),
		}
		if ok {
			c.Status = metav1.ConditionTrue
		}
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	ready, why, message := readiness(status, managed.Overlaps(p, v.world.Inventory.Pools()), unusableHosts(v, mine))
	set(berth.PoolReady, ready, why, message)
	fenced, why, message := fencedness(p, status, overdrawn(v, mine), v)
	set(berth.PoolFenced, fenced, why, message)
	return status
}

// fencedness lists who holds devices already, and who could get past the scheduler's taint, before it says Fenced.
func fencedness(p *berth.AcceleratorPool, s berth.AcceleratorPoolStatus, overdrawn []string, v *view) (bool, string, string) {
	if p.Spec.Fence == berth.FenceObserve {
		if len(overdrawn) > 0 {
			return false, "Overdrawn", "others have taken what was not free: " + some(overdrawn)
		}
		return false, "Observe", "others may allocate from these pools: their claims are counted, nothing keeps them away"
	}
	finding, tried := v.report.Fence(p.Name)
	if !tried {
		finding.Message = "it has not been tried yet"
	}
	if finding.Verdict != policy.InForce {
		return false, "NotInForce", "nothing is reserved here until the fence is in force: " + finding.Message
	}
	why, notes := "Fenced", []string{"writes by others are refused"}
	if len(s.Holders) > 0 {
		var names []string
		for _, h := range s.Holders {
			names = append(names, h.Namespace+"/"+h.Name)
		}
		slices.Sort(names)
		notes = append(notes, "claims of others hold devices here from before: "+some(slices.Compact(names)))
	}
	if len(overdrawn) > 0 {
		why = "Overdrawn"
		notes = append(notes, "more is taken than there is: "+some(overdrawn))
	}
	if blanket := blanketTolerations(v); len(blanket) > 0 {
		notes = append(notes, "templates that tolerate the scheduler's taint and will fail at the policy instead: "+some(blanket))
	}
	return true, why, strings.Join(notes, "; ")
}

// overdrawn says of which devices and counters more is taken than there is, and by whom.
func overdrawn(v *view, mine func(inventory.PoolID) bool) []string {
	var out []string
	for _, o := range v.world.Ledger.Overdrawn() {
		if !mine(o.Pool) {
			continue
		}
		what := "counter " + o.CounterSet + "/" + o.Counter
		if o.Device != "" {
			what = "device " + o.Device
		}
		out = append(out, fmt.Sprintf("%s of pool %s (%s)", what, o.Pool.Name, some(o.Owners)))
	}
	return out
}

// blanketTolerations are the ResourceClaimTemplates of which some request bears the scheduler's taint.
func blanketTolerations(v *view) []string {
	var names []string
	for _, t := range v.snapshot.ResourceClaimTemplates {
		if slices.ContainsFunc(t.Spec.Spec.Devices.Requests, bearsFence) {
			names = append(names, t.Namespace+"/"+t.Name)
		}
	}
	slices.Sort(names)
	return names
}

func bearsFence(q resourcev1.DeviceRequest) bool {
	bears := func(tol resourcev1.DeviceToleration) bool {
		return (tol.Key == "" || tol.Key == policy.KeyFence) && tol.Operator == resourcev1.DeviceTolerationOpExists
	}
	if q.Exactly != nil && slices.ContainsFunc(q.Exactly.Tolerations, bears) {
		return true
	}
	return slices.ContainsFunc(q.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool { return slices.ContainsFunc(sub.Tolerations, bears) })
}

// foreignHolders are claims of others that are allocated in the pools.
func foreignHolders(v *view, mine func(inventory.PoolID) bool) []berth.ForeignHolder {
	var holders []berth.ForeignHolder
	for _, h := range v.world.Ledger.Holdings() {
		if h.Ours() || !mine(h.Pool) || len(holders) == listed {
			continue
		}
		namespace, name, _ := strings.Cut(h.Owner, "/")
		holders = append(holders, berth.ForeignHolder{Namespace: namespace, Name: name, Device: h.Pool.Name + "/" + h.Device})
	}
	return holders
}

// shapes counts devices by the class that selects them, largest first.
func shapes(v *view, mine func(inventory.PoolID) bool) []berth.ShapeCounts {
	const most = 64
	var out []berth.ShapeCounts
	for _, class := range v.world.Inventory.Classes() {
		devices, free := capacity.CountClass(v.world.Inventory, v.world.Ledger, mine, class)
		s := berth.ShapeCounts{Name: class.Name, Devices: int32(devices), Free: int32(free)}
		for _, d := range class.Devices {
			if mine(d.Pool) {
				s.Hosts = max(s.Hosts, int32(len(d.Hosts)))
			}
		}
		if s.Devices > 0 && len(out) < most {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b berth.ShapeCounts) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), cmp.Compare(a.Name, b.Name))
	})
	return out
}
