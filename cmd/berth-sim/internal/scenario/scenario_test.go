package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/scenario"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

const whole = `
scenarios:
  - &one
    name: one
    group: g
    hardware: {family: windows, extent: [2, 2, 1], pools: 2}
    load: 0.5
    shares: gangs
    kinds:
      - class: v5p-4
        hosts: 4
        share: 2
        priority: -1
        queue: q
        limit: 1.5
        duration: {kind: lognormal, mean: 90m, sigma: 1}
    line: targets
    recall: true
    policies: [firstfit, berth]
    seeds: 3
    seed: 7
    hours: 10
    warmup: 1
    compact: true
  - <<: *one
    name: two
    load: 0.25
  - name: three
    hardware: {files: [a.yaml, b]}
    trace: t.csv
    policies: [berth]
`

func TestRead(t *testing.T) {
	got, err := scenario.Read("f.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	one := scenario.Scenario{
		Name: "one", Group: "g", Family: hardware.Family{Name: "windows", Extent: [3]int{2, 2, 1}, Pools: 2}, Load: 0.5, ByGangs: true,
		Kinds: []traffic.Kind{{
			Class: "v5p-4", Hosts: 4, Share: 2, Priority: -1, Queue: "q", Limit: 1.5,
			Durations: traffic.Durations{Kind: traffic.Lognormal, Mean: 1.5, Sigma: 1},
		}},
		Line: simulate.Targets, Recall: true, Policies: []string{"firstfit", "berth"}, Seeds: 3, Seed: 7, Hours: 10, Warmup: 1, Compact: true,
	}
	two := one
	two.Name, two.Load = "two", 0.25
	three := scenario.Scenario{Name: "three", Files: []string{"a.yaml", "b"}, Trace: "t.csv", Policies: []string{"berth"}}
	if diff := cmp.Diff([]scenario.Scenario{one, two, three}, got, cmpopts.IgnoreUnexported(scenario.Scenario{})); diff != "" {
		t.Error(diff)
	}
}

// good is a scenario that can be prepared; tests replace lines of it.
const good = `scenarios:
- name: s
  hardware: {family: kep}
  load: 0.5
  kinds:
  - {class: tpu-4x4, duration: {kind: exponential, mean: 1h}}
  policies: [berth]
`

// TestFaults is everything that a scenario can have wrong, with where it stands. Reading and preparing tell all faults of
// their kind at once.
func TestFaults(t *testing.T) {
	replace := func(old, by string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the good scenario", old)
		}
		return strings.Replace(good, old, by, 1)
	}
	for _, row := range []struct{ text, want string }{
		{"", "f: is empty"},
		{"a: [", "f: line 1: did not find expected node content"},
		{"[]", "f:1: must be an object with fields"},
		{"scenarios: []", "f:1: scenarios: is missing or empty"},
		{"scenario: []", "f:1: scenario: unknown field"},
		{"scenarios: {}", "f:1: scenarios: must be a list"},
		{good + "  load: 1\n", "f:8: scenarios[0].load: stands there twice"},
		{replace("name: s", "name:"), "f:2: scenarios[0].name: must be text\nf:2: scenarios[0].name: is missing"},
		{good + strings.TrimPrefix(good, "scenarios:\n"), "f:8: scenarios[1].name: s is the name of scenarios[0], too"},
		{replace("load: 0.5", "load: half"), `f:4: scenarios[0].load: "half" is no number`},
		{replace("load: 0.5", "load: .nan"), `f:4: scenarios[0].load: ".nan" is no number`},
		{replace("load: 0.5", "load: 0"), "f:4: scenarios[0].load: is 0, must be above 0 and at most 10"},
		{replace("load: 0.5", "seeds: -1"), `f:4: scenarios[0].seeds: "-1" is no whole number`},
		{replace("load: 0.5", "seeds: 99999999999"), `f:4: scenarios[0].seeds: "99999999999" is out of range`},
		{replace("load: 0.5", "shares: hosts"), `f:4: scenarios[0].shares: is "hosts", must be gangs or work`},
		{replace("load: 0.5", "recall: maybe"), `f:4: scenarios[0].recall: "maybe" is neither true nor false`},
		{replace("{family: kep}", "{family: kap}"), `f:3: scenarios[0].hardware.family: is "kap", must be one of kep, rack, tree, cubes, torus, windows`},
		{replace("{family: kep}", "{family: tree, size: 8}"), "f:3: scenarios[0].hardware.spans: a tree needs the hosts of its devices, for instance [1, 2, 4, 8]"},
		{replace("{family: kep}", "{family: windows, extent: [1, 2]}"), "f:3: scenarios[0].hardware.extent: must be three numbers"},
		{replace("{family: kep}", "{family: kep, files: [x]}"), "f:3: scenarios[0].hardware: names both files and a family"},
		{replace("{family: kep}", "{files: [testdata/none.yaml]}"), "testdata/none.yaml: no such file or directory"},
		{replace("class: tpu-4x4", "class: tpu-9"), "f:6: scenarios[0].kinds[0]: no device of class tpu-9 can be reserved; there are tpu-2x2 (1), tpu-4x4 (4), tpu-4x8 (8), tpu-8x8 (16)"},
		{replace("class: tpu-4x4", "hosts: 3"), "f:6: scenarios[0].kinds[0]: no device spans 3 hosts; there are tpu-2x2 (1), tpu-4x4 (4), tpu-4x8 (8), tpu-8x8 (16)"},
		{replace("class: tpu-4x4", "class: tpu-4x4, hosts: 8"), "f:6: scenarios[0].kinds[0]: no device of class tpu-4x4 spans 8 hosts; there are tpu-2x2 (1), tpu-4x4 (4), tpu-4x8 (8), tpu-8x8 (16)"},
		{replace("class: tpu-4x4", "hosts: 256"), "f:6: scenarios[0].kinds[0]: a gang of 256 hosts cannot be reserved: its pods share one ResourceClaim, which serves at most 255"},
		{replace("class: tpu-4x4", "share: 0, limit: 0.5"), "f:6: scenarios[0].kinds[0].class: is missing: a kind needs a class or hosts\n" +
			"f:6: scenarios[0].kinds[0].share: is 0, must be more than nothing\nf:6: scenarios[0].kinds[0].limit: is 0.5, must be at least 1: a gang ends before its limit"},
		{replace("kind: exponential", "kind: pareto, alpha: 1"), "f:6: scenarios[0].kinds[0].duration.alpha: pareto durations need an alpha above 1: below it they have no mean"},
		{replace("mean: 1h", "mean: long"), `f:6: scenarios[0].kinds[0].duration.mean: "long" is no time: it must be seconds, or have a unit as in 90m or 36h`},
		{replace("[berth]", "[]"), "f:7: scenarios[0].policies: name at least one of firstfit, random, bestfit, slurm, berth, berth-demand, exact"},
		{replace("[berth]", "[berth, worst, berth]"), `f:7: scenarios[0].policies[1]: is "worst", must be one of firstfit, random, bestfit, slurm, berth, berth-demand, exact` + "\n" +
			"f:7: scenarios[0].policies[2]: berth stands there twice"},
		{replace("[berth]", "[exact]\n  line: free"), "f:7: scenarios[0].policies[0]: the best policy is computed where gangs that find no place are lost"},
		{strings.Replace(replace("[berth]", "[exact]"), "kind: exponential", "kind: fixed", 1), "f:7: scenarios[0].policies[0]: the best policy is computed for exponential durations"},
		{good + "  line: back\n", `f:8: scenarios[0].line: is "back", must be loss, free or targets`},
		{good + "  recall: true\n", "f:8: scenarios[0].recall: gangs are recalled for targets only: set line to targets"},
		{good + "  compact: true\n", "f:8: scenarios[0].compact: needs gangs that wait, and a family with pools or cubes that can be more or fewer"},
		{good + "  hours: 5\n  warmup: 5\n", "f:9: scenarios[0].warmup: is 5 hours, must be less than the 5 that are simulated"},
		{good + "  seeds: 5000\n", "f:8: scenarios[0].seeds: is 5000, must be between 1 and 1000"},
		{good + "  hours: 1e6\n  hardware: {family: torus}\n", "f:9: scenarios[0].hardware: stands there twice"},
		{replace("mean: 1h", "mean: 1ms") + "  hours: 100000\n", "f:8: scenarios[0].hours: about 720000000000 gangs would come, at most 5000000 are possible"},
		{good + "  trace: t\n", "f:5: scenarios[0].kinds: come from the trace\nf:4: scenarios[0].load: comes from the trace"},
	} {
		list, err := scenario.Read("f", []byte(row.text))
		for i := range list {
			if err == nil {
				_, err = list[i].Prepare(nil)
			}
		}
		if err == nil || err.Error() != row.want {
			t.Errorf("%s\n got %v\nwant %s", row.text, err, row.want)
		}
	}
}

func TestPrepare(t *testing.T) {
	list, err := scenario.Read("f", []byte(strings.Replace(good, "- {class: tpu-4x4,", "- {hosts: 16, duration: {kind: fixed, mean: 2h}}\n  - {class: tpu-4x4, share: 3,", 1)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := list[0].Prepare(nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Seeds != scenario.DefaultSeeds || p.Hours != scenario.DefaultHours || p.Warmup != scenario.DefaultHours/10 || p.Line != simulate.Loss {
		t.Errorf("%+v", p.Scenario)
	}
	// Half of 16 hosts is 8 host-hours an hour: 2 of the large kind, at 32 each, and 6 of the other, at 4 each.
	if a, b := p.Mix.RateOf(0), p.Mix.RateOf(1); a != 2.0/32 || b != 6.0/4 {
		t.Errorf("rates %v and %v", a, b)
	}
	if diff := cmp.Diff([]hardware.Offer{{Class: "tpu-4x4", Hosts: 4}, {Class: "tpu-8x8", Hosts: 16}}, p.Offers); diff != "" {
		t.Error(diff)
	}
}

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.csv")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := scenario.Scenario{Name: "s", Family: hardware.Family{Name: "kep"}, Trace: file, Policies: []string{"berth"}}
	write("arrival,hosts,duration\n0,4,7200\n3600,8,1800\n")
	p, err := s.Prepare(nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Hours != 2 || p.Seeds != 1 || len(p.Gangs(5)) != 2 || p.Gangs(5)[1].Class != "tpu-4x8" || p.Demand()["tpu-4x4"] != 2 {
		t.Errorf("%+v", p)
	}
	write("arrival,hosts,duration\n0,5,7200\n")
	want := file + ": row 1: hosts: no device spans 5 hosts; there are tpu-2x2 (1), tpu-4x4 (4), tpu-4x8 (8), tpu-8x8 (16)"
	if _, err := s.Prepare(nil); err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	s.Trace = filepath.Join(t.TempDir(), "none")
	if _, err := s.Prepare(nil); err == nil || !strings.HasPrefix(err.Error(), "trace: open ") {
		t.Error(err)
	}
}
