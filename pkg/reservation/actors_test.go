package reservation

import (
	"fmt"
	"slices"
	"strings"
)

// This file is everybody but Berth. Each method is one thing that they do; it returns false when there is nothing to do.

// kueueAdmits when every check is Ready: there is at most ours.
func (w *world) kueueAdmits() bool {
	wl := w.wl
	if wl == nil || !wl.Quota || wl.Evicted || wl.Admitted || wl.Deleting || wl.Finished || (wl.Check != CheckReady && wl.Check != "") {
		return false
	}
	wl.Admitted, wl.labelled = true, wl.Named
	w.touched()
	return true
}

// kueueEvicts resets the check in the same write.
func (w *world) kueueEvicts() bool {
	if w.wl == nil || !w.wl.Quota || w.wl.Evicted || w.wl.Finished {
		return false
	}
	w.wl.Evicted, w.wl.Named = true, false
	if w.wl.Check != "" {
		w.wl.Check = CheckPending
	}
	w.touched()
	return true
}

// kueueUnasks takes the check off the Workload, or puts it on again, as an administrator has it in the ClusterQueue.
func (w *world) kueueUnasks() bool {
	if w.wl == nil || w.wl.Finished {
		return false
	}
	if w.wl.Check == "" {
		w.wl.Check = CheckPending
	} else {
		w.wl.Check, w.wl.Named = "", false
	}
	w.touched()
	return true
}

// kueueObeys a Retry.
func (w *world) kueueObeys() bool {
	return w.wl != nil && w.wl.Check == CheckRetry && !w.wl.Evicted && w.kueueEvicts()
}

// kueueStops an evicted Workload: its quota is free although its pods still terminate.
func (w *world) kueueStops() bool {
	if w.wl == nil || !w.wl.Evicted || !w.wl.Quota {
		return false
	}
	w.wl.Quota, w.wl.Admitted = false, false
	w.touched()
	return true
}

// kueueUnsets quota without eviction and without a reset of checks, as a held ClusterQueue does.
func (w *world) kueueUnsets() bool {
	if w.wl == nil || !w.wl.Quota || w.wl.Admitted || w.wl.Evicted {
		return false
	}
	w.wl.Quota = false
	w.touched()
	return true
}

// kueueReservesAgain is another epoch. On a Ready that it still finds Kueue admits in the same write.
func (w *world) kueueReservesAgain() bool {
	if w.wl == nil || w.wl.Quota || w.wl.Deleting || w.wl.Finished || !w.wl.Active {
		return false
	}
	w.wl.Quota, w.wl.Evicted, w.wl.Current = true, false, false
	w.touched()
	w.kueueAdmits()
	return true
}

func (w *world) kueueFinishes() bool {
	if w.wl == nil || w.wl.Finished || !w.wl.Admitted {
		return false
	}
	for rank := range w.uses {
		if !w.completed(rank) {
			return false
		}
	}
	w.wl.Finished = true
	w.touched()
	return true
}

func (w *world) userDeletesWorkload() bool {
	switch {
	case w.wl == nil:
		return false
	case !w.wl.Deleting:
		w.wl.Deleting = true
		w.touched()
	default:
		w.wl = nil
	}
	return true
}

func (w *world) userDeactivates() bool {
	if w.wl == nil || !w.wl.Active {
		return false
	}
	w.wl.Active = false
	w.touched()
	return true
}

func (w *world) touched() { w.wl.version = w.next() }

// jobRuns reports whether the Job controller keeps the gang complete.
func (w *world) jobRuns() bool {
	return w.wl != nil && w.wl.Admitted && !w.wl.Evicted && !w.wl.Finished && !w.wl.Deleting && w.wl.labelled
}

// completed reports whether the Job has seen a pod of the rank succeed.
func (w *world) completed(rank int) bool {
	return slices.ContainsFunc(w.pods, func(p *podObject) bool { return p.rank == rank && !p.stranger && p.terminal && !p.failed })
}

// jobCreates one pod where a rank has none, or only some that failed or terminate.
func (w *world) jobCreates() bool {
	if !w.jobRuns() {
		return false
	}
	for rank := range w.uses {
		if !w.completed(rank) && !slices.ContainsFunc(w.pods, func(p *podObject) bool {
			return p.rank == rank && !p.stranger && p.exists && !p.deleting && !p.terminal
		}) {
			w.addPod(rank)
			return true
		}
	}
	return false
}

func (w *world) addPod(rank int) *podObject {
	n := 0
	for _, p := range w.pods {
		if p.rank == rank {
			n++
		}
	}
	name := fmt.Sprintf("p%d%s", rank, strings.Repeat("'", n))
	p := &podObject{name: name, uid: fmt.Sprintf("u%d", w.next()), rank: rank, exists: true, gated: true}
	w.pods = append(w.pods, p)
	return p
}

// jobDeletes the pods of a gang that must not run.
func (w *world) jobDeletes() bool {
	if w.jobRuns() {
		return false
	}
	return w.firstPod(func(p *podObject) bool { return p.exists && !p.stranger && !p.deleting && !p.terminal }, func(p *podObject) { p.deleting = true })
}

// firstPod does something with the first pod that it applies to.
func (w *world) firstPod(applies func(*podObject) bool, do func(*podObject)) bool {
	for _, p := range w.pods {
		if applies(p) {
			do(p)
			return true
		}
	}
	return false
}

// kubeletStarts a pod whose gate is off and that stands in all of its claims, on the host that its claims name.
func (w *world) kubeletStarts() bool {
	return w.firstPod(func(p *podObject) bool {
		h := w.hosts[p.rank]
		if !p.exists || p.stranger || p.gated || p.terminal || p.deleting || p.runs || !h.ready || h.gone {
			return false
		}
		for _, name := range w.uses[p.rank] {
			if c := w.claims[name]; c == nil || !c.allocated || !slices.Contains(c.entries, p.uid) {
				return false
			}
		}
		return true
	}, func(p *podObject) { p.runs, p.host = true, w.hosts[p.rank].name })
}

// kubeletEnds a pod that comes to its end.
func (w *world) kubeletEnds(failed bool) bool {
	return w.firstPod(func(p *podObject) bool { return p.runs && p.exists && w.host(p.host).ready }, func(p *podObject) {
		p.runs, p.terminal, p.failed = false, true, failed
	})
}

// kubeletRemoves what is to be deleted, and stops what nobody knows any more.
func (w *world) kubeletRemoves() bool {
	return w.firstPod(func(p *podObject) bool {
		if p.runs {
			return (p.deleting || !p.exists) && w.host(p.host).ready
		}
		return p.exists && p.deleting
	}, func(p *podObject) { p.runs, p.exists = false, false })
}

// garbageCollectorForces the removal of a pod that terminates on a host that does not answer.
func (w *world) garbageCollectorForces() bool {
	return w.firstPod(func(p *podObject) bool { return p.exists && p.runs && p.deleting && w.host(p.host).doubtful() }, func(p *podObject) { p.exists = false })
}

// schedulerUnreserves a pod that it could not bind. It may have been bound, and may run, where only the answer was lost.
func (w *world) schedulerUnreserves(p *podObject) {
	if p.gated || p.stranger || p.terminal || !p.exists {
		return
	}
	for _, name := range w.promised {
		if c := w.claims[name]; c != nil && slices.Contains(c.entries, p.uid) {
			c.entries = slices.DeleteFunc(slices.Clone(c.entries), func(uid string) bool { return uid == p.uid })
			c.version = w.next()
		}
	}
}

// kcmCleans one entry of a pod that is gone or has ended.
func (w *world) kcmCleans() bool {
	for _, name := range w.promised {
		c := w.claims[name]
		if c == nil {
			continue
		}
		for i, uid := range c.entries {
			if p := w.byUID(uid); !p.exists || p.terminal {
				c.entries, c.version = slices.Delete(slices.Clone(c.entries), i, i+1), w.next()
				return true
			}
		}
	}
	return false
}

func (w *world) hostFails(h *hostObject) { h.ready = false }

// hostReturns with its kubelet, which stops what it should not run.
func (w *world) hostReturns(h *hostObject) {
	h.ready, h.outOfService = true, false
	for _, p := range w.pods {
		if p.host == h.name && p.runs && !p.exists {
			p.runs = false
		}
	}
}

// hostIsLost with everything on it, whether its Node is deleted or an administrator says so.
func (w *world) hostIsLost(h *hostObject, deleted bool) {
	h.ready, h.gone, h.outOfService = false, deleted, !deleted
	for _, p := range w.pods {
		if p.host == h.name {
			p.runs, p.exists = false, p.exists && p.terminal
		}
	}
}

// seatingView is what the seating controller would read; nil while nobody is to be seated.
func (w *world) seatingView(late bool, blocker string) (*SeatingView, *seen) {
	s := w.gather()
	if s == nil || !s.Recorded || s.Deleting || (s.Phase != Reserved && s.Phase != HandedOver) ||
		!(s.Demand.Wanted() && s.Demand.Named || s.Demand.Unasked()) || !s.Demand.Admitted {
		return nil, nil
	}
	v := &SeatingView{Begun: w.res.seated, Expected: len(w.uses), Late: late, Blocker: blocker}
	for _, name := range w.promised {
		c := w.claims[name]
		if c == nil || c.foreign || c.deleting || !c.allocated || !c.held {
			return nil, nil
		}
		v.Claims = append(v.Claims, SeatingClaim{Name: name, Entries: slices.Clone(c.entries), Others: 1})
	}
	for _, p := range w.pods {
		if p.exists && !p.stranger {
			v.Pods = append(v.Pods, SeatingPod{
				Name: p.name, UID: p.uid, PodSet: "main", Rank: p.rank, Claims: w.uses[p.rank], Gated: p.gated, Terminal: p.terminal, Deleting: p.deleting,
			})
		}
	}
	return v, s
}

// seatingWrites are what a seating plan does, one by one.
func (w *world) seatingWrites(s *seen, plan SeatingPlan) []write {
	all := []write{func() error { w.lost = plan.GiveUp; return nil }}
	if plan.Begin {
		all = append(all, func() error { return w.recorded(s, func(r *record) { r.seated, r.phase = true, HandedOver }) })
	}
	for _, name := range w.promised {
		pods := plan.Enter[name]
		if len(pods) == 0 {
			continue
		}
		all = append(all, func() error {
			if c := w.claims[name]; c != nil && c.deleting {
				return errRefused // A claim in deletion takes no new entries.
			}
			return w.change(s, name, func(c *claimObject) {
				for _, p := range pods {
					c.entries = append(slices.Clone(c.entries), p.UID)
				}
			})
		})
	}
	for _, p := range plan.Ungate {
		all = append(all, func() error {
			w.byUID(p.UID).gated = false
			return nil
		})
	}
	return all
}
