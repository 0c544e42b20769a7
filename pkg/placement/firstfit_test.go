package placement_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// site is hardware under construction. Hosts have 8 cpu and 64Gi.
type site struct {
	hosts   []inventory.Host
	pools   map[string]*inventory.Published
	classes map[string][]inventory.DeviceName
	more    []inventory.ClassMatch
	broken  map[string]bool
	change  func(*ledger.Ledger)
}

func newSite(hosts ...string) *site {
	s := &site{pools: map[string]*inventory.Published{}, classes: map[string][]inventory.DeviceName{}, broken: map[string]bool{}}
	for _, h := range hosts {
		s.hosts = append(s.hosts, inventory.Host{Name: h, Hostname: h, Rank: h, Allocatable: map[string]int64{"cpu": 8000, "memory": 64 << 30 * 1000, "pods": 10_000}})
	}
	return s
}

// device adds pool/name to a class; each counter is written set/counter=milli and total 4000.
func (s *site) device(class, name string, hosts []string, charge ...string) *site {
	pool, dev, _ := strings.Cut(name, "/")
	p := s.pools[pool]
	if p == nil {
		p = &inventory.Published{Name: "slice-" + pool, Pool: inventory.PoolID{Driver: "d", Name: pool}, Generation: 1, SliceCount: 1}
		s.pools[pool] = p
	}
	d := inventory.PublishedDevice{Device: inventory.Device{Name: dev, Hosts: hosts}}
	for _, c := range charge {
		d.Consumes = append(d.Consumes, inventory.Charge{CounterSet: "cs", Counter: c, Milli: 4000})
	}
	p.Devices = append(p.Devices, d)
	s.classes[class] = append(s.classes[class], inventory.DeviceName{Pool: p.Pool, Name: dev})
	return s
}

func (s *site) world() placement.World {
	in := inventory.Input{Hosts: s.hosts, Classes: s.more}
	for name, p := range s.pools {
		counters := inventory.Published{Name: "counters-" + name, Pool: p.Pool, Generation: p.Generation, SliceCount: p.SliceCount}
		set := inventory.CounterSet{Name: "cs"}
		seen := map[string]bool{}
		for _, d := range p.Devices {
			for _, c := range d.Consumes {
				if !seen[c.Counter] {
					seen[c.Counter] = true
					set.Counters = append(set.Counters, inventory.Counter{Set: "cs", Name: c.Counter, Milli: 4000})
				}
			}
		}
		all := []inventory.Published{*p}
		if len(set.Counters) > 0 {
			counters.CounterSets = []inventory.CounterSet{set}
			all = append(all, counters)
		}
		count := int64(len(all))
		if s.broken[name] {
			count++
		}
		for i := range all {
			all[i].SliceCount = count
		}
		in.Pools = append(in.Pools, inventory.NewPool(p.Pool, all))
	}
	for name, devices := range s.classes {
		in.Classes = append(in.Classes, inventory.ClassMatch{Name: name, Devices: devices})
	}
	inv := inventory.Build(in)
	l := ledger.New(inv)
	if s.change != nil {
		s.change(l)
	}
	return placement.World{Inventory: inv, Ledger: l}
}

func (s *site) with(change func(*ledger.Ledger)) *site { s.change = change; return s }

func set(count int, claims ...gang.Claim) gang.PodSet {
	return gang.PodSet{Name: "main", Count: count, Claims: claims, Requests: map[string]int64{"cpu": 4000, "pods": 1000}}
}

func claim(name string, requests ...gang.Request) gang.Claim {
	return gang.Claim{PodClaim: name, Requests: requests}
}

func one(class string) gang.Request { return gang.Request{Name: "r", Class: class, Count: 1} }

func tpu(count int) gang.Gang {
	return gang.Gang{PodSets: []gang.PodSet{set(count, claim("tpu", one("tpu-4x4")))}}
}

// four 4x4 slices of 2 hosts in two halves of one 8x8 slice of 8 hosts.
func nested() *site {
	var hosts []string
	for i := range 8 {
		hosts = append(hosts, fmt.Sprint("node-", i))
	}
	s := newSite(hosts...)
	for i := range 4 {
		s.device("tpu-4x4", fmt.Sprint("pod-a/s-", i), hosts[2*i:2*i+2], fmt.Sprint("h", 2*i), fmt.Sprint("h", 2*i+1))
	}
	return s.device("tpu-8x8", "pod-a/all", hosts, "h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7")
}

func hold(owner, device string) ledger.Holding {
	return ledger.Holding{Owner: owner, Pool: inventory.PoolID{Driver: "d", Name: "pod-a"}, Device: device}
}

func blockHost(s *site, name string, code reason.Code, detail string) *site {
	for i := range s.hosts {
		if s.hosts[i].Name == name {
			s.hosts[i].Blocked = &reason.Evidence{Kind: "host", Name: name, Code: code, Detail: detail}
		}
	}
	return s
}

// chips has two hosts: a pair over both and a chip of each, which are the same hardware.
func chips() *site {
	return newSite("n0", "n1").device("pair", "p/pair", []string{"n0", "n1"}, "c0", "c1").
		device("chip", "p/chip-0", []string{"n0"}, "c0").device("chip", "p/chip-1", []string{"n1"}, "c1")
}

// needs sets how many cores each pod of a gang asks for.
func needs(g gang.Gang, cores int64) gang.Gang {
	for i := range g.PodSets {
		g.PodSets[i].Requests = map[string]int64{"cpu": cores * 1000}
	}
	return g
}

func TestRefusals(t *testing.T) {
	gpus := func() *site {
		return newSite("n1", "n2").device("gpu", "n1/g0", []string{"n1"}).device("gpu", "n1/g1", []string{"n1"}).device("gpu", "n2/g0", []string{"n2"})
	}
	slicesOf := func(g gang.Gang, k int) gang.Gang { g.PodSets[0].Slices = k; return g }
	gpuGang := func(pods, count int) gang.Gang {
		return gang.Gang{PodSets: []gang.PodSet{set(pods, claim("gpu", gang.Request{Name: "r", Class: "gpu", Count: count}))}}
	}
	tests := map[string]struct {
		site *site
		gang gang.Gang
		want string
	}{
		"not divisible": {nested(), tpu(5), "NotDivisible: 5 pods cannot fill slices of 2 hosts (tpu-4x4)"},
		"one pod":       {nested(), tpu(1), "NotDivisible: 1 pod cannot fill slices of 2 hosts (tpu-4x4)"},
		"more slices": {nested(), tpu(8), `CountMismatch: 8 pods need 4 slices of 2 hosts (tpu-4x4): ` +
			`ask for a larger slice or set the annotation berth.dev/slices: "4" on the pod template of the Job`},
		"wrong slices": {nested(), slicesOf(tpu(8), 2), "CountMismatch: 8 pods need 4 slices of 2 hosts (tpu-4x4), and the annotation berth.dev/slices asks for 2"},
		"no pods":      {nested(), tpu(0), "CountMismatch: there are 0 pods to place, at least 1 is needed"},
		"no devices":   {gpus(), gpuGang(1, 0), "Unsupported: claim gpu, request r asks for 0 devices, at least 1 is needed"},
		"too many":     {gpus(), gpuGang(1, 33), "Unsupported: claim gpu asks for more than the 32 devices that a ResourceClaim can hold"},
		"count of large": {nested(), gang.Gang{PodSets: []gang.PodSet{set(2, claim("tpu", gang.Request{Name: "r", Class: "tpu-4x4", Count: 2}))}},
			"Unsupported: claim tpu, request r asks for 2 devices of tpu-4x4, which span several hosts: a claim can hold one of them"},
		"no class": {gpus(), tpu(2), "ShapeUnknown: there is no DeviceClass tpu-4x4"},
		"held and no room": {nested().with(func(l *ledger.Ledger) {
			l.Take(hold("ml/berth.a-0", "s-0"))
			l.Take(hold("ml/berth.b-0", "s-1"))
			l.Take(hold("ml/berth.a-0", "s-2"))
			l.Use("node-7", "ml/x", map[string]int64{"cpu": 3000})
			l.Use("node-7", "ml/y", map[string]int64{"cpu": 4000})
		}), tpu(2), "NoFreeSlice: no tpu-4x4 is free: 3 of 4 are held by ml/berth.a-0, ml/berth.b-0; 1 has no room: " +
			"host node-7 needs 4 cpu, has 1 (pods ml/y, ml/x)"},
		"held by the whole": {nested().with(func(l *ledger.Ledger) { l.Take(hold("x/big", "all")) }), tpu(2), "NoFreeSlice: no tpu-4x4 is free: 4 of 4 are held by x/big"},
		"some free":         {nested().with(func(l *ledger.Ledger) { l.Take(hold("x/one", "s-3")) }), slicesOf(tpu(8), 4), "NoFreeSlice: 4 tpu-4x4 are needed and only 3 are free: 1 of 4 is held by x/one"},
		"never so many":     {nested(), slicesOf(tpu(10), 5), "NoFreeSlice: 5 tpu-4x4 are needed and only 4 exist"},
		"vanished": {nested().with(func(l *ledger.Ledger) {
			h := hold("x/gone", "old")
			h.Hosts = []string{"node-0", "node-3", "node-4", "node-6"}
			l.Take(h)
		}), tpu(2), "NoFreeSlice: no tpu-4x4 is free: 4 of 4 are held by x/gone"},
		"hosts": {blockHost(blockHost(blockHost(nested(), "node-0", reason.HostMissing, "does not exist"), "node-2", reason.HostUnusable, "is cordoned"), "node-6", reason.HostUnusable, "is not Ready").
			with(func(l *ledger.Ledger) { l.Take(hold("x/one", "s-2")) }), tpu(2),
			"NoFreeSlice: no tpu-4x4 is free: 1 of 4 is held by x/one; 2 are out of use: host node-2 is cordoned, host node-6 is not Ready; 1 is out of use: host node-0 does not exist"},
		"hosts alike": {blockHost(blockHost(blockHost(nested(), "node-0", reason.HostUnusable, "is cordoned"), "node-2", reason.HostUnusable, "is cordoned"), "node-4", reason.HostUnusable, "is not Ready").
			with(func(l *ledger.Ledger) { l.Take(hold("x/one", "s-3")) }), tpu(2),
			"NoFreeSlice: no tpu-4x4 is free: 1 of 4 is held by x/one; 3 are out of use: hosts node-0, node-2 (each is cordoned), host node-4 is not Ready"},
		"companions apart": {newSite("n1", "n3").device("gpu", "n1/g", []string{"n1"}).device("nic", "nics/a", []string{"n3"}), gang.Gang{PodSets: []gang.PodSet{set(1, claim("gpu", one("gpu")), claim("nic", one("nic")))}},
			"HostSetsDiffer: no nic stands on the hosts of a gpu: the devices of one pod must share its host"},
		"two of one shape": {nested(), gang.Gang{PodSets: []gang.PodSet{set(2, claim("a", one("tpu-4x4")), claim("b", one("tpu-4x4")))}},
			"HostSetsDiffer: claim a (tpu-4x4) and claim b (tpu-4x4) exclude each other: no set of hosts offers a pod both, even with nothing taken"},
		"two of one shape in a claim": {nested(), gang.Gang{PodSets: []gang.PodSet{set(2, claim("a", gang.Request{Name: "r", Class: "tpu-4x4", Count: 1}, gang.Request{Name: "q", Class: "tpu-4x4", Count: 1}))}},
			"HostSetsDiffer: claim a, request r (tpu-4x4) and claim a, request q (tpu-4x4) exclude each other: no set of hosts offers a pod both, even with nothing taken"},
		"a part beside the whole": {chips(), gang.Gang{PodSets: []gang.PodSet{set(2, claim("a", one("pair")), claim("b", one("chip")))}},
			"HostSetsDiffer: claim a (pair) and claim b (chip) exclude each other: no set of hosts offers a pod both, even with nothing taken"},
		"two parts of one host": {chips(), gang.Gang{PodSets: []gang.PodSet{set(1, claim("a", one("chip")), claim("b", one("chip")))}},
			"HostSetsDiffer: claim a (chip) and claim b (chip) exclude each other: no host offers a pod both, even with nothing taken"},
		"a part and the whole in a claim": {chips(), gang.Gang{PodSets: []gang.PodSet{set(2, claim("a", one("pair"), gang.Request{Name: "q", Class: "chip", Count: 1}))}},
			"Unsupported: claim a asks for pair of 2 hosts and chip of 1 host: the devices of one claim must stand on the same hosts"},
		"too small": {nested(), needs(tpu(2), 1000), "HostUnusable: no tpu-4x4 is free: 4 of 4 are on hosts that the pods may not use: " +
			"hosts node-0, node-1, node-2, node-3, node-4 and 3 more (each has 8 cpu in all, a pod needs 1000)"},
		"too small and taken": {nested().with(func(l *ledger.Ledger) { l.Take(hold("x/big", "all")) }), needs(tpu(2), 9), "HostUnusable: no tpu-4x4 is free: 4 of 4 are on hosts that the pods may not use: " +
			"hosts node-0, node-1, node-2, node-3, node-4 and 3 more (each has 8 cpu in all, a pod needs 9)"},
		"free but not together": {gpus(), gpuGang(1, 3), "NoFreeSlice: devices are free, but not together: 0 pods find all their devices on one host, 1 is needed (gpu)"},
		"two claims of one class": {newSite("n1", "n2").device("gpu", "n1/a", []string{"n1"}).device("gpu", "n2/a", []string{"n2"}).device("gpu", "n2/b", []string{"n2"}),
			gang.Gang{PodSets: []gang.PodSet{set(2, claim("a", one("gpu")), claim("b", one("gpu")))}},
			"NoFreeSlice: devices are free, but not together: 1 pod finds all its devices on one host, 2 are needed (gpu, gpu)"},
		"two claims of one class, apart": {newSite("n1", "n2").device("gpu", "n1/a", []string{"n1"}).device("gpu", "n2/a", []string{"n2"}).device("gpu", "n2/b", []string{"n2"}).
			with(func(l *ledger.Ledger) {
				l.Take(ledger.Holding{Owner: "x/one", Pool: inventory.PoolID{Driver: "d", Name: "n2"}, Device: "b"})
			}),
			gang.Gang{PodSets: []gang.PodSet{set(1, claim("a", one("gpu")), claim("b", one("gpu")))}},
			"NoFreeSlice: devices are free, but not together: 0 pods find all their devices on one host, 1 is needed (gpu, gpu)"},
		"two claims of one class beside a slice": {newSite("n1", "n2", "n3").device("pair", "pod-a/p", []string{"n1", "n2"}).device("nic", "n1/a", []string{"n1"}).device("nic", "n2/a", []string{"n2"}).
			device("nic", "n3/a", []string{"n3"}).device("nic", "n3/b", []string{"n3"}),
			gang.Gang{PodSets: []gang.PodSet{set(2, claim("t", one("pair")), claim("a", one("nic")), claim("b", one("nic")))}},
			"NoFreeSlice: devices are free, but not together: needs 1 of 1 free pair, needs 4 of 4 free nic"},
		"pods on one host": {newSite("n1").device("gpu", "n1/a", []string{"n1"}).device("gpu", "n1/b", []string{"n1"}).device("gpu", "n1/c", []string{"n1"}), gpuGang(3, 1),
			"HostsBusy: 2 pods find a device and room, 3 are needed: host n1 needs 12 cpu, has 8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := placement.FirstFit{}.Place(test.gang, test.site.world())
			if d.Fits() {
				t.Fatalf("fits: %+v", d.PodSets)
			}
			if got := d.Refusal.Error(); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if !d.Proved {
				t.Error("not proved")
			}
		})
	}
}

func TestTooManyPods(t *testing.T) { // Scenario 20.
	var hosts []string
	for i := range 300 {
		hosts = append(hosts, fmt.Sprint("n", i))
	}
	d := placement.FirstFit{}.Place(tpu(300), newSite(hosts...).device("tpu-4x4", "p/all", hosts).world())
	if want := "TooManyPods: 300 pods would share one ResourceClaim of tpu-4x4, at most 255 can"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
}

// What a Job may ask for is bounded by a 32-bit number only. It is answered without building anything of that size.
func TestMorePodsThanThereIsMemoryFor(t *testing.T) {
	w := newSite("n0", "n1").device("gpu", "p/0", []string{"n0"}).device("gpu", "p/1", []string{"n1"}).world()
	for name, placer := range map[string]placement.Placer{"first fit": placement.FirstFit{}, "scored": placement.NewScored(0)} {
		g := tpu(math.MaxInt32)
		g.PodSets[0].Claims[0].Requests[0].Class = "gpu"
		d := placer.Place(g, w)
		if want := "NoFreeSlice: 2147483647 gpu are needed and only 2 exist"; d.Fits() || d.Refusal.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, d.Refusal, want)
		}
	}
}

func TestWithheldPools(t *testing.T) { // Scenarios 6 and 8: one bad pool does not hide the others.
	s := newSite("n1", "n2").device("gpu", "a/g", []string{"n1"}).device("gpu", "b/g", []string{"n2"})
	s.broken["a"] = true
	g := gang.Gang{PodSets: []gang.PodSet{set(1, claim("gpu", one("gpu")))}}
	d := placement.FirstFit{}.Place(g, s.world())
	if !d.Fits() || d.PodSets[0].Hosts[0] != "n2" {
		t.Errorf("%+v", d)
	}
	g.PodSets[0].Count = 2
	d = placement.FirstFit{}.Place(g, s.world())
	if want := "PoolIncomplete: 2 gpu are needed and only 1 is free: pool d/a: 1 of 2 slices of generation 1 are published"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
	s.broken["b"] = true
	d = placement.FirstFit{}.Place(g, s.world())
	if want := "PoolIncomplete: no gpu can be given out: pool d/a: 1 of 2 slices of generation 1 are published"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
}

func TestTaintsAndTolerations(t *testing.T) { // Scenario 10.
	s := nested()
	s.pools["pod-a"].Devices[1].Taints = []inventory.Taint{{Key: "ecc", Value: "bad", Effect: "NoExecute"}}
	g := gang.Gang{PodSets: []gang.PodSet{set(8, claim("tpu", one("tpu-8x8")))}}
	d := placement.FirstFit{}.Place(g, s.world())
	if want := "DeviceTainted: no tpu-8x8 is free: 1 of 1 is tainted: pod-a/all ecc=bad:NoExecute"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
	for _, tol := range []gang.Toleration{{Exists: true}, {Key: "ecc", Value: "bad"}, {Key: "ecc", Exists: true, Effect: "NoExecute"}} {
		g.PodSets[0].Claims[0].Requests[0].Tolerations = []gang.Toleration{tol}
		if d := (placement.FirstFit{}).Place(g, s.world()); !d.Fits() {
			t.Errorf("%+v: %v", tol, d.Refusal)
		}
	}
	for _, tol := range []gang.Toleration{{Key: "ecc", Value: "good"}, {Key: "other", Exists: true}, {Exists: true, Effect: "NoSchedule"}} {
		g.PodSets[0].Claims[0].Requests[0].Tolerations = []gang.Toleration{tol}
		if d := (placement.FirstFit{}).Place(g, s.world()); d.Fits() {
			t.Errorf("%+v tolerates", tol)
		}
	}
	g = tpu(2)
	g.PodSets[0].Slices = 1
	if d := (placement.FirstFit{}).Place(g, s.world()); !d.Fits() || d.PodSets[0].Claims[0].Instances[0].Devices[0].Name != "s-0" {
		t.Error("a healthy part is not offered")
	}
}

func TestIneligibleHosts(t *testing.T) { // Scenario 27.
	g := tpu(2)
	g.PodSets[0].Ineligible = map[string]string{"node-0": "has the taint a:NoSchedule, which the pods do not tolerate", "node-3": "x", "node-4": "y"}
	d := placement.FirstFit{}.Place(g, nested().world())
	if !d.Fits() || d.PodSets[0].Hosts[0] != "node-6" {
		t.Fatalf("%+v", d)
	}
	g.PodSets[0].Ineligible["node-7"] = "z"
	d = placement.FirstFit{}.Place(g, nested().world())
	want := "HostUnusable: no tpu-4x4 is free: 4 of 4 are on hosts that the pods may not use: " +
		"host node-0 has the taint a:NoSchedule, which the pods do not tolerate, host node-3 x, host node-4 y, host node-7 z"
	if d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
}

func TestPodSetsTogether(t *testing.T) { // Scenario 4: all or nothing.
	g := tpu(2)
	g.PodSets = append(g.PodSets, set(8, claim("tpu", one("tpu-8x8"))))
	g.PodSets[1].Name = "big"
	d := placement.FirstFit{}.Place(g, nested().world())
	want := "NoFreeSlice: devices are free, but not together: pod set main needs 1 of 4 free tpu-4x4, pod set big needs 1 of 1 free tpu-8x8"
	if d.Fits() || d.Refusal.Error() != want || !d.Proved {
		t.Error(d.Refusal)
	}
	g.PodSets[1] = set(4, claim("tpu", one("tpu-4x4")))
	g.PodSets[1].Name, g.PodSets[1].Slices = "more", 2
	d = placement.FirstFit{}.Place(g, nested().world())
	if !d.Fits() || !slices.Equal(d.PodSets[1].Hosts, []string{"node-2", "node-3", "node-4", "node-5"}) || len(d.PodSets[1].Claims[0].Instances) != 2 || d.PodSets[1].Claims[0].PodsPerClaim != 2 {
		t.Errorf("%+v", d)
	}
	g.PodSets[1].Count = 5
	d = placement.FirstFit{}.Place(g, nested().world())
	if want := "NotDivisible: pod set more: 5 pods cannot fill slices of 2 hosts (tpu-4x4)"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
}

func TestCompanions(t *testing.T) {
	s := nested()
	for _, h := range []string{"node-2", "node-3", "node-7"} {
		s.device("nic", "nic-"+h+"/n", []string{h})
	}
	g := gang.Gang{PodSets: []gang.PodSet{set(2, claim("nic", one("nic")), claim("tpu", one("tpu-4x4")))}}
	d := placement.FirstFit{}.Place(g, s.world())
	if !d.Fits() {
		t.Fatal(d.Refusal)
	}
	ps := d.PodSets[0]
	if !slices.Equal(ps.Hosts, []string{"node-2", "node-3"}) {
		t.Errorf("hosts %v", ps.Hosts)
	}
	nic, slice := ps.Claims[0], ps.Claims[1]
	if nic.PodsPerClaim != 1 || len(nic.Instances) != 2 || nic.Instances[1].Devices[0].Hosts[0] != "node-3" {
		t.Errorf("nics %+v", nic)
	}
	if slice.PodsPerClaim != 2 || len(slice.Instances) != 1 || slice.Instances[0].Devices[0].Name != "s-1" {
		t.Errorf("slice %+v", slice)
	}
}

func TestSeveralDevicesPerClaim(t *testing.T) {
	s := newSite("n1", "n2")
	for _, h := range []string{"n1", "n2"} {
		for i := range 4 {
			s.device("gpu", fmt.Sprintf("%s/g%d", h, i), []string{h})
		}
	}
	g := gang.Gang{PodSets: []gang.PodSet{set(3, claim("gpu", gang.Request{Name: "r", Class: "gpu", Count: 2}))}}
	d := placement.FirstFit{}.Place(g, s.world())
	if !d.Fits() || !slices.Equal(d.PodSets[0].Hosts, []string{"n1", "n1", "n2"}) {
		t.Fatalf("%+v", d)
	}
	seen := map[string]bool{}
	for r, in := range d.PodSets[0].Claims[0].Instances {
		for _, dev := range in.Devices {
			if dev.Hosts[0] != d.PodSets[0].Hosts[r] || seen[dev.Pool.Name+dev.Name] {
				t.Errorf("rank %d: %+v", r, dev)
			}
			seen[dev.Pool.Name+dev.Name] = true
		}
	}
}

func TestBudget(t *testing.T) {
	// Devices that overlap pairwise around a ring of 19 hosts: ten of them never fit, and trying all ways takes long.
	var hosts []string
	for i := range 19 {
		hosts = append(hosts, fmt.Sprint("n", i))
	}
	s := newSite(hosts...)
	for i := range hosts {
		j := (i + 1) % len(hosts)
		s.device("tpu-4x4", fmt.Sprint("ring/d", i), []string{hosts[i], hosts[j]}, hosts[i], hosts[j])
	}
	g := tpu(20)
	g.PodSets[0].Slices = 10
	d := placement.FirstFit{Budget: 100}.Place(g, s.world())
	want := "NoFreeSlice: devices are free, but not together (not every combination was tried): needs 10 of 19 free tpu-4x4"
	if d.Fits() || d.Proved || d.Refusal.Error() != want {
		t.Errorf("%+v", d.Refusal)
	}
	g.PodSets[0].Count, g.PodSets[0].Slices = 18, 9
	if d := (placement.FirstFit{}).Place(g, s.world()); !d.Fits() {
		t.Error(d.Refusal)
	}
}

func TestMessagesStayShort(t *testing.T) {
	s := nested().with(func(l *ledger.Ledger) {
		for i := range 4 {
			for j := range 3 {
				l.Take(hold(fmt.Sprintf("%s/%s-%d-%d", strings.Repeat("n", 63), strings.Repeat("c", 250), i, j), fmt.Sprint("s-", i)))
			}
		}
	})
	d := placement.FirstFit{}.Place(tpu(2), s.world())
	if d.Fits() || len(d.Refusal.Message) > 1024 || len(d.Refusal.Evidence) > 16 {
		t.Errorf("%d bytes, %d pieces of evidence", len(d.Refusal.Message), len(d.Refusal.Evidence))
	}
}
