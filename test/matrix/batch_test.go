package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/invariants"
	"github.com/berth-dev/berth/test/scene"
)

// saysWhy are the writes in which a reservation says what it waits for.
const saysWhy = "update gangreservations/status"

// batch is cells that share one takeover: each lane has one.
type batch struct {
	*world
	t       *testing.T // the batch's own
	name    string
	log     *journal
	watcher *invariants.Watcher
	leader  *incarnation
	// successor leads when the batch is over; the leader itself if that survives.
	successor *incarnation
	ended     <-chan struct{} // closed when the leader that died has let go of everything
	cells     []*played
	tries     int
	began     time.Time
	phase     []string
}

// played is a cell on its lane.
type played struct {
	cell
	*gang
	plan *faults.Plan
	// evicted: the gang was whole and its claim was deleted, after so many writes.
	evicted   bool
	evictedAt int
	// void: the accident had nothing to happen to. missed: the write was not made.
	void, missed bool
	// released: the ClusterQueue is no longer held.
	released bool
	// took is when the cell had come to its end; what keeps it from that is in err.
	took time.Duration
	err  error
}

// errLost says that the leader lost its lease before it was struck everywhere: on a busy machine one as short as this can
// be lost.
var errLost = errors.New("the leader lost its lease too early")

// lead brings every cell to the moment at which its fault has struck. A stand-by that is to lag is held back from then on,
// or if early from the beginning.
func (b *batch) lead(ctx context.Context, cells []cell, how takeover, early bool) error {
	b.tries++
	if err := b.succeeded(ctx); err != nil {
		return err
	}
	b.leader = b.successor
	if err := b.prepare(ctx, cells, func(c cell) []faults.Fault { return []faults.Fault{c.fault()} }); err != nil {
		return err
	}
	first := func() {}
	if how == laggard {
		b.successor = b.start(b.log)
		if err := await(ctx, "filling the caches of the stand-by", b.successor.filled); err != nil {
			return err
		}
		hold := func() {
			b.successor.records.Hold(records...)
			b.successor.other.Hold(others...)
		}
		if early {
			hold()
		} else {
			first = sync.OnceFunc(hold)
		}
	}
	err := b.submit(ctx)
	if err == nil {
		err = b.strike(ctx, first)
	}
	if err != nil {
		b.successor.records.Release()
		b.successor.other.Release()
	}
	return err
}

// succeed ends the leader, lets the accidents happen, and has somebody take over.
func (b *batch) succeed(ctx context.Context, how takeover) error {
	b.leader.wire.Cut()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.leader.Stop() // it cannot release the lease, and that is no news
	}()
	defer func() { <-ended }()
	b.ended = ended
	err := b.befall(ctx)
	switch {
	case err != nil:
	case how == laggard:
		err = b.takeOverLate(ctx, b.successor)
		if b.successor.dead() {
			err = b.succeeded(ctx)
		}
	default:
		err = b.succeeded(ctx)
	}
	b.note("taken over")
	return err
}

// prepare makes the gangs of a batch, and tells the leader what happens to it at each.
func (b *batch) prepare(ctx context.Context, cells []cell, fault func(cell) []faults.Fault) error {
	b.began = time.Now()
	b.cells = nil
	for i, c := range cells {
		p := &played{cell: c, gang: b.newGang(fmt.Sprintf("%s-%d-%02d", b.name, b.tries, i), lane(i), wholeClass, gangSize)}
		p.plan = faults.NewPlan(fault(c)...)
		p.whenWhole = p.play
		b.leader.plan(p.namespace, p.plan)
		b.cells = append(b.cells, p)
	}
	err := b.each(func(i int) error { return b.cells[i].prepare(ctx) })
	b.note("prepared")
	return err
}

// each runs do for every cell, some at once.
func (b *batch) each(do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(6)
	for i := range b.cells {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func (b *batch) submit(ctx context.Context) error {
	return b.each(func(i int) error { return b.cells[i].submit(ctx) })
}

// strike returns when every cell's fault has struck. Gangs that run whole before that come to their end.
func (b *batch) strike(ctx context.Context, first func()) error {
	lost := false
	err := await(ctx, "striking", func(ctx context.Context) error {
		if lost = b.leader.dead(); lost {
			return nil
		}
		return b.each(func(i int) error {
			p := b.cells[i]
			switch {
			case p.missed:
				return nil
			case len(p.plan.FiredAt()) > 0:
				first()
				return nil
			}
			err := errors.Join(p.finished(ctx), p.count(ctx))
			if err == nil {
				// Of what it waits for Berth says as much as it sees, and that is not always the same.
				if p.missed = p.site.story == evicted || p.site.Class() == saysWhy; p.missed {
					return nil
				}
				err = errors.New("it came to its end without that write")
			}
			return fmt.Errorf("%s at %s: %w", p.namespace, p.site, err)
		})
	})
	b.note("struck")
	if lost {
		return errLost
	}
	return err
}

// befall makes the accidents happen.
func (b *batch) befall(ctx context.Context) error {
	err := b.each(func(i int) error {
		p := b.cells[i]
		happened, err := p.gang.befall(ctx, p.accident)
		p.void = !happened
		return err
	})
	b.note("accidents")
	return err
}

// takeOverLate has a stand-by take over whose watches are held. Of claims and reservations it learns when it has the
// lease, because it waits for these itself; of everything else when it has made a first pass. One that dies is not awaited.
func (b *batch) takeOverLate(ctx context.Context, in *incarnation) error {
	defer in.other.Release()
	defer in.records.Release()
	await := func(ctx context.Context, what string, check func(context.Context) error) error {
		return await(ctx, what, func(ctx context.Context) error {
			if in.dead() {
				return nil
			}
			return check(ctx)
		})
	}
	if err := await(ctx, "getting the lease", in.holdsLease(b.world)); err != nil {
		return err
	}
	<-b.ended // from here on passes are the successor's
	before, err := passes()
	if err != nil {
		return err
	}
	in.records.Release()
	if err := await(ctx, "taking over", in.leads); err != nil {
		return err
	}
	err = await(ctx, "a first pass", func(context.Context) error {
		if now, err := passes(); err != nil || now > before {
			return err
		}
		return errors.New("none was made")
	})
	return err
}

// succeeded returns when the successor leads. One that is dead, or dies before it leads, is started again: a machine that
// is busy enough can keep a process from renewing its lease. Only one process is ever alive beside the leader that dies.
func (b *batch) succeeded(ctx context.Context) error {
	return await(ctx, "taking over", func(ctx context.Context) error {
		if b.successor.dead() {
			b.successor = b.start(b.log)
		}
		return b.successor.leads(ctx)
	})
}

// settle returns when every cell has come to its end, or patience has.
func (b *batch) settle(ctx context.Context) {
	_ = await(ctx, "settling", func(ctx context.Context) error {
		if b.successor.dead() { // see errLost; whatever runs Berth starts it again
			b.successor = b.start(b.log)
		}
		return b.each(func(i int) error {
			p := b.cells[i]
			if p.took != 0 {
				return nil
			}
			if p.err = p.step(ctx); p.err == nil {
				p.took = time.Since(b.began)
			}
			return p.err
		})
	})
	b.note("settled")
}

// play tells the cell's story, from the moment at which the gang is whole.
func (p *played) play(ctx context.Context, reservation string) error {
	if p.site.story == ends || p.evicted {
		return p.end(ctx, reservation)
	}
	p.evicted, p.evictedAt = true, len(p.plan.Record())
	_, err := p.gang.befall(ctx, claimDeleted)
	return err
}

// step brings a cell nearer to its end; it returns nil there.
func (p *played) step(ctx context.Context) error {
	if err := p.count(ctx); err != nil {
		return err
	}
	switch p.accident {
	case jobDeleted, namespaceDeleted:
		return p.gone(ctx)
	case queueHeld:
		if !p.released {
			if err := p.atRest(ctx); err != nil {
				return fmt.Errorf("while the ClusterQueue is held: %w", err)
			}
			if err := p.hold(ctx, kueue.None); err != nil {
				return err
			}
			p.released = true
		}
	}
	return p.finished(ctx)
}

// judge reports each cell and looks whether the hardware is free.
func (b *batch) judge(ctx context.Context) {
	for _, p := range b.cells {
		if p.err == nil && p.accident == nothing && p.site.story == ends {
			p.err = p.undisturbed(ctx)
		}
		b.t.Run(p.cell.String(), func(t *testing.T) {
			if p.err != nil {
				t.Errorf("in %s: %v", p.namespace, p.err)
			}
		})
	}
	if err := await(ctx, "freeing the hardware", b.free); err != nil && !b.t.Failed() {
		b.t.Error(err)
	}
	b.watcher.Stop()
	b.note("judged")
}

// tell says how long the parts of a batch took and, if it failed, where to read what Berth logged.
func (b *batch) tell() {
	b.t.Logf("%s", strings.Join(b.phase, ", "))
	for _, p := range b.cells {
		b.t.Logf("%5.1fs %s", p.took.Seconds(), p.cell)
	}
	text := b.log.cut()
	if !b.t.Failed() {
		return
	}
	file := filepath.Join(b.cluster.Dir, "logs", "berth-"+b.name+".log")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.t.Error(err)
	}
	b.t.Logf("what Berth logged is in %s", file)
}

// clear removes the gangs and opens the queues.
func (b *batch) clear(ctx context.Context) error {
	return b.each(func(i int) error {
		p := b.cells[i]
		var opened error
		if p.accident == queueHeld && !p.released {
			opened = p.hold(ctx, kueue.None)
		}
		return errors.Join(opened, p.remove(ctx))
	})
}

func (b *batch) note(what string) {
	b.phase = append(b.phase, fmt.Sprintf("%s after %s", what, time.Since(b.began).Round(100*time.Millisecond)))
}

func (w *world) newBatch(t *testing.T, name string, leader *incarnation, log *journal) *batch {
	t.Helper()
	b := &batch{world: w, t: t, name: name, leader: leader, successor: leader, log: log}
	t.Cleanup(b.tell)
	b.watcher = scene.Watch(t, w.cluster)
	return b
}
