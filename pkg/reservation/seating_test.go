package reservation

import (
	"fmt"
	"slices"
	"testing"
)

// pod is a gated pod of pod set main; its name is its UID.
func pod(name string, rank int, claims ...string) SeatingPod {
	return SeatingPod{Name: name, UID: name, PodSet: "main", Rank: rank, Claims: claims, Gated: true}
}

func (p SeatingPod) ungated() SeatingPod       { p.Gated = false; return p }
func (p SeatingPod) ended() SeatingPod         { p.Gated, p.Terminal = false, true; return p }
func (p SeatingPod) going() SeatingPod         { p.Deleting = true; return p }
func (p SeatingPod) in(set string) SeatingPod  { p.PodSet = set; return p }
func (p SeatingPod) uid(uid string) SeatingPod { p.UID = uid; return p }

func entries(claim string, pods ...string) SeatingClaim {
	return SeatingClaim{Name: claim, Entries: pods, Others: 1}
}

func TestSeat(t *testing.T) {
	full := make([]string, MaxEntries-1)
	for i := range full {
		full[i] = fmt.Sprint("p", i)
	}
	ended := func(n int) (pods []SeatingPod) {
		for i := range n {
			pods = append(pods, pod(fmt.Sprint("p", i), i, "c").ended())
		}
		return pods
	}
	for _, row := range []struct {
		name string
		view SeatingView
		want string
	}{
		// The first seating waits for the whole gang.
		{"nobody", SeatingView{Expected: 2, Claims: []SeatingClaim{entries("c")}}, "waits: 0 of 2 pods exist"},
		{"all but one", SeatingView{Expected: 2, Pods: []SeatingPod{pod("a", 0, "c")}}, "waits: 1 of 2 pods exist"},
		{"why", SeatingView{Expected: 2, Blocker: "FailedCreate: exceeded quota", Pods: []SeatingPod{pod("a", 0, "c")}}, "waits: 1 of 2 pods exist, FailedCreate: exceeded quota"},
		{"two of one rank", SeatingView{Expected: 2, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 0, "c")}}, "waits: 1 of 2 pods exist"},
		{"one goes", SeatingView{Expected: 2, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 1, "c").going()}}, "waits: 1 of 2 pods exist"},
		{"one ended before it began", SeatingView{Expected: 2, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 1, "c").ended()}}, "waits: 1 of 2 pods exist"},
		{"late", SeatingView{Expected: 2, Late: true, Pods: []SeatingPod{pod("a", 0, "c")}}, "give up (NotSeated: 1 of 2 pods exist)"},
		{"late, and why", SeatingView{Expected: 2, Late: true, Blocker: "x"}, "give up (NotSeated: 0 of 2 pods exist, x)"},
		{"late but whole", SeatingView{Expected: 1, Late: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c")}}, "begin; c + a; ungate a"},
		{
			"whole", SeatingView{Expected: 2, Claims: []SeatingClaim{entries("c"), entries("d")}, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 1, "d")}},
			"begin; c + a; d + b; ungate a, b",
		},
		{
			"several pod sets with the same ranks", SeatingView{
				Expected: 2, Claims: []SeatingClaim{entries("c"), entries("d")}, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 0, "d").in("other")},
			}, "begin; c + a; d + b; ungate a, b",
		},
		{
			"three of four ranks are left", SeatingView{Expected: 3, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("b", 1, "c"), pod("c", 2, "c"), pod("d", 3, "c")}},
			"begin; c + b, c, d; ungate b, c, d",
		},
		{
			"it died after the entries", SeatingView{Expected: 2, Claims: []SeatingClaim{entries("c", "a", "b")}, Pods: []SeatingPod{pod("a", 0, "c"), pod("b", 1, "c").ungated()}},
			"begin; ungate a",
		},
		{"it died between two claims", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "a"), entries("d")}, Pods: []SeatingPod{pod("a", 0, "c", "d")}}, "d + a; ungate a"},

		{
			"pods of a former admission may run", SeatingView{Expected: 1, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c")}, Former: []string{"x", "y"}},
			"waits: pods x, y of the gang's former slice may still run",
		},
		{
			"pods of a former admission may run, and it is late", SeatingView{Expected: 1, Late: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c")}, Former: []string{"x"}},
			"waits: pods x of the gang's former slice may still run",
		},
		{
			"pods of a former admission may run, and not all have come", SeatingView{Expected: 2, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c")}, Former: []string{"x"}},
			"waits: 1 of 2 pods exist",
		},

		// Then rank by rank.
		{"all are seated", SeatingView{Begun: true, Expected: 2, Claims: []SeatingClaim{entries("c", "a")}, Pods: []SeatingPod{pod("a", 0, "c").ungated()}}, "idle"},
		{"a successor of one that is gone", SeatingView{Begun: true, Expected: 2, Claims: []SeatingClaim{entries("c", "b")}, Pods: []SeatingPod{pod("b", 1, "c").ungated(), pod("a", 0, "c")}}, "c + a; ungate a"},
		{"a successor of one that runs", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "a")}, Pods: []SeatingPod{pod("a", 0, "c").ungated().going(), pod("b", 0, "c")}}, "waits: rank 0 waits for its predecessor to end"},
		{"a successor of one that runs without an entry", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c").ungated().going(), pod("b", 0, "c")}}, "waits: rank 0 waits for its predecessor to end"},
		{"a successor of one that ended but stands there still", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "a")}, Pods: []SeatingPod{pod("a", 0, "c").ended(), pod("b", 0, "c")}}, "waits: rank 0 waits for its predecessor to end"},
		{"a successor of one that ended and left", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c").ended(), pod("b", 0, "c")}}, "c + b; ungate b"},
		{"a successor goes at once", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("b", 0, "c").going()}}, "idle"},
		{"others of the claim are not its business", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "a")}, Pods: []SeatingPod{pod("a", 0, "c").ungated().going(), pod("b", 1, "c")}}, "c + b; ungate b"},
		{"an entry of who knows whom", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "x"), entries("d")}, Pods: []SeatingPod{pod("b", 0, "c"), pod("e", 1, "d")}}, "d + e; ungate e; waits: rank 0 waits for its predecessor to end"},
		{"an entry of who knows whom, and it stands there already", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "x", "b")}, Pods: []SeatingPod{pod("b", 0, "c")}}, "ungate b"},

		// Binding a pod failed, and kube-scheduler took it out of its claims.
		{"one that was let go has lost its place", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "b")}, Pods: []SeatingPod{pod("a", 0, "c").ungated(), pod("b", 1, "c").ungated()}}, "c + a"},
		{"it has lost one of two places", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "a"), entries("d")}, Pods: []SeatingPod{pod("a", 0, "c", "d").ungated()}}, "d + a"},
		{"it has lost its place, and its successor is there", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("b", 0, "c").ungated(), pod("a", 0, "c")}}, "c + b; waits: rank 0 waits for its predecessor to end"},
		{"it has lost its place and is to go", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c").ungated().going()}}, "idle"},
		{"it has lost its place and has ended", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("a", 0, "c").ungated().ended()}}, "idle"},
		{"it has lost its place to somebody of its rank", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "b")}, Pods: []SeatingPod{pod("a", 0, "c").ungated(), pod("b", 0, "c").ungated()}}, "waits: rank 0 waits for its predecessor to end"},

		// Exactly one of two gated pods of one rank goes first.
		{"two gated pods", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("b", 0, "c"), pod("a", 0, "c")}}, "c + a; ungate a; waits: rank 0 waits for its predecessor to end"},
		{"two gated pods, one goes", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("b", 0, "c"), pod("a", 0, "c").going()}}, "waits: rank 0 waits for its predecessor to end"},
		{"two gated pods, one stands there", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "b")}, Pods: []SeatingPod{pod("b", 0, "c"), pod("a", 0, "c")}}, "ungate b; waits: rank 0 waits for its predecessor to end"},
		{
			"two gated pods, one stands in one of its claims", SeatingView{
				Begun: true, Claims: []SeatingClaim{entries("c", "b"), entries("d")}, Pods: []SeatingPod{pod("a", 0, "c", "d"), pod("b", 0, "c", "d")},
			}, "d + b; ungate b; waits: rank 0 waits for its predecessor to end",
		},
		{"three gated pods", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c")}, Pods: []SeatingPod{pod("c", 0, "c"), pod("b", 0, "c"), pod("a", 0, "c")}}, "c + a; ungate a; waits: rank 0 waits for its predecessor to end"},

		// No more than a claim holds.
		{
			"the last place", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", full[:254]...)}, Pods: append(ended(254), pod("x", 300, "c"), pod("y", 301, "c"))},
			"c + x; ungate x; waits: rank 301 waits for a place in its claim",
		},
		{"no place", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", full...)}, Pods: append(ended(255), pod("x", 300, "c"))}, "waits: rank 300 waits for a place in its claim"},
		{"more than one entry is not a pod's", SeatingView{Begun: true, Claims: []SeatingClaim{{Name: "c", Entries: full[:254], Others: 2}}, Pods: append(ended(254), pod("x", 300, "c"))}, "waits: rank 300 waits for a place in its claim"},
		{
			"a place in one of two claims is none", SeatingView{
				Begun: true, Claims: []SeatingClaim{entries("c", full...), entries("d")}, Pods: append(ended(255), pod("x", 300, "d", "c"), pod("y", 301, "d")),
			}, "d + y; ungate y; waits: rank 300 waits for a place in its claim",
		},
		{
			"many wait", SeatingView{Begun: true, Claims: []SeatingClaim{entries("c", "?")}, Pods: []SeatingPod{
				pod("a", 0, "c"), pod("b", 1, "c"), pod("c", 2, "c"), pod("d", 3, "c"), pod("e", 4, "c"), pod("f", 5, "c"), pod("g", 5, "c"),
			}},
			"waits: rank 0 waits for its predecessor to end; rank 1 waits for its predecessor to end; rank 2 waits for its predecessor to end; " +
				"rank 3 waits for its predecessor to end; rank 4 waits for its predecessor to end and 1 more",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			plan := Seat(row.view)
			if got := plan.String(); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
			slices.Reverse(row.view.Pods)
			if got := Seat(row.view); len(got.Ungate) != len(plan.Ungate) || len(got.Enter) != len(plan.Enter) {
				t.Errorf("with the pods in another order: %s", got)
			}
		})
	}
}

// Whatever stands where: a pod is given a place only if the other of its rank neither runs nor has one, and nobody is let
// go before it stands in all of its claims.
func TestSeatLetsOnePodOfARankGo(t *testing.T) {
	kinds := []func(SeatingPod) SeatingPod{
		func(p SeatingPod) SeatingPod { return p }, SeatingPod.ungated, SeatingPod.ended, SeatingPod.going,
		func(p SeatingPod) SeatingPod { return p.ungated().going() },
	}
	for _, a := range kinds {
		for _, b := range kinds {
			for bits := range 16 {
				for _, swap := range []bool{false, true} {
					first, second := pod("a", 0, "c", "d"), pod("b", 0, "c", "d")
					if swap {
						first, second = first.uid("z"), second.uid("y")
					}
					v := SeatingView{Begun: true, Pods: []SeatingPod{a(first), b(second)}}
					for i, name := range []string{"c", "d"} {
						var in []string
						for j, p := range v.Pods {
							if bits>>(2*i+j)&1 == 1 {
								in = append(in, p.UID)
							}
						}
						v.Claims = append(v.Claims, entries(name, in...))
					}
					onePodOfARank(t, v)
				}
			}
		}
	}
}

func onePodOfARank(t *testing.T, v SeatingView) {
	t.Helper()
	plan := Seat(v)
	given := func(claim string, p SeatingPod) bool {
		return slices.ContainsFunc(plan.Enter[claim], func(o SeatingPod) bool { return o.UID == p.UID })
	}
	for i, p := range v.Pods {
		other := v.Pods[1-i]
		stands := true
		for _, c := range v.Claims {
			stands = stands && (slices.Contains(c.Entries, p.UID) || given(c.Name, p))
			if given(c.Name, p) && (slices.Contains(c.Entries, other.UID) || given(c.Name, other) || !other.Gated && !other.Terminal) {
				t.Fatalf("%s gets a place beside %s: %s with %+v", p.Name, other.Name, plan, v)
			}
		}
		if slices.ContainsFunc(plan.Ungate, func(o SeatingPod) bool { return o.UID == p.UID }) && (!stands || p.Deleting || p.Terminal) {
			t.Fatalf("%s is let go: %s with %+v", p.Name, plan, v)
		}
	}
}

// A gang of many single-host devices is seated in one go.
func TestSeatManyPods(t *testing.T) {
	const many = 4000
	v := SeatingView{Expected: many}
	for i := range many {
		c := fmt.Sprint("c-", i)
		v.Claims = append(v.Claims, entries(c))
		v.Pods = append(v.Pods, pod(fmt.Sprint("p-", i), i, c))
	}
	plan := Seat(v)
	if !plan.Begin || len(plan.Enter) != many || len(plan.Ungate) != many || plan.Waits != "" {
		t.Errorf("%d claims, %d pods, waits %q", len(plan.Enter), len(plan.Ungate), plan.Waits)
	}
}
