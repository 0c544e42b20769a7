package reservation

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/reason"
)

// wanted is what Kueue wants while everything is well; serving is a reservation that is served without anything to do.
var wanted = Demand{Quota: true, Active: true, Current: true, Check: CheckReady, Named: true}

func claims(names ...string) []Claim {
	var all []Claim
	for _, n := range names {
		all = append(all, Claim{Name: n, State: Held, Finalizer: true})
	}
	return all
}

// view is a served reservation with three claims and two running pods, or one on its way out when that is asked for.
func view(phase Phase, changes ...func(*View)) View {
	v := View{
		Phase: phase, Recorded: true, Demand: wanted, Claims: claims("a", "b", "c"),
		Pods: []Pod{{Name: "p0", Seated: true}, {Name: "p1", Seated: true}},
	}
	if phase == Releasing {
		v.Demand = Demand{Gone: true}
		for i := range v.Claims {
			v.Claims[i].Deleting = true
		}
		v.Pods = nil
	}
	for _, change := range changes {
		change(&v)
	}
	return v
}

func demand(change func(*Demand)) func(*View) { return func(v *View) { change(&v.Demand) } }

func claim(i int, change func(*Claim)) func(*View) { return func(v *View) { change(&v.Claims[i]) } }

func state(i int, s ClaimState) func(*View) { return claim(i, func(c *Claim) { c.State = s }) }

func pods(all ...Pod) func(*View) { return func(v *View) { v.Pods = all } }

func ranks(all ...Rank) func(*View) { return func(v *View) { v.Ranks = all } }

func unreserved(v *View) {
	for i := range v.Claims {
		v.Claims[i] = Claim{Name: v.Claims[i].Name}
	}
	v.Demand.Check, v.Demand.Named, v.Pods = CheckPending, false, nil
}

func admitted(v *View) { v.Demand.Admitted = true }

var lost = &reason.Refusal{Code: reason.HostMissing, Message: "host h0 is gone"}

// The rows stand in the order of the rules: a row's view would satisfy rules that come later as well where it can.
var servingRows = []struct {
	name string
	view View
	want string
}{
	{"deleted", view(Reserved, func(v *View) { v.Deleting, v.Lost = true, lost }), "no-longer-wanted: Release (Contended: the reservation was deleted)"},
	{"gone", view(Reserved, demand(func(d *Demand) { *d = Demand{Gone: true} })), "no-longer-wanted: Release (Contended: the Workload is gone)"},
	{"going", view(Reserved, demand(func(d *Demand) { d.Deleting = true })), "no-longer-wanted: Release (Contended: the Workload is gone)"},
	{"finished", view(Reserved, demand(func(d *Demand) { d.Finished = true })), "no-longer-wanted: Release (Contended: the Workload has finished)"},
	{"evicted", view(Reserved, demand(func(d *Demand) { d.Evicted = true })), "no-longer-wanted: Release (Contended: the Workload was evicted)"},
	{"inactive", view(Reserved, demand(func(d *Demand) { d.Active = false })), "no-longer-wanted: Release (Contended: the Workload was deactivated)"},
	{"no quota", view(Reserved, demand(func(d *Demand) { d.Quota = false })), "no-longer-wanted: Release (Contended: the Workload's quota reservation was taken back)"},
	{"another epoch", view(Reserved, demand(func(d *Demand) { d.Current = false })), "no-longer-wanted: Release (Contended: the Workload was admitted anew)"},
	{"no check", view(Reserved, demand(func(d *Demand) { d.Check = "" })), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"no check although it is admitted, and nobody came", view(Reserved, admitted, demand(func(d *Demand) { d.Check = "" }), pods()), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"no check and a stranger", view(Reserved, admitted, demand(func(d *Demand) { d.Check = "" }), pods(Pod{Name: "x", Stranger: true})), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"no check, orphaned, all ended", view(HandedOver, admitted, demand(func(d *Demand) { d.Check, d.Orphaned = "", true }), pods(Pod{Name: "p0", Terminal: true}), func(v *View) { v.Started = true }), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"no check and admitted anew", view(HandedOver, admitted, demand(func(d *Demand) { d.Check, d.Current = "", false })), "no-longer-wanted: Release (Contended: the Workload was admitted anew)"},
	{"no check and deleted", view(HandedOver, admitted, func(v *View) { v.Deleting = true }, demand(func(d *Demand) { d.Check = "" })), "no-longer-wanted: Release (Contended: the reservation was deleted)"},
	{"Ready for another", view(Reserved, demand(func(d *Demand) { d.Named = false })), "no-longer-wanted: Release (Contended: the admission check sends the pods elsewhere)"},
	{"Retry", view(Reserved, demand(func(d *Demand) { d.Check = CheckRetry })), "no-longer-wanted: Release (Contended: the admission check says Retry)"},
	{"Rejected", view(Reserved, demand(func(d *Demand) { d.Check = CheckRejected })), "no-longer-wanted: Release (Contended: the admission check says Rejected)"},

	{"lost", view(Reserved, func(v *View) { v.Lost = lost }, state(0, Foreign)), "lost: Release (HostMissing: host h0 is gone)"},
	{"lost while it runs", view(HandedOver, admitted, func(v *View) { v.Lost = lost }), "lost: Retry (HostMissing: host h0 is gone)"},

	{"orphaned while pods run", view(HandedOver, admitted, demand(func(d *Demand) { d.Orphaned = true })), "idle"},
	{"orphaned", view(HandedOver, admitted, demand(func(d *Demand) { d.Orphaned = true }), pods(Pod{Name: "p0", Seated: true, Terminal: true})), "orphaned: Retry (Unsupported: the Workload has lost its owner and the gang's pods have ended)"},

	{"refused", view(Planned, unreserved, func(v *View) { v.Failed = lost }), "write-refused: Release (HostMissing: host h0 is gone)"},

	{"foreign", view(Planned, unreserved, state(1, Foreign), state(2, Foreign)), "foreign-claim: Release (ReservationFailed: ResourceClaim b, c exists already and is not Berth's: delete it)"},
	{"foreign while it runs", view(HandedOver, admitted, state(1, Foreign)), "foreign-claim: Retry (ReservationFailed: ResourceClaim b exists already and is not Berth's: delete it)"},

	{"in deletion", view(Planned, unreserved, claim(0, func(c *Claim) { c.State, c.Deleting = Free, true })), "claim-deleted: Release (SliceLost: ResourceClaim a was deleted)"},
	{"in deletion while it runs", view(HandedOver, admitted, claim(0, func(c *Claim) { c.Deleting = true })), "claim-deleted: Retry (SliceLost: ResourceClaim a was deleted)"},
	{"missing after reserved", view(Reserved, state(0, Missing), demand(func(d *Demand) { d.Check = CheckPending })), "claim-deleted: Release (SliceLost: ResourceClaim a was deleted)"},
	{"missing although Ready", view(Planned, state(0, Missing)), "claim-deleted: Release (SliceLost: ResourceClaim a was deleted)"},
	{"missing beside an allocated one", view(Planned, unreserved, state(2, Unheld)), "claim-deleted: Release (SliceLost: ResourceClaim a, b was deleted)"},

	{"nothing yet", view(Planned, unreserved), "create: CreateClaims a, b, c"},
	{"some yet", view(Planned, unreserved, claim(1, func(c *Claim) { c.State = Free })), "create: CreateClaims a, c"},

	{"without finalizer", view(HandedOver, admitted, claim(1, func(c *Claim) { c.Finalizer = false }), state(0, Free)), "keep: KeepClaims b"},

	{"all created", view(Planned, state(0, Free), state(1, Free), state(2, Free), demand(func(d *Demand) { d.Check = CheckPending })), "allocate: Allocate a, b, c"},
	{"some allocated", view(Planned, state(0, Unheld), state(1, Free), demand(func(d *Demand) { d.Check = CheckPending })), "allocate: Allocate b"},

	{"entry taken out", view(HandedOver, admitted, state(2, Unheld)), "hold: Hold c"},

	{"all held", view(Planned, demand(func(d *Demand) { d.Check, d.Named = CheckPending, false })), "ready: Ready"},
	{"Ready taken back by hand", view(HandedOver, admitted, demand(func(d *Demand) { d.Check = CheckPending })), "ready: Ready"},

	{"not recorded", view(Planned), "record: Record"},
	{"not recorded, no phase", view(""), "record: Record"},

	{"strangers", view(HandedOver, admitted, pods(
		Pod{Name: "p0", Seated: true}, Pod{Name: "x", Stranger: true}, Pod{Name: "y", Stranger: true, Deleting: true}, Pod{Name: "z", Stranger: true, Terminal: true},
	)), "strangers: DeletePods x"},

	{"all is well", view(HandedOver, admitted), "idle"},
}

// off is a gang that goes on although its check was taken off.
func off(changes ...func(*View)) View {
	return view(HandedOver, append(changes, admitted, demand(func(d *Demand) { d.Check, d.Named = "", false }))...)
}

var unaskedRows = []struct {
	name string
	view View
	want string
}{
	{"its pods run", off(), "idle"},
	{"one of its pods waits for its seat", off(pods(Pod{Name: "p0", Gated: true}), func(v *View) { v.Phase = Reserved }), "idle"},
	{"its pods have not come yet", off(pods(), func(v *View) { v.Phase, v.Started = Reserved, true }), "idle"},
	{"its pods have not come yet, and nothing was written down", off(pods(), func(v *View) { v.Phase, v.Started = Planned, true }), "record: Record"},
	{"its pods have not come yet, and its Job is going", off(pods(), demand(func(d *Demand) { d.Orphaned = true }), func(v *View) { v.Phase, v.Started = Reserved, true }), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"its Job has not started", off(pods(), func(v *View) { v.Phase = Reserved }), "no-longer-wanted: Release (Contended: the admission check no longer applies)"},
	{"a successor has not come yet", off(pods(Pod{Name: "p0", Seated: true, Terminal: true})), "idle"},
	{"orphaned, and its pods run", off(demand(func(d *Demand) { d.Orphaned = true })), "idle"},
	{"lost: nobody can be asked to evict it", off(func(v *View) { v.Lost = lost }), "idle"},
	{"a claim in deletion", off(claim(0, func(c *Claim) { c.Deleting = true })), "idle"},
	{"a claim is gone", off(state(0, Missing)), "idle"},
	{"not recorded", off(func(v *View) { v.Phase = Planned }), "record: Record"},
	{"not recorded, and a claim in deletion", off(func(v *View) { v.Phase = Planned }, claim(0, func(c *Claim) { c.Deleting = true })), "idle"},
	{"without finalizer", off(claim(1, func(c *Claim) { c.Finalizer = false }), state(2, Unheld)), "keep: KeepClaims b"},
	{"entry taken out", off(state(2, Unheld), pods(Pod{Name: "p0", Seated: true}, Pod{Name: "x", Stranger: true})), "hold: Hold c"},
	{"strangers", off(pods(Pod{Name: "p0", Seated: true}, Pod{Name: "x", Stranger: true})), "strangers: DeletePods x"},
}

func doubtful(host string) Rank { return Rank{Host: host, Doubtful: true} }

var releasingRows = []struct {
	name string
	view View
	want string
}{
	{"Ready, not admitted", view(Releasing, demand(func(d *Demand) { *d = wanted })), "take-back: Pending"},
	{"Ready, evicted", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Admitted, d.Evicted = true, true })), "take-back: Pending"},
	{"Ready, without quota", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Admitted, d.Quota = true, false })), "take-back: Pending"},
	{"Ready, admitted", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Admitted = true })), "take-back: Retry (SliceLost: the slice was given back)"},
	{"Ready, admitted, inactive", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Admitted, d.Active = true, false })), "take-back: Pending"},
	{"Ready, admitted, deleted", view(Releasing, func(v *View) { v.Deleting = true }, demand(func(d *Demand) { *d = wanted; d.Admitted = true })), "take-back: Retry (SliceLost: the reservation was deleted)"},
	{"Ready, admitted, lost", view(Releasing, func(v *View) { v.Lost = lost }, demand(func(d *Demand) { *d = wanted; d.Admitted = true })), "take-back: Retry (HostMissing: host h0 is gone)"},
	{"Ready for another", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Named = false })), "clear: ClearClaims a, b, c"},
	{"Ready, finished", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Finished = true })), "clear: ClearClaims a, b, c"},
	{"Ready, going", view(Releasing, demand(func(d *Demand) { *d = wanted; d.Deleting = true })), "clear: ClearClaims a, b, c"},

	{"allocated without finalizer", view(Releasing, claim(0, func(c *Claim) { c.Deleting, c.Finalizer = false, false }), claim(1, func(c *Claim) { c.Finalizer = false })), "keep: KeepClaims a"},

	{"not in deletion", view(Releasing, claim(0, func(c *Claim) { c.Deleting = false }), claim(1, func(c *Claim) { c.State, c.Deleting, c.Finalizer = Free, false, false })), "delete-claims: DeleteClaims a, b"},
	{"not Berth's", view(Releasing, claim(0, func(c *Claim) { c.State, c.Deleting = Foreign, false })), "clear: ClearClaims b, c"},

	{"seated behind the gate", view(Releasing, pods(Pod{Name: "p0", Seated: true, Gated: true}, Pod{Name: "p1", Seated: true, Gated: true, Deleting: true}, Pod{Name: "p2", Gated: true})), "delete-pods: DeletePods p0"},
	{"a seated stranger", view(Releasing, pods(Pod{Name: "x", Seated: true, Stranger: true})), "delete-pods: DeletePods x"},

	{"pods run", view(Releasing, pods(Pod{Name: "p0", Seated: true}, Pod{Name: "p1"}, Pod{Name: "p2", Seated: true, Terminal: true}, Pod{Name: "p3", Gated: true})), "await-pods: waits: 2 of the gang's pods may still run: p0, p1"},
	{"a seated pod behind its gate goes", view(Releasing, pods(Pod{Name: "p0", Seated: true, Gated: true, Deleting: true})), "await-pods: waits: 1 of the gang's pods may still run: p0"},
	{"many pods run", view(Releasing, pods(Pod{Name: "7"}, Pod{Name: "6"}, Pod{Name: "5"}, Pod{Name: "4"}, Pod{Name: "3"}, Pod{Name: "2"}, Pod{Name: "1"})), "await-pods: waits: 7 of the gang's pods may still run: 1, 2, 3, 4, 5 and 2 more"},
	{"pods of cleared claims", view(Releasing, pods(Pod{Name: "p0", Seated: true}), state(0, Free), state(1, Missing), state(2, Free)), "clear: ClearClaims a, c"},

	{"hosts in doubt", view(Releasing, ranks(doubtful("h2"), doubtful("h1"), doubtful("h1"), Rank{Host: "h0"}, Rank{Host: "h3", Doubtful: true, Ended: true})), "quarantine: Quarantine h2, h1"},
	{"hosts in doubt, some recorded", view(Releasing, ranks(doubtful("h2"), doubtful("h1")), func(v *View) { v.Quarantine = []Share{{Host: "h1"}} }), "quarantine: Quarantine h2"},
	{"hosts in doubt, no record", view(Releasing, ranks(doubtful("h2"), doubtful("h1")), func(v *View) { v.Recorded = false }), "quarantine: waits: a pod may still run on a host that is not Ready: h1, h2"},
	{"hosts in doubt, all cleared", view(Releasing, ranks(doubtful("h2")), state(0, Free), state(1, Free), state(2, Free)), "clear: ClearClaims a, b, c"},

	{"all gone but the claims", view(Releasing), "clear: ClearClaims a, b, c"},
	{"kept by others", view(Releasing, claim(0, func(c *Claim) { c.State, c.Finalizer = Free, false }), claim(1, func(c *Claim) { c.Finalizer = false })), "clear: ClearClaims b, c"},

	{"hosts recorded", view(Releasing, func(v *View) {
		v.Claims = nil
		v.Quarantine = []Share{{Host: "h2", Doubtful: true}, {Host: "h0"}, {Host: "h1", Doubtful: true}, {Host: "h3"}}
	}), "hosts-back: EndQuarantine h0, h3"},
	{"hosts recorded, all in doubt", view(Releasing, func(v *View) {
		v.Claims = nil
		v.Quarantine = []Share{{Host: "h2", Doubtful: true}, {Host: "h1", Doubtful: true}, {Host: "h2", Doubtful: true}}
	}), "await-hosts: waits: a pod may still run on a host that is not Ready: h1, h2"},

	{"all gone", view(Releasing, func(v *View) { v.Claims, v.Quarantine = nil, []Share{{Host: "h0"}} }), "drop: Drop"},
	{"all gone, in deletion", view(Releasing, func(v *View) { v.Claims, v.Deleting, v.Finalizer = nil, true, true }), "drop: Drop"},
	{"all gone, kept by others", view(Releasing, func(v *View) { v.Claims, v.Deleting = nil, true }), "idle"},
	{"all gone, a claim of others remains", view(Releasing, func(v *View) { v.Claims = []Claim{{Name: "a", State: Foreign}, {Name: "b"}} }), "drop: Drop"},
	{"nothing was ever recorded", View{Phase: Releasing, Demand: Demand{Gone: true}}, "idle"},
}

func TestNext(t *testing.T) {
	var rules []string
	for _, rows := range [][]struct {
		name string
		view View
		want string
	}{servingRows, unaskedRows, releasingRows} {
		for _, row := range rows {
			plan := Next(row.view)
			if got := plan.String(); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
			}
			if !slices.Contains(rules, plan.Rule) {
				rules = append(rules, plan.Rule)
			}
			// Next looks at nothing but the view, and changes nothing in it.
			if again := Next(row.view).String(); again != plan.String() {
				t.Errorf("%s: asked again it says %s", row.name, again)
			}
		}
	}
	for _, table := range [][]rule{serving, unasked, releasing} {
		for _, r := range table {
			if !slices.Contains(rules, r.name) {
				t.Errorf("no row comes to rule %s", r.name)
			}
		}
	}
}

// The order of the rules is the order of the invariants; whoever changes it must mean it.
func TestOrderOfRules(t *testing.T) {
	names := func(table []rule) (all []string) {
		for _, r := range table {
			all = append(all, r.name)
		}
		return all
	}
	if got, want := names(serving), []string{
		"no-longer-wanted", "lost", "orphaned", "write-refused", "foreign-claim", "claim-deleted",
		"create", "keep", "allocate", "hold", "ready", "record", "strangers",
	}; !slices.Equal(got, want) {
		t.Errorf("serving: %q", got)
	}
	if got, want := names(unasked), []string{"keep", "hold", "record", "strangers"}; !slices.Equal(got, want) {
		t.Errorf("unasked: %q", got)
	}
	if got, want := names(releasing), []string{
		"take-back", "keep", "delete-claims", "delete-pods", "await-pods", "quarantine", "clear", "hosts-back",
		"await-hosts", "drop",
	}; !slices.Equal(got, want) {
		t.Errorf("releasing: %q", got)
	}
}

// Whatever the view: nothing is made Ready unless every claim is held and kept, and nothing cleared that may be in use.
func TestEveryView(t *testing.T) {
	states := []ClaimState{Missing, Foreign, Free, Unheld, Held}
	demands := []func(*Demand){func(*Demand) {}, func(d *Demand) { d.Check = CheckPending }, func(d *Demand) { d.Admitted = true }, func(d *Demand) { d.Admitted, d.Check = true, "" }, func(d *Demand) { d.Quota = false }, func(d *Demand) { *d = Demand{Gone: true} }}
	some := [][]Pod{nil, {{Name: "p", Seated: true}}, {{Name: "p", Gated: true}}, {{Name: "p", Gated: true, Seated: true}}, {{Name: "p", Terminal: true, Seated: true}}, {{Name: "p", Stranger: true}}}
	views := 0
	for _, phase := range []Phase{Planned, Reserved, HandedOver, Releasing} {
		for _, change := range demands {
			for _, a := range states {
				for _, b := range states {
					for bits := range 16 {
						for _, p := range some {
							v := View{Phase: phase, Recorded: true, Demand: wanted, Pods: p, Claims: []Claim{
								{Name: "a", State: a, Deleting: bits&1 > 0, Finalizer: bits&2 > 0}, {Name: "b", State: b, Deleting: bits&4 > 0, Finalizer: bits&8 > 0},
							}}
							change(&v.Demand)
							views++
							judge(t, v)
						}
					}
				}
			}
		}
	}
	if views != 4*6*5*5*16*6 {
		t.Error(views)
	}
}

func judge(t *testing.T, v View) {
	t.Helper()
	plan := Next(v)
	for _, s := range plan.Steps {
		switch s.Do {
		case Ready, Record:
			for _, c := range v.Claims {
				if c.State != Held || !c.Finalizer || c.Deleting || v.Phase == Releasing {
					t.Fatalf("%s with %+v", plan, v)
				}
			}
		case ClearClaims, Drop:
			for _, p := range v.Pods {
				if anyAllocated(v) && p.MayRun() && !p.Stranger {
					t.Fatalf("%s with %+v", plan, v)
				}
			}
			for _, c := range v.Claims {
				if s.Do == Drop && c.State.Allocated() || slices.Contains(s.Names, c.Name) && (!c.Deleting || c.State == Foreign) {
					t.Fatalf("%s with %+v", plan, v)
				}
			}
		case Release, Retry:
			if s.Because == nil || s.Because.Message == "" {
				t.Fatalf("%s without a reason", plan)
			}
		case DeleteClaims:
			for _, c := range v.Claims {
				if slices.Contains(s.Names, c.Name) && (c.State == Foreign || c.State.Allocated() && !c.Finalizer) {
					t.Fatalf("%s with %+v", plan, v)
				}
			}
		}
	}
}

func anyAllocated(v View) bool {
	return slices.ContainsFunc(v.Claims, func(c Claim) bool { return c.State.Allocated() })
}

// A target is the line's business alone, whatever state it seems to be in: nothing of it is ever created or released.
func TestTargetsAreLeftAlone(t *testing.T) {
	target := func(v *View) { v.Target = true }
	for _, v := range []View{
		view(Planned, target), view(Planned, target, unreserved), view(Releasing, target),
		view(Planned, target, func(v *View) { v.Lost, v.Deleting = lost, true }),
	} {
		if got := Next(v).String(); got != "target" {
			t.Errorf("%+v: %s", v, got)
		}
	}
}
