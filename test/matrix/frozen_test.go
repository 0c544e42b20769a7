package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/invariants"
)

// meanwhile is what the second leader has to do while the first is stopped.
type meanwhile string

const (
	// goesOn: it carries on with the gang, and another waits for the hardware.
	goesOn meanwhile = "goes on"
	// deactivated: the gang gives way to another, and is activated again in the end.
	deactivated meanwhile = "deactivated"
	// deleted: the gang's Job is deleted and another gets the hardware.
	deleted meanwhile = "deleted"
)

// A leader is stopped at each write of a gang, complete and on its way. Another takes over and works, where possible with
// another gang on the same hardware. Then the write arrives and the old leader wakes up: it overdraws nothing, it ends, and
// both gangs run whole.
func TestLeaderIsFrozenAtEachWrite(t *testing.T) {
	t.Parallel()
	binary := program(t)
	first := freezer(t, binary)
	sites := first.written(t)
	t.Logf("a gang takes %d writes", len(sites))
	for n := range freezers {
		t.Run(fmt.Sprintf("%d of %d", n+1, freezers), func(t *testing.T) {
			t.Parallel()
			f := first
			if n > 0 {
				f = freezer(t, binary)
			}
			for i := n; i < len(sites); i += freezers {
				f.freeze(t, sites[i])
				if t.Failed() {
					return
				}
			}
		})
	}
}

// round is one write at which a leader is stopped.
type round struct {
	*world
	t       *testing.T
	watcher *invariants.Watcher
	pairs   []*pair
	began   time.Time
}

// note logs how long the round took so far.
func (r *round) note(what string) {
	r.t.Logf("%s after %s", what, time.Since(r.began).Round(100*time.Millisecond))
}

// pair is a gang whose write is held, and the one that wants the same hardware.
type pair struct {
	meanwhile
	first, second *gang
	hold          *faults.Hold
	// over: the first gang's Job had ended before its write was held.
	over bool
}

func (r *round) play(name string, proxy *faults.Proxy, site faults.Site, leader, standby process) {
	t, ctx := r.t, r.t.Context()
	for i, way := range ways {
		p := &pair{
			meanwhile: way,
			first:     r.newGang(fmt.Sprintf("%s-first-%d", name, i), lane(i), wholeClass, gangSize),
			second:    r.newGang(fmt.Sprintf("%s-second-%d", name, i), lane(i), halfClass, 2),
		}
		r.pairs = append(r.pairs, p)
		must(t, errors.Join(p.first.prepare(ctx), p.second.prepare(ctx)))
		p.hold = proxy.HoldNth(site.N, 0, func(write faults.Write) bool {
			return write.Namespace == p.first.namespace && write.Class() == site.Class()
		})
	}
	defer r.clear()
	r.freeze(ctx, leader)
	r.note("frozen")
	must(t, await(ctx, "taking over", standby.leads))
	r.note("taken over")
	for _, p := range r.pairs {
		must(t, p.begin(ctx))
	}
	for _, p := range r.pairs {
		must(t, await(ctx, p.first.namespace+" "+string(p.meanwhile), p.worked))
	}
	r.note("worked on")
	for _, p := range r.pairs {
		p.hold.Release()
	}
	must(t, leader.Resume())
	for _, p := range r.pairs {
		select {
		case <-p.hold.Done():
		case <-ctx.Done():
			t.Fatal("a write was not forwarded")
		}
	}
	for _, p := range r.pairs {
		must(t, p.late(t))
	}
	must(t, await(ctx, "the end of the old leader", leader.failed))
	r.note("the old leader has ended")
	// What the late writes have done, if anything, is there now; it must neither disturb who runs nor stay.
	for _, p := range r.pairs {
		must(t, p.worked(ctx))
	}
	must(t, r.watcher.Settle(ctx))
	for _, p := range r.pairs {
		must(t, await(ctx, p.first.namespace+" at its end", p.ended))
	}
	must(t, await(ctx, "freeing the hardware", r.free))
	r.note("all at their end")
}

// freeze submits the first gangs and stops the leader when a write of each is on its way.
func (r *round) freeze(ctx context.Context, leader process) {
	t := r.t
	for _, p := range r.pairs {
		must(t, p.first.submit(ctx))
	}
	must(t, await(ctx, "holding a write of each gang", func(ctx context.Context) error {
		// All gangs end together, so that their writes are on their way together.
		var waits []error
		whole, held := map[*pair]string{}, 0
		for _, p := range r.pairs {
			select {
			case <-p.hold.Reached():
				held++
				continue
			default:
			}
			reservation, err := p.first.whole(ctx)
			if err == nil {
				whole[p], err = reservation, errors.New("it runs whole")
			}
			waits = append(waits, fmt.Errorf("%s: %w", p.first.namespace, err))
		}
		if len(whole)+held == len(r.pairs) {
			for p, reservation := range whole {
				waits = append(waits, p.first.end(ctx, reservation))
			}
		}
		return errors.Join(waits...)
	}))
	must(t, leader.Pause())
	for _, p := range r.pairs {
		must(t, p.hold.Err())
	}
}

// late looks at the answer to the write that came after the takeover. What changes an object must fail, because the second
// leader has changed it since or removed it. A gate that is taken off again is no change, and neither is a claim or a
// reservation that is deleted again. What is created holds nothing.
func (p *pair) late(t *testing.T) error {
	write, status := p.hold.Write(), p.hold.Status()
	t.Logf("%s, %s: the late write was answered with status %d", write.Class(), p.meanwhile, status)
	changes := write.Verb == faults.VerbUpdate || write.Verb == faults.VerbApply
	if changes && status < http.StatusBadRequest {
		return fmt.Errorf("%s: the late write of %s/%s took effect: status %d", write.Class(), write.Namespace, write.Name, status)
	}
	return nil
}

// begin gives the second leader its work.
func (p *pair) begin(ctx context.Context) error {
	job := &batchv1.Job{}
	if err := p.first.client.Get(ctx, client.ObjectKeyFromObject(p.first.job), job); err != nil {
		return err
	}
	p.over = job.Status.CompletionTime != nil
	switch {
	case p.meanwhile == deleted:
		if err := p.first.client.Delete(ctx, p.first.job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	case p.meanwhile == deactivated && !p.over:
		if err := p.first.activate(ctx, false); err != nil {
			return err
		}
	}
	return p.second.submit(ctx)
}

// worked returns nil when the second leader has done what it can do.
func (p *pair) worked(ctx context.Context) error {
	runs := p.second
	if p.meanwhile == goesOn && !p.over {
		runs = p.first
	}
	_, err := runs.whole(ctx)
	return err
}

// ended brings both gangs to their end; it returns nil there.
func (p *pair) ended(ctx context.Context) error {
	switch {
	case p.meanwhile == deleted:
		return errors.Join(p.first.gone(ctx), p.second.finished(ctx))
	case p.meanwhile == deactivated && !p.over:
		if err := p.second.finished(ctx); err != nil {
			return err
		}
		if err := p.first.activate(ctx, true); err != nil {
			return err
		}
		return p.first.finished(ctx)
	}
	return errors.Join(p.first.finished(ctx), p.second.finished(ctx))
}

// activate sets spec.active of the gang's Workload.
func (g *gang) activate(ctx context.Context, active bool) error {
	wl, err := g.workload(ctx)
	if err != nil || wl == nil {
		return fmt.Errorf("there is no Workload (%w)", err)
	}
	if wl.Spec.Active != nil && *wl.Spec.Active == active {
		return nil
	}
	return g.client.Patch(ctx, wl, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"active":%t}}`, active)))
}

// clear removes the gangs.
func (r *round) clear() {
	ctx := context.WithoutCancel(r.t.Context())
	for _, p := range r.pairs {
		if err := errors.Join(p.first.remove(ctx), p.second.remove(ctx)); err != nil {
			r.t.Error(err)
		}
	}
}
