package reservation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/reason"
)

// world is a cluster of one gang, as far as a reservation has to do with it: its Workload, its claims, its pods and their
// hosts. Every object has a version, and every write of Berth's is conditioned on the one that it was decided on. What
// must never happen is noted in breaches at the moment at which it happens.
type world struct {
	wl     *workload
	res    *record
	claims map[string]*claimObject
	pods   []*podObject
	hosts  []*hostObject
	// uses says which claims the pod of a rank uses; promised are all of them.
	uses     [][]string
	promised []string
	// lost and failed are what other controllers found out.
	lost, failed *reason.Refusal
	// refuses makes the API server refuse new claims.
	refuses  bool
	versions int
	breaches []string
}

type workload struct {
	Demand
	// labelled: the Job was started with the reservation's name in its template.
	labelled bool
	version  int
}

type record struct {
	phase            Phase
	deleting, seated bool
	// finalizer is ours; kept says that others have one on it.
	finalizer, kept bool
	quarantine      []string
	version         int
	releasing       bool
}

type claimObject struct {
	foreign, finalizer, deleting, allocated, held bool
	entries                                       []string
	version                                       int
}

// podObject outlives its object in the API.
type podObject struct {
	name, uid, host                             string
	rank                                        int
	exists, stranger, gated, terminal, deleting bool
	// failed is how it ended; runs says whether its containers do.
	failed, runs bool
}

type hostObject struct {
	name                      string
	ready, gone, outOfService bool
}

var (
	errConflict = errors.New("conflict")
	errRefused  = errors.New("refused")
)

// newWorld has a gang of as many ranks as uses has entries, each on a host of its own, and a written intent.
func newWorld(uses [][]string) *world {
	w := &world{claims: map[string]*claimObject{}, uses: uses}
	for rank, claims := range uses {
		w.hosts = append(w.hosts, &hostObject{name: fmt.Sprintf("h%d", rank), ready: true})
		for _, c := range claims {
			if !slices.Contains(w.promised, c) {
				w.promised = append(w.promised, c)
			}
		}
	}
	w.wl = &workload{Demand: Demand{Quota: true, Active: true, Current: true, Check: CheckPending}}
	w.res = &record{phase: Planned, finalizer: true}
	return w
}

// shared is a gang of n pods on one device, single one of n pods with a device each, double one with both.
func shared(n int) [][]string { return slices.Repeat([][]string{{"c-0"}}, n) }

func single(n int) [][]string {
	uses := make([][]string, n)
	for i := range uses {
		uses[i] = []string{fmt.Sprintf("c-%d", i)}
	}
	return uses
}

func double(n int) [][]string {
	uses := single(n)
	for i := range uses {
		uses[i] = append(uses[i], "d-0")
	}
	return uses
}

func (w *world) next() int { w.versions++; return w.versions }

func (w *world) breach(format string, args ...any) {
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

func (w *world) host(name string) *hostObject {
	i := slices.IndexFunc(w.hosts, func(h *hostObject) bool { return h.name == name })
	if i < 0 {
		return nil
	}
	return w.hosts[i]
}

func (w *world) pod(name string) *podObject {
	for _, p := range slices.Backward(w.pods) {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (w *world) byUID(uid string) *podObject {
	i := slices.IndexFunc(w.pods, func(p *podObject) bool { return p.uid == uid })
	return w.pods[i]
}

// standsIn reports whether a pod has an entry in one of the claims.
func (w *world) standsIn(p *podObject) bool {
	for _, c := range w.claims {
		if slices.Contains(c.entries, p.uid) {
			return true
		}
	}
	return false
}

func (h *hostObject) doubtful() bool { return h != nil && !h.gone && !h.ready && !h.outOfService }

// seen is a View with the versions of what it was read from.
type seen struct {
	View
	versions map[string]int
}

// gather reads what the controller would read. It is nil when nothing is left.
func (w *world) gather() *seen {
	s := &seen{versions: map[string]int{}}
	if w.res == nil {
		return w.gatherOrphans(s)
	}
	s.Recorded, s.Phase, s.Deleting, s.Finalizer = true, w.res.phase, w.res.deleting, w.res.finalizer
	s.versions["reservation"] = w.res.version
	s.Demand = Demand{Gone: true}
	if w.wl != nil {
		s.Demand, s.versions["workload"] = w.wl.Demand, w.wl.version
		s.Started = w.jobRuns()
	}
	s.Lost = w.lost
	if s.Phase != Releasing {
		s.Failed = w.failed
	}
	for _, name := range w.promised {
		s.Claims = append(s.Claims, w.viewOf(name))
		if c := w.claims[name]; c != nil {
			s.versions[name] = c.version
		}
	}
	w.gatherPods(s)
	for _, q := range w.res.quarantine {
		s.Quarantine = append(s.Quarantine, Share{Host: q, Doubtful: w.host(q).doubtful()})
	}
	if !w.res.seated {
		return s
	}
	for rank := range w.uses {
		h := w.hosts[rank]
		s.Ranks = append(s.Ranks, Rank{Host: h.name, Doubtful: h.doubtful(), Ended: slices.ContainsFunc(w.pods, func(p *podObject) bool {
			return p.rank == rank && p.succeeded()
		})})
	}
	return s
}

// gatherOrphans reads what claims without a reservation tell.
func (w *world) gatherOrphans(s *seen) *seen {
	s.Phase, s.Demand = Releasing, Demand{Gone: true}
	for _, name := range w.promised {
		if c := w.claims[name]; c != nil && !c.foreign && c.finalizer {
			s.Claims = append(s.Claims, w.viewOf(name))
			s.versions[name] = c.version
		}
	}
	if len(s.Claims) == 0 {
		return nil
	}
	w.gatherPods(s)
	for _, h := range w.hosts {
		s.Ranks = append(s.Ranks, Rank{Host: h.name, Doubtful: h.doubtful()})
	}
	return s
}

func (w *world) viewOf(name string) Claim {
	c := w.claims[name]
	v := Claim{Name: name}
	switch {
	case c == nil:
		return v
	case c.foreign:
		v.State = Foreign
	case !c.allocated:
		v.State = Free
	case c.held:
		v.State = Held
	default:
		v.State = Unheld
	}
	v.Deleting, v.Finalizer = c.deleting, c.finalizer
	return v
}

func (w *world) gatherPods(s *seen) {
	for _, p := range w.pods {
		if p.exists {
			s.Pods = append(s.Pods, Pod{
				Name: p.name, Stranger: p.stranger && s.Recorded, Gated: p.gated, Seated: w.standsIn(p), Terminal: p.terminal, Deleting: p.deleting,
			})
		}
	}
}

// succeeded: its object says so still.
func (p *podObject) succeeded() bool { return p.exists && !p.stranger && p.terminal && !p.failed }

// write is one write to the API server.
type write func() error

// writes are what a step does, one by one: the controller may die between any two.
func (w *world) writes(s *seen, step Step) []write {
	var all []write
	each := func(do func(name string) error) {
		for _, name := range step.Names {
			all = append(all, func() error { return do(name) })
		}
	}
	switch step.Do {
	case CreateClaims:
		each(w.create)
	case Allocate:
		each(func(name string) error { return w.allocate(s, name) })
	case KeepClaims:
		each(func(name string) error { return w.change(s, name, func(c *claimObject) { c.finalizer = true }) })
	case Hold:
		each(func(name string) error { return w.change(s, name, func(c *claimObject) { c.held = true }) })
	case Ready:
		all = append(all, func() error { return w.answer(s, CheckReady) })
	case Retry:
		all = append(all, func() error { return w.answer(s, CheckRetry) })
	case Pending:
		all = append(all, func() error { return w.answer(s, CheckPending) })
	case Record:
		all = append(all, func() error { return w.recorded(s, func(r *record) { r.phase = Reserved }) })
	case Release:
		all = append(all, func() error {
			if s.Demand.Unasked() && !s.Deleting && slices.ContainsFunc(w.pods, func(p *podObject) bool { return p.exists && p.runs && !p.stranger }) {
				w.breach("the slice of a running gang was given back because its check was taken off")
			}
			return w.recorded(s, func(r *record) { r.phase, r.releasing, w.failed = Releasing, true, nil })
		})
	case Quarantine:
		all = append(all, func() error {
			return w.recorded(s, func(r *record) { r.quarantine = append(r.quarantine, step.Names...) })
		})
	case EndQuarantine:
		all = append(all, func() error { return w.endQuarantine(s, step.Names) })
	case DeleteClaims:
		each(w.deleteClaim)
	case DeletePods:
		each(func(name string) error { w.pod(name).deleting = true; return nil })
	case ClearClaims:
		for _, name := range step.Names {
			all = append(all, func() error { return w.clear(s, name) }, func() error { return w.letGo(s, name) })
		}
	case Drop:
		all = append(all, func() error { return w.drop(s) })
	}
	return all
}

func (w *world) create(name string) error {
	if w.refuses {
		w.failed = &reason.Refusal{Code: reason.ReservationFailed, Message: "the API server refused ResourceClaim " + name + ": no"}
		return errRefused
	}
	if w.claims[name] == nil {
		w.claims[name] = &claimObject{finalizer: true, version: w.next()}
	}
	return nil
}

// change writes to a claim under the condition that it is as it was seen.
func (w *world) change(s *seen, name string, do func(*claimObject)) error {
	c := w.claims[name]
	if c == nil || c.version != s.versions[name] {
		return errConflict
	}
	do(c)
	c.version = w.next()
	s.versions[name] = c.version
	if c.deleting && !c.finalizer {
		delete(w.claims, name)
	}
	return nil
}

func (w *world) allocate(s *seen, name string) error {
	return w.change(s, name, func(c *claimObject) {
		if c.foreign || !c.finalizer || c.deleting {
			w.breach("claim %s was allocated although it is not surely Berth's", name)
		}
		c.allocated, c.held = true, true
	})
}

func (w *world) deleteClaim(name string) error {
	c := w.claims[name]
	if c == nil {
		return nil
	}
	if c.foreign {
		w.breach("Berth deleted claim %s, which is not its own", name)
	}
	c.deleting, c.version = true, w.next()
	if !c.finalizer {
		w.freed(name)
		delete(w.claims, name)
	}
	return nil
}

func (w *world) clear(s *seen, name string) error {
	return w.change(s, name, func(c *claimObject) {
		w.freed(name)
		c.allocated, c.held, c.entries = false, false, nil
	})
}

func (w *world) letGo(s *seen, name string) error {
	if c := w.claims[name]; c != nil && !c.finalizer {
		return nil
	}
	return w.change(s, name, func(c *claimObject) { c.finalizer = false })
}

// freed checks that nobody may use a claim at the moment at which its devices become free.
func (w *world) freed(name string) {
	c := w.claims[name]
	if !c.allocated {
		return
	}
	for _, p := range w.pods {
		uses := !p.stranger && slices.Contains(w.uses[p.rank], name)
		switch {
		case !uses:
		case p.runs && !p.exists && w.res != nil && slices.Contains(w.res.quarantine, p.host):
		case p.runs:
			w.breach("claim %s was cleared while %s runs on %s", name, p.name, p.host)
		case p.exists && !p.terminal && (!p.gated || slices.Contains(c.entries, p.uid)):
			w.breach("claim %s was cleared while %s may come to run", name, p.name)
		}
	}
}

func (w *world) answer(s *seen, state CheckState) error {
	if w.wl == nil || w.wl.version != s.versions["workload"] {
		return errConflict
	}
	if state == CheckRetry && w.wl.Evicted {
		w.breach("Retry was written on a Workload that is being evicted")
	}
	w.wl.Check, w.wl.Named = state, state == CheckReady
	w.wl.version = w.next()
	s.versions["workload"] = w.wl.version
	return nil
}

func (w *world) recorded(s *seen, do func(*record)) error {
	if w.res == nil || w.res.version != s.versions["reservation"] {
		return errConflict
	}
	do(w.res)
	w.res.version = w.next()
	s.versions["reservation"] = w.res.version
	return nil
}

func (w *world) endQuarantine(s *seen, hosts []string) error {
	return w.recorded(s, func(r *record) {
		r.quarantine = slices.DeleteFunc(r.quarantine, func(h string) bool { return slices.Contains(hosts, h) })
		for _, p := range w.pods {
			if p.runs && !p.exists && slices.Contains(hosts, p.host) {
				w.breach("the quarantine of %s was ended while %s runs there", p.host, p.name)
			}
		}
	})
}

func (w *world) drop(s *seen) error {
	if !w.res.deleting {
		return w.recorded(s, func(r *record) { r.deleting = true })
	}
	err := w.recorded(s, func(r *record) { r.finalizer = false })
	if err == nil {
		for _, p := range w.pods {
			if p.runs && !p.stranger {
				w.breach("the reservation was dropped while %s runs on %s", p.name, p.host)
			}
		}
		for name, c := range w.claims {
			if c.allocated && !c.foreign {
				w.breach("the reservation was dropped while claim %s is allocated", name)
			}
		}
		if !w.res.kept {
			w.res = nil
		}
	}
	return err
}

// check notes what must not be true at any instant.
func (w *world) check() {
	if wl := w.wl; wl != nil && wl.Check == CheckReady && wl.Named && !wl.Finished && !wl.Evicted && !wl.Deleting {
		for _, name := range w.promised {
			if c := w.claims[name]; c == nil || c.foreign || !c.held || !c.allocated {
				w.breach("the check is Ready and claim %s is not held", name)
			}
		}
	}
	if w.res != nil && w.res.releasing && w.res.phase != Releasing {
		w.breach("the reservation left the phase Releasing for %s", w.res.phase)
	}
	running := map[int]string{}
	for _, p := range w.pods {
		if !p.runs || p.stranger {
			continue
		}
		if other, twice := running[p.rank]; twice {
			w.breach("%s and %s of rank %d run at once", other, p.name, p.rank)
		}
		running[p.rank] = p.name
		if p.exists && p.gated {
			w.breach("%s runs behind its gate", p.name)
		}
	}
}
