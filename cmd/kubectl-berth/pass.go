package main

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/render"
)

// Values of --order.
const (
	orderFile = "file"
	orderLine = "line"
)

// Reasons of state Ignored.
const (
	ignoredFinished = "Finished"
	ignoredInactive = "Inactive"
)

// outcome is what a pass says of one candidate.
type outcome struct {
	candidate
	report render.Workload
	gang   gang.Gang
}

// pass offers the hardware to all candidates, in the order of the files or of the line, and charges the world with what
// they get. The outcomes stand in the order in which the gangs had their turn; those that have none, as they came.
func (w *world) pass(order string) []outcome {
	var outcomes, waiting []outcome
	for _, c := range w.candidates() {
		o := w.consider(c)
		switch {
		case o.report.State != "":
			outcomes = append(outcomes, o)
		case order == orderLine:
			waiting = append(waiting, o)
		default:
			d := w.placer.Place(o.gang, w.World)
			outcomes = append(outcomes, w.settle(o, d))
		}
	}
	return append(outcomes, w.inLine(waiting)...)
}

// settle reports a decision and charges it.
func (w *world) settle(o outcome, d placement.Decision) outcome {
	o.report = o.report.Decide(d, w.Inventory)
	if d.Fits() {
		cluster.ChargeDecision(w.World, o.title(), o.gang, d)
	}
	return o
}

// consider reports what needs no placement, and reads the request of what does; then the report has no state yet.
func (w *world) consider(c candidate) outcome {
	o := outcome{candidate: c, report: render.NewWorkload(c.kind, c.namespace, c.name)}
	switch {
	case c.ended || workload.IsFinished(c.workload):
		o.report = o.report.Ignore(ignoredFinished, "it has ended")
		return o
	case !workload.IsActive(c.workload):
		o.report = o.report.Ignore(ignoredInactive, "its Workload is not active")
		return o
	}
	if res, releasing := w.reservationOf(c); res != nil {
		sets := adaptkueue.Reserved(res)
		for i := range sets {
			sets[i].Hosts = w.nodes(sets[i].Hosts)
		}
		o.report = o.report.Reserve(sets)
		return o
	} else if releasing {
		o.report = o.report.Refuse(&reason.Refusal{Code: reason.WaitingTurn, Message: "the gang's former slice is being released first"}, true)
		return o
	}
	lookup := w.lookup
	if c.job != nil {
		given := lookup.Job
		lookup.Job = func(namespace, name string) *batchv1.Job {
			if namespace == c.job.Namespace && name == c.job.Name {
				return c.job
			}
			return given(namespace, name)
		}
	}
	req, refusal := adaptkueue.Read(w.queues.Admit(c.workload), lookup)
	if refusal == nil && !req.Managed && !req.Ended {
		refusal = adaptkueue.PoolMissing(c.workload, lookup)
	}
	switch {
	case refusal != nil:
		o.report = o.report.Refuse(refusal, true)
	case !req.Managed:
		o.report = o.report.Ignore(adaptkueue.ReasonIgnored, req.Unneeded())
	default:
		o.gang = req.Gang
		w.unchecked(c.workload)
		if known := w.unrecorded[client.ObjectKeyFromObject(c.workload)]; workload.IsAdmitted(c.workload) && !known {
			w.warn("Workload %s/%s is admitted and the input has no GangReservation for it: it is placed as if it waited", c.workload.Namespace, c.workload.Name)
		}
	}
	return o
}

// unchecked warns of a ClusterQueue that would let the gang start without Berth.
func (w *world) unchecked(wl *kueue.Workload) {
	name := w.queues.QueueOf(wl)
	cq := w.queues.Cluster(name)
	if cq == nil {
		return
	}
	checks := adaptkueue.OurChecks(w.objects.AdmissionChecks)
	if s := cq.Spec.AdmissionChecksStrategy; s != nil {
		for _, rule := range s.AdmissionChecks {
			if _, ours := checks[rule.Name]; ours {
				return
			}
		}
	}
	text := "ClusterQueue " + name + " names no AdmissionCheck of " + berth.ControllerName + ": Berth would not act on its gangs"
	if !slices.Contains(w.warnings, text) {
		w.warn("%s", text)
	}
}

// inLine is one pass of the line over the waiting gangs.
func (w *world) inLine(waiting []outcome) []outcome {
	byUID := map[string]outcome{}
	var entries []line.Entry
	for _, o := range waiting {
		byUID[o.gang.UID] = o
	}
	for i, at := range queuedAt(waiting) {
		o := waiting[i]
		entries = append(entries, line.Entry{
			Gang: o.gang, Owner: o.title(), Queue: w.queues.QueueOf(o.workload), Priority: w.queues.PriorityOf(o.workload),
			QueuedAt: at, NoTarget: true,
		})
	}
	result := line.Pass(line.Input{World: w.World, Placer: w.placer, Waiting: entries, Held: adaptkueue.HostsHeld(&w.objects.Snapshot, w.queues.QueueOf)})
	out := make([]outcome, 0, len(result.Outcomes))
	for _, got := range result.Outcomes {
		o := byUID[got.Entry.Gang.UID]
		o.report = o.report.Decide(got.Decision, w.Inventory)
		out = append(out, o)
	}
	return out
}

// queuedAt is since when each gang stands in line. One that was never created comes after all that were, in file order.
func queuedAt(waiting []outcome) []time.Time {
	var last time.Time
	for _, o := range waiting {
		if at := o.workload.CreationTimestamp.Time; at.After(last) {
			last = at
		}
	}
	out := make([]time.Time, 0, len(waiting))
	for i, o := range waiting {
		at := o.workload.CreationTimestamp.Time
		if at.IsZero() {
			at = last.Add(time.Duration(i+1) * time.Nanosecond)
		}
		out = append(out, at)
	}
	return out
}

// named picks the outcomes that NAME or NAMESPACE/NAME means: by the name of the Job or of its Workload.
func named(outcomes []outcome, name string) []outcome {
	namespace, bare, both := strings.Cut(name, "/")
	if !both {
		namespace, bare = "", name
	}
	var found []outcome
	for _, o := range outcomes {
		if (namespace == "" || o.namespace == namespace) && (o.name == bare || o.workload.Name == bare) {
			found = append(found, o)
		}
	}
	return found
}
