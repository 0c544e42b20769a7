package traffic

import (
	"errors"
	"math"
	"testing"
)

// FuzzTrace: whatever a trace holds, its gangs come back in order, the first at 0 and each with hosts and a duration that
// can be simulated, or its faults are told.
func FuzzTrace(f *testing.F) {
	for _, seed := range []string{
		"arrival,class,hosts,duration,priority,queue\n0,,4,90m,0,a\n30,big,,3600,-1,\n",
		"arrival,duration,hosts\n1e3,1h30m,16\n",
		`[{"arrival": 0, "hosts": 4, "duration": "2h"}, {"arrival": "90s", "class": "big", "duration": 60}]`,
		`{"arrival": 5, "hosts": 1, "duration": 1}{"arrival": 4, "hosts": 1, "duration": 1}`,
		"\xef\xbb\xbfarrival,hosts\n", "", "[", "{}", "a,a\n", "arrival\n-1\n", "duration,arrival,hosts\nInf,NaN,99999999999999999999\n",
	} {
		f.Add([]byte(seed))
	}
	classFor := func(class string, hosts int) (string, int, error) {
		if class != "" && class != "big" || hosts < 0 || hosts > 64 || class == "" && hosts == 0 {
			return "", 0, errors.New("there is no such class")
		}
		return "big", max(hosts, 1), nil
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		gangs, err := ReadTrace("trace", content, classFor)
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("no fault in %v", err)
			}
			for _, fault := range faults {
				if fault.File != "trace" || fault.Message == "" {
					t.Errorf("fault %+v", fault)
				}
			}
			return
		}
		if len(gangs) == 0 || gangs[0].Arrival != 0 {
			t.Fatalf("%d gangs", len(gangs))
		}
		for i, g := range gangs {
			if i > 0 && g.Arrival < gangs[i-1].Arrival {
				t.Errorf("gang %d arrives before the one before it", i)
			}
			if g.Hosts < 1 || !(g.Duration >= 0) || math.IsInf(g.Duration, 0) || math.IsNaN(g.Arrival) || math.IsInf(g.Arrival, 0) {
				t.Errorf("gang %+v", g)
			}
		}
	})
}
