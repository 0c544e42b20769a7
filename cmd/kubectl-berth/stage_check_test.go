package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// reserve places a gang and writes its reservation down, as the controller does: reserve JOB.
func (s *stage) reserve(args []string, _ string) string {
	o, faults := s.read()
	if len(faults) > 0 {
		s.Fatal(faults)
	}
	w := newWorld(o)
	for _, c := range w.candidates() {
		if c.name != args[0] {
			continue
		}
		gang := w.consider(c)
		if gang.report.State != "" {
			s.Fatal(gang.report.Sentence())
		}
		d := w.placer.Place(gang.gang, w.World)
		if !d.Fits() {
			return "it waits: " + d.Refusal.Error()
		}
		res := kueuetest.Record(c.namespace, c.name, d)
		res.TypeMeta = typed("berth.dev/v1alpha1", "GangReservation")
		res.Spec.WorkloadRef.Name, res.Spec.WorkloadRef.UID = c.workload.Name, c.workload.UID
		res.Spec.Owner.Kind, res.Spec.Owner.APIVersion, res.Spec.Owner.Name = "Job", "batch/v1", c.name
		res.Status.Phase = "HandedOver"
		s.put(res)
		return "Job " + c.name + " has " + render.Slice(render.PodSets(d))
	}
	s.Fatalf("there is no gang %s", args[0])
	return ""
}

// check holds the world against what must be true of it whatever happens: what is read does not depend on what was read
// before; no reservation makes an overdraw, is half or shares a device; and no gang would be given what is not there.
func (s *stage) check(command string) {
	o, faults := s.read()
	if len(faults) > 0 || !s.changed {
		return
	}
	s.changed = false
	if diff := cmp.Diff(tellWorld(cluster.New().World(&o.Snapshot)), tellWorld(s.kept.World(&o.Snapshot))); diff != "" {
		s.Errorf("%s: who has seen the worlds before sees another one: %s", command, diff)
	}
	for _, r := range o.Reservations {
		for _, ps := range r.Spec.PodSets {
			if int(ps.Count) != len(ps.Hosts) {
				s.Errorf("%s: %s has %d of %d hosts", command, r.Name, len(ps.Hosts), ps.Count)
			}
		}
	}
	b := newBook(o)
	for _, w := range s.placed() {
		for _, ps := range w.PodSets {
			for _, c := range ps.Claims {
				for _, d := range c.Devices {
					if w.State == render.Fits {
						b.take(w.Name, d.Driver, d.Pool, d.Device, b.published[deviceName{d.Driver, d.Pool, d.Device}])
					}
				}
			}
		}
	}
	for _, breach := range b.breaches {
		s.Errorf("%s: %s", command, breach)
	}
}

// placed is what fit says of the gangs.
func (s *stage) placed() []render.Workload {
	var out, stderr bytes.Buffer
	run([]string{"fit", "-o", "json", "-f", "-"}, bytes.NewReader(s.json()), &out, &stderr)
	var r render.FitReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		s.Fatal(err, stderr.String())
	}
	return r.Workloads
}

type deviceName struct{ driver, pool, device string }

type counterName struct{ driver, pool, set, counter string }

// book sums up what is taken from the API objects alone, the plain way: it shares no code with the ledger.
type book struct {
	// published is what each device of the newest generation consumes, in thousandths.
	published map[deviceName]map[counterName]int64
	total     map[counterName]int64
	taken     map[counterName]int64
	holder    map[deviceName]string
	breaches  []string
}

// newBook begins with what reservations and foreign claims hold. Foreigners may overdraw: that is theirs.
func newBook(o *files.Objects) *book {
	b := &book{
		published: map[deviceName]map[counterName]int64{}, total: map[counterName]int64{}, taken: map[counterName]int64{}, holder: map[deviceName]string{},
	}
	newest := map[[2]string]int64{}
	for _, s := range o.ResourceSlices {
		at := [2]string{s.Spec.Driver, s.Spec.Pool.Name}
		newest[at] = max(newest[at], s.Spec.Pool.Generation)
	}
	for _, s := range o.ResourceSlices {
		if newest[[2]string{s.Spec.Driver, s.Spec.Pool.Name}] == s.Spec.Pool.Generation {
			b.publish(s)
		}
	}
	for _, r := range o.Reservations {
		for _, ps := range r.Spec.PodSets {
			for _, c := range ps.Claims {
				for _, d := range c.Devices {
					charge := map[counterName]int64{}
					for _, x := range d.Charge {
						charge[counterName{d.Driver, d.Pool, x.CounterSet, x.Counter}] += x.Milli
					}
					b.hold(r.Name, deviceName{d.Driver, d.Pool, d.Device}, charge)
				}
			}
		}
	}
	for _, c := range o.ResourceClaims {
		if dra.ReservationUID(c) != "" || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if d := (deviceName{r.Driver, r.Pool, r.Device}); r.AdminAccess == nil || !*r.AdminAccess {
				b.hold(c.Name, d, b.published[d])
			}
		}
	}
	return b
}

func (b *book) publish(s *resourcev1.ResourceSlice) {
	for _, set := range s.Spec.SharedCounters {
		for name, c := range set.Counters {
			b.total[counterName{s.Spec.Driver, s.Spec.Pool.Name, set.Name, name}] = c.Value.MilliValue()
		}
	}
	for _, d := range s.Spec.Devices {
		uses := map[counterName]int64{}
		for _, set := range d.ConsumesCounters {
			for name, c := range set.Counters {
				uses[counterName{s.Spec.Driver, s.Spec.Pool.Name, set.CounterSet, name}] += c.Value.MilliValue()
			}
		}
		b.published[deviceName{s.Spec.Driver, s.Spec.Pool.Name, d.Name}] = uses
	}
}

func (b *book) hold(owner string, d deviceName, charge map[counterName]int64) {
	b.holder[d] = owner
	for c, milli := range charge {
		b.taken[c] += milli
	}
}

// take is what a gang would be given.
func (b *book) take(owner, driver, pool, device string, charge map[counterName]int64) {
	d := deviceName{driver, pool, device}
	if holder, held := b.holder[d]; held {
		b.breaches = append(b.breaches, fmt.Sprintf("%s is given %s, which %s holds", owner, device, holder))
	}
	b.hold(owner, d, charge)
	for c := range charge {
		if b.taken[c] > b.total[c] {
			b.breaches = append(b.breaches, fmt.Sprintf("%s overdraws counter %s/%s", owner, c.set, c.counter))
		}
	}
}

// tellWorld is everything that placement looks at.
func tellWorld(w placement.World) string {
	text := fmt.Sprintln(w.Ledger.Holdings(), w.Ledger.Overdrawn(), w.Ledger.HeldHosts())
	for _, h := range w.Inventory.Hosts() {
		host, _ := w.Inventory.Host(h)
		text += fmt.Sprintln(host.Name, host.Hostname, host.Rank, host.Blocked, host.Allocatable, w.Ledger.Blockers(h), w.Ledger.Quarantined(h))
	}
	for _, p := range w.Inventory.Pools() {
		text += fmt.Sprintln(p.ID, p.Generation, p.Problem, p.Counters)
		for _, d := range p.Devices {
			text += fmt.Sprintln(d.Name, d.Hosts, d.Charge, d.Taints, d.Unusable, d.Attributes, w.Ledger.Free(d), w.Ledger.Holders(d))
		}
	}
	for _, c := range w.Inventory.Classes() {
		text += fmt.Sprint(c.Name, " ", c.State, c.Problem)
		for _, d := range c.Devices {
			text += " " + d.ID()
		}
		text += "\n"
	}
	return text
}

// TestBook: what is given twice, and what overdraws, is noticed; what foreigners do to each other is not held against gangs.
func TestBook(t *testing.T) {
	s := newStage(t)
	s.nodes([]string{"h0..h1"}, "")
	s.publish([]string{"counters", "d.example.com/p", "of=2"}, "counters chips 4 h0 h1")
	s.publish([]string{"devices", "d.example.com/p", "of=2"}, "pair 1x2 on h0 h1 uses chips 4 h0 h1\none-0 1x1 on h0 uses chips 4 h0\none-1 1x1 on h1 uses chips 4 h1")
	s.claim([]string{"ml/a", "d.example.com/p/one-0"}, "")
	s.claim([]string{"ml/b", "d.example.com/p/one-0"}, "")
	for device, want := range map[string][]string{
		"one-1": nil,
		"one-0": {"gang is given one-0, which b holds", "gang overdraws counter chips/h0"},
		"pair":  {"gang overdraws counter chips/h0"},
	} {
		o, faults := s.read()
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		b := newBook(o)
		b.take("gang", "d.example.com", "p", device, b.published[deviceName{"d.example.com", "p", device}])
		if diff := cmp.Diff(want, b.breaches); diff != "" {
			t.Errorf("%s: %s", device, diff)
		}
	}
}
