package line

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// steps is what a pass wants done.
type steps struct {
	// reserve are decisions to write down.
	reserve []*berth.GangReservation
	// targets to write down, or to say something else of, and those to delete.
	targets []planned
	drop    []*berth.GangReservation
	// recalls holds for every reservation that is served why it is recalled, or nil.
	recalls map[types.NamespacedName]*reason.Refusal
	// answers to Workloads that get no reservation now.
	answers []answer
	// unpark are Workloads that Kueue has forgotten to queue.
	unpark []*kueue.Workload
	// waiting counts the gangs that get nothing now, by reason.
	waiting map[string]int
	// again is when a pass is due although nothing changes; zero means never.
	again time.Duration
}

type answer struct {
	workload *kueue.Workload
	answer   adaptkueue.Answer
}

// waiting is a Workload that this pass has to place.
type waiting struct {
	workload *kueue.Workload
	check    *kueue.AdmissionCheckState
	request  adaptkueue.Request
	epoch    string
}

// decide is one pass: a pure function of the view, apart from charging the view's own ledger.
func decide(v *view, placer placement.Placer) steps {
	s := steps{waiting: map[string]int{}}
	queue := map[types.UID]waiting{}
	var entries []line.Entry
	for _, wl := range v.snapshot.Workloads {
		check := v.checks.Of(wl)
		if v.several(wl, check, &s) {
			continue
		}
		v.stale(wl, check, &s)
		if !adaptkueue.Wants(wl, check) {
			v.parked(wl, check, &s)
			continue
		}
		w, refusal := v.consider(wl, check, &s)
		switch {
		case refusal != nil:
			v.refuse(wl, check, refusal, &s)
		case w != nil:
			queue[wl.UID] = *w
			entries = append(entries, v.entry(*w))
		}
	}
	v.world.Demand = v.asked(entries)
	result := line.Pass(line.Input{
		Now: v.now, World: v.world, Placer: placer, Waiting: entries, Running: v.running(), Targets: v.standing(queue),
		Held: v.hostsHeld(), Memory: v.memory, Barred: func(id inventory.PoolID) bool { return v.unfenced(id) != nil },
	})
	refused := map[string]int{}
	for _, o := range result.Outcomes {
		w := queue[types.UID(o.Entry.Gang.UID)]
		if !o.Decision.Fits() {
			refused[o.Entry.Queue]++
			why := waitsFor(o)
			if refused[o.Entry.Queue] > line.Fresh && o.Target == nil {
				why = sameWords(w.workload, why)
			}
			v.refuse(w.workload, w.check, why, &s)
			continue
		}
		res := record(w.workload, string(w.check.Name), w.epoch, w.request, o.Decision, v.world.Inventory)
		res.Spec.Lent = o.Lent
		s.reserve = append(s.reserve, res)
	}
	v.keep(&result, queue, &s)
	s.recalls = v.recalls(&result)
	return s
}

// entry is the gang as one that waits in line.
func (v *view) entry(w waiting) line.Entry {
	policy := v.backfill(string(w.check.Name))
	return line.Entry{
		Gang: w.request.Gang, Owner: w.workload.Namespace + "/" + reservationName(w.workload.Name, w.epoch),
		Queue: queueOf(w.workload), Priority: priority(w.workload), QueuedAt: w.workload.CreationTimestamp.Time,
		Runs:     adaptkueue.Remaining(w.workload),
		NoTarget: policy.Targets == berth.TargetNone, Lends: policy.Evict == berth.EvictLowerPriority,
	}
}

// waitsFor is the refusal with what is kept for the gang.
func waitsFor(o line.Outcome) *reason.Refusal {
	if o.Target == nil {
		return o.Decision.Refusal
	}
	why := *o.Decision.Refusal
	why.Message += "; " + o.Target.String()
	return &why
}

// consider says whether a Workload that wants an answer has to be placed. It returns neither when the answer is given, on
// its way, or a step already.
func (v *view) consider(wl *kueue.Workload, check *kueue.AdmissionCheckState, s *steps) (*waiting, *reason.Refusal) {
	epoch := v.readings.Epoch(wl, check.Name)
	if check.State != kueue.CheckStatePending {
		return nil, nil
	}
	if v.served(wl) {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: wl.Namespace, Name: reservationName(wl.Name, epoch)}
	if _, exists := v.reservations[key]; exists {
		if wait, why := v.backoff(wl.UID); wait > 0 {
			s.due(wait)
			return nil, why
		}
		return nil, formerFirst()
	}
	req, refusal := v.readings.Read(wl, v.lookup)
	switch {
	case refusal != nil:
		return nil, refusal
	case !req.Managed:
		if why := adaptkueue.PoolMissing(wl, v.lookup); why != nil && !req.Ended {
			return nil, why
		}
		a := adaptkueue.Answer{Check: check.Name, State: kueue.CheckStateReady, Message: req.Unneeded()}
		if apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved) != nil {
			a.Reason = adaptkueue.ReasonIgnored // what stands there speaks of something that it no longer waits for
		}
		v.answer(wl, a, s)
		return nil, nil
	case v.notFenced != nil:
		if why := adaptkueue.Unpublished(req.Gang, v.world.Inventory); why != nil {
			return nil, why // It may be none of Berth's business.
		}
		return nil, v.notFenced
	case v.ending[req.Owner.UID]:
		return nil, formerFirst()
	}
	if why := adaptkueue.NotCharged(wl, req.Gang, v.lookup); why != nil {
		return nil, why
	}
	if wait, why := v.backoff(wl.UID); wait > 0 {
		s.due(wait)
		return nil, why
	}
	return &waiting{workload: wl, check: check, request: req, epoch: epoch}, nil
}

// stale takes a Ready back whose reservation is gone. While the reservation exists its own controller does that. It does
// not matter whether quota is reserved now: when it is reserved again Kueue admits at once on the Ready that it finds.
func (v *view) stale(wl *kueue.Workload, check *kueue.AdmissionCheckState, s *steps) {
	if check == nil || check.State != kueue.CheckStateReady || wl.DeletionTimestamp != nil || workload.IsFinished(wl) || workload.IsEvicted(wl) {
		return
	}
	name := adaptkueue.NamedReservation(check)
	if name == "" || v.reservations[types.NamespacedName{Namespace: wl.Namespace, Name: name}] != nil {
		return
	}
	why := &reason.Refusal{Code: reason.SliceLost, Message: fmt.Sprintf("reservation %s is gone", name)}
	state := kueue.CheckStatePending
	if workload.IsAdmitted(wl) {
		state = kueue.CheckStateRetry
	}
	v.answer(wl, adaptkueue.Refused(check.Name, state, why), s)
}

// parked has a Workload queued that was sent back, when its back-off is over and Kueue does not do it.
func (v *view) parked(wl *kueue.Workload, check *kueue.AdmissionCheckState, s *steps) {
	if check == nil {
		return
	}
	switch parked, left := adaptkueue.Parked(wl, v.now); {
	case parked:
		s.unpark = append(s.unpark, wl)
	case left > 0:
		s.due(left)
	}
}

// refuse tells a Workload why it waits; for ever, unless the refusal is final or the configuration limits the wait.
func (v *view) refuse(wl *kueue.Workload, check *kueue.AdmissionCheckState, why *reason.Refusal, s *steps) {
	s.waiting[string(why.Code)]++
	state := kueue.CheckStatePending
	if why.Code.Final() {
		state = kueue.CheckStateRejected
	} else if why.Code == reason.TemplateReplaced {
		state = kueue.CheckStateRetry // Only a new admission is charged for what is asked for now.
	} else if why.Code == reason.NotCharged {
		state = v.uncharged(wl, s)
	} else if limit := v.noFitTimeout(v.checks[check.Name]); limit > 0 {
		left := limit
		if quota := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved); quota != nil {
			left = quota.LastTransitionTime.Add(limit).Sub(v.now)
		}
		if left <= 0 {
			state = kueue.CheckStateRetry
		} else {
			s.due(left)
		}
	}
	v.answer(wl, adaptkueue.Refused(check.Name, state, why), s)
}

// chargedAnew is how long a gang waits that was sent back because it was not charged, and was not charged again. Kueue loses
// a charge once; what it never charges is a matter of its configuration, and queueing it again in a loop would not help.
const chargedAnew = time.Minute

// uncharged is the state of a gang that Kueue does not charge: queued again at once, and then every minute.
func (v *view) uncharged(wl *kueue.Workload, s *steps) kueue.CheckState {
	said := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	quota := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if said == nil || said.Reason != string(reason.NotCharged) || quota == nil {
		return kueue.CheckStateRetry
	}
	left := quota.LastTransitionTime.Add(chargedAnew).Sub(v.now)
	if left <= 0 {
		return kueue.CheckStateRetry
	}
	s.due(left)
	return kueue.CheckStatePending
}

// sameWords is a refusal in the words that the Workload has for the same reason. So a gang far back in line is not written
// to each time that a holder changes; it is when the reason does, or when it gets near the head.
func sameWords(wl *kueue.Workload, why *reason.Refusal) *reason.Refusal {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(why.Code) {
		return why
	}
	same := *why
	same.Message = c.Message
	return &same
}

func (v *view) answer(wl *kueue.Workload, a adaptkueue.Answer, s *steps) {
	if a.Beside = v.checks.Beside(wl, a.Check); !a.Given(wl) {
		s.answers = append(s.answers, answer{wl, a})
	}
}

// due makes the next pass come after d at the latest.
func (s *steps) due(d time.Duration) {
	if s.again == 0 || d < s.again {
		s.again = d
	}
}
