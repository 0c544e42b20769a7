package matrix

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/scene"
)

// freezers are how many clusters share the writes among them: nearly all the time goes by waiting for leases.
const freezers = 3

// ways are what happens to the gangs of a round, one on each lane.
var ways = []meanwhile{goesOn, deactivated, deleted}

// frost is a cluster in which one leader after another is frozen.
type frost struct {
	*world
	binary string
	proxy  *faults.Proxy
	leader process
	// launched and rounds count.
	launched, rounds int
}

// freezer starts a cluster with a leader.
func freezer(t *testing.T, binary string) *frost {
	t.Helper()
	w := newWorld(t, len(ways))
	f := &frost{world: w, binary: binary, proxy: faults.NewProxy(t, w.cluster.RESTConfig())}
	f.leader = f.next()
	must(t, await(t.Context(), "leading", f.leader.leads))
	return f
}

// next launches a process, which leads as soon as it can.
func (f *frost) next() process {
	f.launched++
	return f.launch(f.t, f.binary, fmt.Sprintf("berth-%d", f.launched), f.proxy)
}

// freeze plays one round. The stand-by leads after it.
func (f *frost) freeze(t *testing.T, site faults.Site) {
	standby := f.next()
	t.Run(site.String(), func(t *testing.T) {
		r := &round{world: f.world, t: t, watcher: scene.Watch(t, f.cluster), began: time.Now()}
		r.play(fmt.Sprintf("f%02d", f.rounds), f.proxy, site, f.leader, standby)
	})
	f.rounds++
	f.leader = standby
}

// written are the writes of every gang that nothing happens to: what each of some gangs made, counted in its namespace. One
// alone may have repeated a write, or said what it waits for.
func (f *frost) written(t *testing.T) []faults.Site {
	t.Helper()
	gangs := make([]*gang, len(ways))
	for i := range gangs {
		gangs[i] = f.newGang(fmt.Sprintf("written-%d", i), lane(i), wholeClass, gangSize)
		must(t, gangs[i].prepare(t.Context()))
		must(t, gangs[i].submit(t.Context()))
	}
	for _, g := range gangs {
		must(t, await(t.Context(), "running a gang", g.finished))
	}
	var sites []faults.Site
	for i, g := range gangs {
		must(t, g.remove(t.Context()))
		own := f.writtenIn(g.namespace)
		if i == 0 {
			sites = own
		}
		sites = slices.DeleteFunc(sites, func(s faults.Site) bool { return !slices.Contains(own, s) })
	}
	return sites
}

func (f *frost) writtenIn(namespace string) []faults.Site {
	count := map[string]int{}
	var sites []faults.Site
	for _, write := range f.proxy.Writes() {
		if write.Namespace == namespace {
			count[write.Class()]++
			site := write.Site
			site.N = count[write.Class()]
			sites = append(sites, site)
		}
	}
	return sites
}
