package fold

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
)

// decision is what becomes of one fold.
type decision struct {
	status berth.CapacityFoldStatus
	// write is true when that must be written now.
	write   bool
	settled fold.Settled
	known   bool
	// steady is true when the hardware's number is what it was, whatever Kueue charges.
	steady bool
	aims   []aim
	// unsure are positions of targets that must be read from the API server before this is decided.
	unsure []int
	// tells are the events that follow the status.
	tells []tell
	// falls is when the number may fall, zero for when it does not.
	falls time.Duration
	// again is when to look again, zero for when something happens.
	again time.Duration
	// waits is since when something waits to be written; zero when nothing does.
	waits time.Time
}

// aim is what becomes of one target.
type aim struct {
	want   int
	write  bool
	memory fold.Memory
	// confirmed is true when the number stands there.
	confirmed bool
}

const (
	// seldom is how often the status is written when nothing but observations changed, as they do with every gang.
	seldom = time.Second
	// patience is for how long such a change waits for a number that may be about to fall, so that both are one write.
	patience = 10 * time.Second
	// retryRefused is when a write that the API server refused is tried again although nothing has changed.
	retryRefused = time.Minute
)

// decide is a pure function of what was found.
func decide(f *folded) decision {
	d := decision{status: *f.object.Status.DeepCopy(), settled: f.settled, known: f.known, aims: make([]aim, len(f.targets))}
	d.status.ObservedGeneration = f.object.Generation
	if f.compiled.Problem != nil {
		d.stand(f)
	} else {
		d.count(f)
		d.assert(f)
	}
	d.conditions(f)
	d.notices(f)
	d.record(f)
	return d
}

// stand leaves everything as it is.
func (d *decision) stand(f *folded) {
	if f.known {
		// A fall that was seen before is not seen now.
		d.settled = fold.Restart(f.settled.Shares)
	}
	d.status.Losses = nil
	d.status.Targets = make([]berth.FoldTargetStatus, 0, len(f.targets))
	for i := range f.targets {
		was := remembered(f, i)
		d.aims[i].memory = was
		d.status.Targets = append(d.status.Targets, told(f.targets[i], max(was.Quota, 0), was, berth.TargetNotReady, ""))
	}
}

// count decides the number.
func (d *decision) count(f *folded) {
	o := f.observed
	uncharged := o.Uncharged(f.compiled.Live)
	if !f.known && f.object.Status.ObservedGeneration != 0 {
		// A former process has settled it.
		d.settled = fold.Restart(int(f.object.Status.Shares) + uncharged)
	}
	before := d.settled.Shares
	atLeast, atMost := o.Hardware(f.compiled.Live)
	d.falls = d.settled.See(atLeast, atMost, f.now, hysteresis(f.object))
	d.again = d.falls
	d.known = true
	d.steady = d.settled.Shares == before
	d.status.Shares = short(max(0, d.settled.Shares-uncharged))
	d.status.Losses = f.losses[:min(len(f.losses), listed)]
	d.status.Observed = berth.FoldObservation{
		Published: short(f.compiled.Published), Usable: short(o.Usable), Held: short(o.Held), Free: short(o.Free),
		Charged: short(o.Charged), Proved: o.Proved,
	}
}

func hysteresis(f *berth.CapacityFold) time.Duration {
	return time.Duration(ptr.Deref(f.Spec.HysteresisSeconds, 5)) * time.Second
}

// assert divides the number and decides which targets are written. What a target is to hold, and who changed it, is decided
// on what the API server says, not on what a cache says.
func (d *decision) assert(f *folded) {
	shares := make([]fold.Share, len(f.targets))
	seen := make([]fold.Seen, len(f.targets))
	for i, t := range f.targets {
		seen[i] = f.seen(t)
		shares[i] = fold.Share{
			Weight: int(ptr.Deref(t.Weight, 1)), Min: int(t.Min), Max: int(ptr.Deref(t.Max, -1)),
			Holds: int(seen[i].Milli / 1000), Charged: t.charged,
		}
	}
	wants := fold.Divide(int(d.status.Shares), shares)
	d.status.Targets = make([]berth.FoldTargetStatus, 0, len(f.targets))
	for i, t := range f.targets {
		was := remembered(f, i)
		write, verdict, now := fold.Assert(wants[i], seen[i], was)
		state, message := stateOf(f, t, verdict, seen[i], wants[i])
		if write && f.refuses(t, wants[i]) {
			r := f.target(nameOf(t.FoldTarget)).refused
			write, state, message = false, berth.TargetRefused, r.message
			soon := soonest{after: d.again}
			soon.in(r.at.Add(retryRefused).Sub(f.now))
			d.again = soon.after
		}
		d.aims[i] = aim{want: wants[i], write: write, memory: now, confirmed: !write && state == berth.TargetFollowing}
		status := told(t, wants[i], now, state, message)
		if old := statusOf(f.object, t.FoldTarget); !t.live && (t.stale || write || !alike(old, status)) {
			d.unsure = append(d.unsure, i)
		}
		d.status.Targets = append(d.status.Targets, status)
	}
}

// refuses reports that the same write was refused a moment ago.
func (f *folded) refuses(t target, want int) bool {
	r := f.target(nameOf(t.FoldTarget)).refused
	return r != nil && r.want == want && r.of == t.version && f.now.Before(r.at.Add(retryRefused))
}

// record decides whether the status is written, and when if not now.
func (d *decision) record(f *folded) {
	was, now := &f.object.Status, &d.status
	if !equality.Semantic.DeepEqual(lasting(was), lasting(now)) {
		d.write = true
		return
	}
	// What is forgotten because it came true is no reason to write.
	if equality.Semantic.DeepEqual(forgetting(was, now), now) {
		return
	}
	wait := f.wrote.Add(seldom).Sub(f.now)
	if d.falls > 0 {
		wait = max(wait, d.falls)
	}
	since := f.waits
	if since.IsZero() {
		since = f.now
	}
	if wait = min(wait, since.Add(patience).Sub(f.now)); wait <= 0 {
		d.write = true
		return
	}
	d.waits = since
	soon := soonest{after: d.again}
	soon.in(wait)
	d.again = soon.after
}
