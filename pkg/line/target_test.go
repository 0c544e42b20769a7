package line_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// says holds what a waiting gang was told against what is expected.
func (s *site) says(t *testing.T, name, want string) {
	t.Helper()
	if got := s.refused(name); got != want {
		t.Errorf("minute %d: %s is told\n     %s\nwant %s", s.minute, name, got, want)
	}
}

func TestSmallGangsKeepOutOfATarget(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4")
	s.passes(t, "a on tpu-4x4-0")
	s.minute = 1
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.minute = 2
	s.comes("b", "tpu-4x4")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.says(t, "b", "WaitingTurn: what is free is kept for ml/big")
	s.ends("a")
	s.passes(t, "big on tpu-8x8-0; b waits for pod/tpu-4x4-0: drains when ml/big ends")
	s.ends("big")
	s.passes(t, "b on tpu-4x4-0")
}

func TestWithoutTargetsWhoeverFitsGoesFirst(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4")
	s.pass()
	s.comes("big", "tpu-8x8", func(e *line.Entry) { e.NoTarget = true })
	s.comes("b", "tpu-4x4")
	s.passes(t, "b on tpu-4x4-4")
}

func TestWhoEndsInTimeIsLetIn(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4", runs(60))
	s.passes(t, "a on tpu-4x4-0")
	s.comes("big", "tpu-8x8")
	s.comes("late", "tpu-4x4", runs(61))
	s.comes("unknown", "tpu-4x4")
	s.comes("early", "tpu-4x4", runs(60))
	s.passes(t, "early on tpu-4x4-4; big waits for pod/tpu-8x8-0: drains when ml/a, ml/early end by 09:00")
	s.minute = 1
	s.comes("second", "tpu-4x4", runs(60))
	s.comes("third", "tpu-4x4", runs(59))
	s.passes(t, "third on tpu-4x4-8; big waits for pod/tpu-8x8-0: drains when ml/a, ml/early, ml/third end by 09:00")
}

// Nobody is let in for ending soon while nobody knows when the target is due.
func TestNobodyIsLetInWhereTheEndIsUnknown(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4")
	s.comes("b", "tpu-4x4", runs(60))
	s.pass()
	s.comes("big", "tpu-8x8")
	s.comes("short", "tpu-4x4", runs(1))
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/b, ml/a end")
	s.ends("a")
	s.passes(t, "short on tpu-4x4-0; big waits for pod/tpu-8x8-0: drains when ml/short, ml/b end by 09:00")
}

func TestLentAndRecalled(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4")
	s.pass()
	s.comes("big", "tpu-8x8", priority(5), lending)
	s.pass()
	s.comes("equal", "tpu-4x4", priority(5), queue("other"))
	s.comes("low", "tpu-4x4", priority(4))
	s.passes(t, "low on tpu-4x4-4 (lent); big waits for pod/tpu-8x8-0: drains when ml/low, ml/a end")
	s.says(t, "equal", "WaitingTurn: what is free is kept for ml/big")
	s.ends("a")
	s.comes("too late", "tpu-4x4")
	// By now all that is in the way may be recalled, so nobody else is let in.
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/low ends by 08:00; recall ml/low for big")
	s.says(t, "too late", "WaitingTurn: what is free is kept for ml/big")
	s.ends("low")
	s.passes(t, "big on tpu-8x8-0; equal waits for pod/tpu-4x4-0: drains when ml/big ends; too late waits for pod/tpu-4x4-4: drains when ml/big ends")
}

// A gang that leaves each of two targets enough, but not both, is not let in: it would be in the way of neither, and so
// never be recalled.
func TestNobodyIsLetInBetweenTargets(t *testing.T) {
	site := worlds.GPURacks(1, 1, 3)
	site.Hosts[0].Allocatable["cpu"] = 96_000
	site.Classes = map[string][]inventory.DeviceName{}
	for _, gpu := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		site.Classes[gpu] = []inventory.DeviceName{{Pool: inventory.PoolID{Driver: worlds.Driver, Name: "r0-n0"}, Name: gpu}}
	}
	cores := func(n int64) option { return pods(func(ps *gang.PodSet) { ps.Requests["cpu"] = n * 1000 }) }
	s := newSite(site)
	s.comes("a", "gpu-0", cores(20))
	s.comes("b", "gpu-1", cores(20))
	s.passes(t, "a on gpu-0; b on gpu-1")
	s.comes("x1", "gpu-0", cores(40), queue("x"), priority(5), lending)
	s.comes("y1", "gpu-1", cores(40), queue("y"), priority(5), lending)
	s.passes(t, "x1 waits for r0-n0/gpu-0: drains when ml/a ends; y1 waits for r0-n0/gpu-1: drains when ml/b ends")
	s.comes("low", "gpu-2", cores(30), queue("z"), since(1))
	s.passes(t, "x1 waits for r0-n0/gpu-0: drains when ml/a ends; y1 waits for r0-n0/gpu-1: drains when ml/b ends")
	s.says(t, "low", "WaitingTurn: what is free is kept for ml/x1, ml/y1")
	s.ends("a")
	// Now it is in the way of one.
	s.passes(t, "x1 on gpu-0; low on gpu-2 (lent); y1 waits for r0-n0/gpu-1: drains when ml/low, ml/b end")
	s.ends("b")
	s.passes(t, "y1 waits for r0-n0/gpu-1: drains when ml/low ends by 08:00; recall ml/low for y1")
}

// Who got its devices otherwise is not recalled, nor is who was lent something for a gang of no higher priority.
func TestOnlyWhatIsLentIsRecalled(t *testing.T) {
	s := kep()
	s.comes("low", "tpu-4x4", priority(-5))
	s.pass()
	s.comes("big", "tpu-8x8", lending)
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/low ends")
	s.running[0].Lent, s.running[0].Priority = true, 0
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/low ends")
	s.running[0].Priority = -1
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/low ends by 08:00; recall ml/low for big")
}

// The set that drains soonest: by the known ends, fewest unknown ones, and last where something foreign is.
func TestSoonest(t *testing.T) {
	for _, row := range []struct {
		name    string
		running map[string]option // by device of the second and third pool
		foreign string
		want    string
	}{
		{"the earliest known end", map[string]option{"pool-0": runs(50), "pool-1": runs(40), "pool-2": runs(60)}, "",
			"big waits for pool-1/tpu-8x8-0: drains when ml/pool-1 ends by 08:40"},
		{"an unknown end after all known ones", map[string]option{"pool-0": runs(0), "pool-1": runs(900), "pool-2": runs(0)}, "",
			"big waits for pool-1/tpu-8x8-0: drains when ml/pool-1 ends by 23:00"},
		{"equal ones by name", map[string]option{"pool-0": runs(50), "pool-1": runs(50), "pool-2": runs(50)}, "",
			"big waits for pool-0/tpu-8x8-0: drains when ml/pool-0 ends by 08:50"},
		{"not where something foreign is", map[string]option{"pool-0": runs(50), "pool-1": runs(40), "pool-2": runs(60)}, "pool-1",
			"big waits for pool-0/tpu-8x8-0: drains when ml/pool-0 ends by 08:50"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(worlds.Times(3, worlds.KEP8x8))
			for _, pool := range []string{"pool-0", "pool-1", "pool-2"} {
				s.comes(pool, "tpu-4x8", row.running[pool], on(s, pool))
			}
			s.pass()
			if row.foreign != "" {
				s.foreign = func(l *ledger.Ledger) { l.Take(stranger(row.foreign, "tpu-2x2-15")) }
			}
			s.comes("big", "tpu-8x8")
			s.passes(t, row.want)
		})
	}
}

// on rules out the hosts of all other pools.
func on(s *site, pool string) option {
	return pods(func(ps *gang.PodSet) {
		ps.Ineligible = map[string]string{}
		for _, p := range s.inv.Pools() {
			if p.ID.Name != pool {
				for _, h := range p.Plan().Hosts() {
					ps.Ineligible[h] = "is elsewhere"
				}
			}
		}
	})
}

// stranger holds a device that is no gang's.
func stranger(pool, device string) ledger.Holding {
	return ledger.Holding{Owner: "x/stranger", Pool: inventory.PoolID{Driver: worlds.Driver, Name: pool}, Device: device}
}

// Two gangs whose ends are unknown are worse than one, however long the one has run.
func TestFewestUnknownEnds(t *testing.T) {
	s := newSite(worlds.Times(2, worlds.KEP8x8))
	s.comes("a", "tpu-4x4", on(s, "pool-0"))
	s.comes("b", "tpu-4x4", on(s, "pool-0"))
	s.minute = 9
	s.comes("c", "tpu-4x8", on(s, "pool-1"))
	s.pass()
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pool-1/tpu-8x8-0: drains when ml/c ends")
}

// While something foreign is in the way of all that would do, nothing is kept: nobody knows for how long it would be.
func TestOpenTarget(t *testing.T) {
	s := kep()
	s.foreign = func(l *ledger.Ledger) { l.Take(stranger("pod", "tpu-2x2-0")) }
	s.comes("big", "tpu-8x8")
	s.comes("a", "tpu-4x4")
	s.passes(t, "a on tpu-4x4-4; big waits for pod/tpu-8x8-0, which is kept for it once only gangs are in the way: ml/a, x/stranger")
	s.foreign = func(*ledger.Ledger) {}
	s.minute = 1
	s.comes("b", "tpu-4x4")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.says(t, "b", "WaitingTurn: what is free is kept for ml/big")
}

// Pods of nobody's that fill a host are in the way like a claim that is.
func TestOpenForAPod(t *testing.T) {
	s := kep()
	s.foreign = func(l *ledger.Ledger) { l.Use("pod-h3", "kube-system/agent", map[string]int64{"cpu": 8000}) }
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pod/tpu-8x8-0, which is kept for it once only gangs are in the way: pod kube-system/agent")
}

// A target stays where it is although something better comes up, and goes where its hardware goes.
func TestTargetStays(t *testing.T) {
	s := newSite(worlds.Times(2, worlds.KEP8x8))
	s.comes("a", "tpu-4x4", runs(50), on(s, "pool-0"))
	s.comes("b", "tpu-4x4", runs(60), on(s, "pool-1"))
	s.comes("c", "tpu-4x4", runs(70), on(s, "pool-1"))
	s.pass()
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pool-0/tpu-8x8-0: drains when ml/a ends by 08:50")
	s.ends("c")
	s.running[1].Ends = s.now() // b is almost done
	s.passes(t, "big waits for pool-0/tpu-8x8-0: drains when ml/a ends by 08:50")

	s.foreign = func(l *ledger.Ledger) {
		l.Quarantine(inventory.PoolID{Driver: worlds.Driver, Name: "pool-0"}, "pool-0-h9")
	}
	s.passes(t, "big waits for pool-1/tpu-8x8-0: drains when ml/b ends by 08:00")
}

func TestTargetMovesFromWhatMayNeverEnd(t *testing.T) {
	s := newSite(worlds.Times(2, worlds.KEP8x8))
	s.comes("a", "tpu-4x4", runs(50), on(s, "pool-0"))
	s.comes("b", "tpu-4x4", on(s, "pool-1"))
	s.pass()
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pool-0/tpu-8x8-0: drains when ml/a ends by 08:50")
	s.minute = 65 // a should have ended a quarter of an hour ago
	s.passes(t, "big waits for pool-0/tpu-8x8-0: drains when ml/a ends by 08:50")
	s.minute = 66
	s.passes(t, "big waits for pool-1/tpu-8x8-0: drains when ml/b ends")
	s.foreign = func(l *ledger.Ledger) { l.Take(stranger("pool-1", "tpu-2x2-15")) }
	s.ends("a")
	s.comes("c", "tpu-4x4", on(s, "pool-0"))
	s.passes(t, "big on tpu-8x8-0; c waits for pool-0/tpu-4x4-0: drains when ml/big ends")
}

// One target for each queue, and not on the same devices; what several wait for goes to who stands in line for longest.
func TestTargetsOfSeveralQueues(t *testing.T) {
	s := newSite(worlds.Times(2, worlds.KEP8x8))
	for _, pool := range []string{"pool-0", "pool-1"} {
		s.comes(pool, "tpu-4x4", on(s, pool), queue("x"))
	}
	s.pass()
	s.comes("x1", "tpu-8x8", queue("x"), since(5))
	s.comes("x2", "tpu-8x8", queue("x"), since(6))
	s.comes("y1", "tpu-8x8", queue("y"), since(7))
	s.comes("z1", "tpu-8x8", queue("z"), since(4))
	s.passes(t, "z1 waits for pool-0/tpu-8x8-0: drains when ml/pool-0 ends; x1 waits for pool-1/tpu-8x8-0: drains when ml/pool-1 ends")
	s.ends("pool-1")
	// y1 comes first by fair share and x2 is next in its queue, but x1 has waited.
	s.passes(t, "x1 on tpu-8x8-0; z1 waits for pool-0/tpu-8x8-0: drains when ml/pool-0 ends; x2 waits for pool-1/tpu-8x8-0: drains when ml/x1 ends")
}

// An older gang takes what is kept for a younger one of another queue when it finds nothing beside it.
func TestAnOlderGangIsNotOvertaken(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x8", queue("x"))
	s.comes("b", "tpu-4x8", queue("x"))
	s.pass()
	s.comes("young", "tpu-4x8", queue("y"), since(9))
	s.passes(t, "young waits for pod/tpu-4x8-0: drains when ml/a ends")
	s.comes("old", "tpu-8x8", queue("x"), since(8))
	s.passes(t, "old waits for pod/tpu-8x8-0: drains when ml/a, ml/b end")
	s.ends("a")
	s.passes(t, "old waits for pod/tpu-8x8-0: drains when ml/b ends")
	s.ends("b")
	s.passes(t, "old on tpu-8x8-0; young waits for pod/tpu-4x8-0: drains when ml/old ends")
}

// That a younger gang of another queue finds no target says nothing of an older one that wants the same, wherever it stands.
func TestAnOlderGangFindsWhatAYoungerDoesNot(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-8x8", queue("x"))
	s.pass()
	s.comes("middle", "tpu-8x8", queue("y"), since(60))
	s.passes(t, "middle waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.comes("young", "tpu-8x8", queue("z"), since(90))
	s.comes("never", "tpu-8x8", queue("x"), since(10), pods(func(ps *gang.PodSet) { ps.Count, ps.Slices = 32, 2 }))
	s.comes("old", "tpu-8x8", queue("x"), since(30))
	for range 3 {
		s.passes(t, "old waits for pod/tpu-8x8-0: drains when ml/a ends")
	}
}

// a comes before b in its queue, b stands in line for longer than c, and c for longer than a: the target stays where it is.
func TestTargetsDoNotGoRoundInACircle(t *testing.T) {
	s := kep()
	s.comes("runs", "tpu-8x8", queue("z"))
	s.pass()
	s.comes("c", "tpu-8x8", queue("y"), since(60))
	s.comes("a", "tpu-8x8", queue("x"), since(90), priority(1))
	s.comes("b", "tpu-8x8", queue("x"), since(30), pods(func(ps *gang.PodSet) { ps.Requests["cpu"] = 1001 }))
	for range 3 {
		s.passes(t, "c waits for pod/tpu-8x8-0: drains when ml/runs ends")
	}
	s.goes("a")
	for range 3 {
		s.passes(t, "b waits for pod/tpu-8x8-0: drains when ml/runs ends")
	}
}

// A gang that comes before another in its queue takes its place.
func TestWhoComesFirstHasTheTarget(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x8")
	s.pass()
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.comes("urgent", "tpu-8x8", priority(1))
	s.passes(t, "urgent waits for pod/tpu-8x8-0: drains when ml/a ends")
	// What is kept for big was never kept from who comes before it.
	s.goes("urgent")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.comes("quick", "tpu-4x4", priority(1))
	s.passes(t, "quick on tpu-4x4-8; big waits for pod/tpu-8x8-0: drains when ml/a, ml/quick end")
}

// A gang that nothing could serve has no target, and does not keep the next one from having one.
func TestTheHopelessHaveNoTarget(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x8")
	s.pass()
	s.comes("never", "tpu-8x8", pods(func(ps *gang.PodSet) { ps.Count, ps.Slices = 32, 2 }))
	s.comes("too large", "tpu-8x8", pods(func(ps *gang.PodSet) { ps.Requests["cpu"] = 9000 }))
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.says(t, "never", "NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by ml/a")
}

// Several slices, which only the placer can choose.
func TestTargetOfSeveralSlices(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4", runs(10))
	s.comes("b", "tpu-4x4", runs(20))
	s.comes("c", "tpu-4x4", runs(30))
	s.passes(t, "a on tpu-4x4-0; b on tpu-4x4-4; c on tpu-4x4-8")
	s.comes("both", "tpu-4x8", pods(func(ps *gang.PodSet) { ps.Count, ps.Slices = 16, 2 }))
	s.passes(t, "both waits for pod/tpu-4x8-0, pod/tpu-4x8-8: drains when ml/a, ml/b, ml/c end by 08:30")
	s.comes("pair", "tpu-4x4", queue("other"), pods(func(ps *gang.PodSet) { ps.Count, ps.Slices = 8, 2 }))
	s.goes("both")
	s.passes(t, "pair waits for pod/tpu-4x4-0, pod/tpu-4x4-12: drains when ml/a ends by 08:10")
}

// Devices that have to stand in one rack are no target any more when one of them turns out to stand in another.
func TestTargetInOneRack(t *testing.T) {
	site := worlds.GPURacks(2, 2, 1)
	s := newSite(site)
	two := pods(func(ps *gang.PodSet) { ps.Count, ps.Interconnect = 2, gang.Required })
	s.comes("a", "gpu", two, runs(10))
	s.comes("b", "gpu", two, runs(20))
	s.pass()
	s.comes("big", "gpu", two)
	s.passes(t, "big waits for r0-n0/gpu-0, r0-n1/gpu-0: drains when ml/a ends by 08:10")
	s.inv = site.Tie("example.com/rack", func(d *inventory.Device) string {
		return map[string]string{"r0-n0": "rack-0", "r0-n1": "rack-2", "r1-n0": "rack-1", "r1-n1": "rack-1"}[d.Pool.Name]
	}).Inventory()
	s.passes(t, "big waits for r1-n0/gpu-0, r1-n1/gpu-0: drains when ml/b ends by 08:20")
}

// A barred pool is nobody's target.
func TestBarredPools(t *testing.T) {
	s := newSite(worlds.Times(2, worlds.KEP8x8))
	s.comes("a", "tpu-4x4", runs(10), on(s, "pool-0"))
	s.comes("b", "tpu-4x4", runs(20), on(s, "pool-1"))
	s.pass()
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pool-0/tpu-8x8-0: drains when ml/a ends by 08:10")
	s.barred = "pool-0"
	s.passes(t, "big waits for pool-1/tpu-8x8-0: drains when ml/b ends by 08:20")
}
