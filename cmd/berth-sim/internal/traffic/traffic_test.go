package traffic_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// TestDurations holds the mean, and of the heavy tail its index, against what was asked for.
func TestDurations(t *testing.T) {
	for _, d := range []traffic.Durations{
		{Kind: traffic.Exponential, Mean: 2}, {Kind: traffic.Fixed, Mean: 2},
		{Kind: traffic.Lognormal, Mean: 2, Sigma: 1}, {Kind: traffic.Pareto, Mean: 2, Alpha: 3},
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		sum, beyond, double := 0.0, 0.0, 0.0
		const n = 200_000
		for range n {
			x := d.Draw(rng)
			if !(x > 0) {
				t.Fatalf("%s: %v", d.Kind, x)
			}
			sum += x
			if x > 3 {
				beyond++
			}
			if x > 6 {
				double++
			}
		}
		if mean := sum / n; math.Abs(mean-2) > 0.04 {
			t.Errorf("%s: mean %v", d.Kind, mean)
		}
		want := map[string][2]float64{
			traffic.Exponential: {math.Exp(-1.5), math.Exp(-3)},
			traffic.Fixed:       {0, 0},
			traffic.Lognormal:   {0.5 * math.Erfc((math.Log(1.5)+0.5)/math.Sqrt2), 0.5 * math.Erfc((math.Log(3)+0.5)/math.Sqrt2)},
			traffic.Pareto:      {math.Pow(4.0/9, 3), math.Pow(2.0/9, 3)},
		}[d.Kind]
		if math.Abs(beyond/n-want[0]) > 0.004 || math.Abs(double/n-want[1]) > 0.002 {
			t.Errorf("%s: %.4f exceed 3 and %.4f exceed 6, want %.4f and %.4f", d.Kind, beyond/n, double/n, want[0], want[1])
		}
	}
}

func TestDurationsThatCannotBe(t *testing.T) {
	for _, row := range []struct {
		d    traffic.Durations
		want string
	}{
		{traffic.Durations{Kind: "normal", Mean: 1}, `kind: is "normal", must be one of exponential, lognormal, pareto, fixed`},
		{traffic.Durations{Kind: traffic.Fixed}, "mean: must be more than nothing"},
		{traffic.Durations{Kind: traffic.Fixed, Mean: math.Inf(1)}, "mean: must be more than nothing"},
		{traffic.Durations{Kind: traffic.Lognormal, Mean: 1}, "sigma: lognormal durations need a sigma between 0 and 5"},
		{traffic.Durations{Kind: traffic.Pareto, Mean: 1, Alpha: 1}, "alpha: pareto durations need an alpha above 1: below it they have no mean"},
		{traffic.Durations{Kind: traffic.Fixed, Mean: 1, Sigma: 1}, "sigma: only lognormal durations have a sigma"},
		{traffic.Durations{Kind: traffic.Fixed, Mean: 1, Alpha: 2}, "alpha: only pareto durations have an alpha"},
	} {
		field, message := row.d.Check()
		if got := field + ": " + message; got != row.want {
			t.Errorf("%+v: %s", row.d, got)
		}
	}
}

var mix = traffic.Mix{Kinds: []traffic.Kind{
	{Class: "a", Hosts: 1, Share: 3, Durations: traffic.Durations{Kind: traffic.Exponential, Mean: 2}, Limit: 1.5},
	{Class: "b", Hosts: 4, Share: 1, Durations: traffic.Durations{Kind: traffic.Fixed, Mean: 1}, Priority: 7, Queue: "q"},
}}

func TestMix(t *testing.T) {
	// A gang takes (3·1·2 + 1·4·1) / 4 = 2.5 host-hours; half of 10 hosts is 5 a hour, so 2 gangs come.
	m := mix.ForLoad(0.5, 10)
	if m.Rate != 2 || m.RateOf(0) != 1.5 || m.RateOf(1) != 0.5 {
		t.Errorf("rate %v: %v and %v", m.Rate, m.RateOf(0), m.RateOf(1))
	}
	if diff := cmp.Diff(map[string]float64{"a": 3, "b": 0.5}, m.Demand()); diff != "" {
		t.Error(diff)
	}
	const hours = 20_000.0
	gangs := m.Draw(1, hours)
	work, count := 0.0, map[string]int{}
	for i, g := range gangs {
		work += g.Duration * float64(g.Hosts)
		count[g.Class]++
		if i > 0 && g.Arrival < gangs[i-1].Arrival || g.Arrival >= hours {
			t.Fatalf("gang %d comes at %v", i, g.Arrival)
		}
		if g.Class == "b" && (g.Priority != 7 || g.Queue != "q" || g.Limit != 0) || g.Class == "a" && g.Limit != 1.5*g.Duration {
			t.Fatalf("%+v", g)
		}
	}
	if math.Abs(work/hours-5) > 0.1 || math.Abs(float64(count["a"])/hours-1.5) > 0.03 || math.Abs(float64(count["b"])/hours-0.5) > 0.03 {
		t.Errorf("%v host-hours a hour, %v", work/hours, count)
	}
	if diff := cmp.Diff(gangs[:100], m.Draw(1, 100)[:100]); diff != "" {
		t.Errorf("a longer stream does not begin with the shorter one: %s", diff)
	}
	if cmp.Equal(gangs[:10], m.Draw(2, hours)[:10]) {
		t.Error("two seeds give the same gangs")
	}
}

func classFor(class string, hosts int) (string, int, error) {
	if class == "none" {
		return "", 0, errors.New("there is no none")
	}
	if hosts == 0 {
		hosts = 2
	}
	if class == "" {
		class = fmt.Sprint("n", hosts)
	}
	return class, hosts, nil
}

func TestTraces(t *testing.T) {
	want := []traffic.Gang{
		{Class: "pair", Hosts: 2, Arrival: 0, Duration: 1.5},
		{Class: "n4", Hosts: 4, Arrival: 0.5, Duration: 2, Priority: -3, Queue: "x"},
	}
	for name, text := range map[string]string{
		"csv":         "arrival,class,hosts,duration,priority,queue\n# a comment\n5400, ,4,7200,-3,x\n3600,pair,2,90m,,\n",
		"json list":   `[{"arrival": 5400, "hosts": 4, "duration": "2h", "priority": -3, "queue": "x"}, {"arrival": 3600, "class": "pair", "duration": 5400}]`,
		"json stream": "{\"arrival\": \"1h30m\", \"hosts\": 4, \"duration\": 7200, \"priority\": \"-3\", \"queue\": \"x\"}\n{\"arrival\": 3600, \"class\": \"pair\", \"duration\": 5400, \"queue\": null}",
	} {
		got, err := traffic.ReadTrace("t", []byte(text), classFor)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTracesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "t: is empty",
		"arrival,hosts,duration\n":        "t: the trace has no gang",
		"[]":                              "t: the trace has no gang",
		"arrival,nodes\n1,2\n":            "t: nodes: unknown column: the columns are arrival, class, hosts, duration, priority, queue",
		"hosts,hosts\n1,2\n":              "t: hosts: the column stands there twice",
		"arrival,hosts,duration\n1,2\n":   "t: row 1: record on line 2: wrong number of fields",
		"arrival,hosts,duration\nx,2,0\n": "t: row 1: arrival: \"x\" is no time: it must be seconds, or have a unit as in 90m or 36h\nt: row 1: duration: \"0\" must be more than nothing",
		"arrival,hosts,duration\n-1,2.5,1e300\n,,\n": "t: row 1: hosts: \"2.5\" is no whole number of at most 2147483647\nt: row 1: arrival: \"-1\" must not be negative\n" +
			"t: row 1: duration: \"1e300\" is out of range\nt: row 2: arrival: is missing\nt: row 2: duration: is missing\nt: row 2: class: is missing: a gang needs a class or hosts",
		`[{"arrival": 1, "hosts": 1, "duration": 1, "user": "x"}]`: "t: row 1: user: unknown field",
		`[{"arrival": true, "hosts": 1, "duration": 1}]`:           "t: row 1: arrival: must be text or a number\nt: row 1: arrival: is missing",
		`[1]`:        "t: is no list of objects: json: cannot unmarshal number into Go value of type map[string]interface {}",
		`{"a": 1} x`: "t: row 2: is no object: invalid character 'x' looking for beginning of value",
		`[{"arrival": 1, "class": "none", "duration": 1}]`: "t: row 1: class: there is no none",
	} {
		if _, err := traffic.ReadTrace("t", []byte(text), classFor); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}
