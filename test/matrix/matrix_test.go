package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/berth-dev/berth/test/faults"
)

// lanes is how many cells a batch has. All cells of one site and one takeover fit into one.
const lanes = 18

func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lanes)
	log := &journal{}
	leader := w.start(log, unhurried)
	must(t, await(t.Context(), "leading", leader.leads))

	var sites []site
	t.Run("without faults", func(t *testing.T) { sites, leader = w.record(t, leader, log) })
	if !leader.dead() {
		must(t, leader.Stop())
	}
	leader = w.start(log)
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(envSeed), "1"), 10, 64)
	must(t, err)
	cells := cellsToPlay(sites, os.Getenv(envCells), seed)
	if len(cells) == 0 {
		t.Fatal("there are no cells")
	}
	t.Logf("%d cells, seed %d", len(cells), seed)

	void, missed := 0, 0
	// Kubernetes looks again only after seconds whether a namespace is empty, so that is awaited in the end.
	var deleted []string
	for n, some := range batches(cells) {
		how := some[0].takeover
		t.Run(fmt.Sprintf("%s %d", how, n), func(t *testing.T) {
			b := w.newBatch(t, fmt.Sprintf("m%02d", n), leader, log)
			defer func() {
				leader = b.successor
				for _, p := range b.cells {
					if p.void {
						void++
					}
					if p.missed {
						missed++
					}
					if p.accident == namespaceDeleted {
						deleted = append(deleted, p.namespace)
					}
				}
			}()
			// In every other batch the stand-by knows nothing of the gangs; in the rest it knows them up to the first fault.
			b.play(t, some, how, n%2 == 0)
		})
		// Whatever happened to one batch, the next begins with free hardware.
		if leader.dead() {
			leader = w.start(log)
		}
		must(t, await(t.Context(), "freeing the hardware", w.free))
	}
	must(t, await(t.Context(), "the end of the namespaces", w.withoutNamespaces(deleted)))
	if missed > len(cells)/10 {
		t.Errorf("%d of %d cells were over without the write", missed, len(cells))
	}
	t.Logf("of %d cells the accident had nothing to happen to in %d, and %d were over without the write", len(cells), void, missed)
}

// batches are cells of one takeover each, as many as there are lanes. Those whose namespace is deleted are kept apart:
// Kubernetes waits for five seconds before it begins to empty one.
func batches(cells []cell) [][]cell {
	var all [][]cell
	for _, how := range []takeover{restart, laggard, survives} {
		for _, slow := range []bool{false, true} {
			some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool {
				return c.takeover != how || (c.accident == namespaceDeleted) != slow
			})
			all = slices.AppendSeq(all, slices.Chunk(some, lanes))
		}
	}
	return all
}

// record runs gangs without faults and returns the writes that each gang of a story takes, and who leads then. Where no gang
// of a story had all of its writes answered in time, it does so again.
func (w *world) record(t *testing.T, leader *incarnation, log *journal) ([]site, *incarnation) {
	for run := range 3 {
		var sites []site
		if sites, leader = w.fine(t, fmt.Sprintf("fine%d", run), leader, log); sites != nil {
			return sites, leader
		}
		t.Log("once more: the machine is so busy that writes time out")
	}
	t.Fatal("in three runs no gang of a story had all of its writes answered in time")
	return nil, nil
}

// fine is one run without faults. Of a gang that is evicted only those writes count that are not of the other story: from
// the eviction to the end of its first reservation. Without a gang of each story whose writes were all answered in time the
// result is nil: a write that timed out is made again, and another run will not have it twice.
func (w *world) fine(t *testing.T, name string, leader *incarnation, log *journal) ([]site, *incarnation) {
	b := w.newBatch(t, name, leader, log)
	ctx := t.Context()
	cells := make([]cell, lanes)
	for i := range cells {
		cells[i] = cell{site: site{story: ends}, accident: nothing}
		if i%2 == 1 {
			cells[i].site.story = evicted
		}
	}
	defer func() { must(t, b.clear(context.WithoutCancel(ctx))) }()
	must(t, b.prepare(ctx, cells, func(cell) []faults.Fault { return nil }))
	must(t, b.submit(ctx))
	b.settle(ctx)
	b.judge(ctx)
	var sites []site
	for first, told := range []story{ends, evicted} {
		var writes []faults.Site
		for i := first; i < lanes; i += 2 {
			switch p := b.cells[i]; {
			case p.plan.Late():
			case writes == nil:
				writes = p.written()
			default:
				writes = slices.DeleteFunc(writes, func(s faults.Site) bool { return !slices.Contains(p.written(), s) })
			}
		}
		if writes == nil {
			return nil, b.successor
		}
		t.Logf("%s: %d writes: %v", told, len(writes), writes)
		for _, s := range writes {
			sites = append(sites, site{told, s})
		}
	}
	return sites, b.successor
}

// written are the writes of the cell's story.
func (p *played) written() []faults.Site {
	all := p.plan.Record()
	if p.site.story == ends {
		return all
	}
	all = all[p.evictedAt:]
	if again := slices.Index(all, faults.At("create gangreservations#2")); again >= 0 {
		all = all[:again]
	}
	return all
}

// play plays cells of one takeover.
func (b *batch) play(t *testing.T, cells []cell, how takeover, early bool) {
	ctx := t.Context()
	defer func() { must(t, b.clear(context.WithoutCancel(ctx))) }()
	err := b.lead(ctx, cells, how, early)
	for tries := 1; errors.Is(err, errLost) && tries < 3; tries++ {
		t.Log("once more:", err)
		must(t, b.clear(ctx))
		err = b.lead(ctx, cells, how, early)
	}
	must(t, err)
	if how == survives {
		must(t, b.befall(ctx))
	} else {
		must(t, b.succeed(ctx, how))
	}
	b.settle(ctx)
	b.judge(ctx)
}
