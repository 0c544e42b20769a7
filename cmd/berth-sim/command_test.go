package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/report"
)

// call runs the command and returns exit code, output and errors.
func call(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// small is a world that takes milliseconds.
var small = []string{
	"--family", "tree", "--size", "4", "--spans", "1,2,4", "--load", "0.9", "--hours", "30", "--seeds", "2",
	"--kind", "hosts=1,duration=exponential:1h", "--kind", "hosts=2,duration=exponential:1h",
}

func with(command string, more ...string) []string {
	return append(append([]string{command}, small...), more...)
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunWritesTables(t *testing.T) {
	code, out, errs := call("", with("run", "--policy", "firstfit", "--seeds", "1")...)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"scenario: 4 hosts, load 0.9, gangs without a place are lost, 1 run of 30 hours, the first 3 not measured\npolicy     goodput %   work blocked %\nfirstfit",
		"Blocked by size, % of the gangs\nsize     firstfit\nn1 (1)", "How often a size fits at a utilisation, % of the time\nsize, utilisation   firstfit\nn1, 50–60 %            100.0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks\n%s\nit is\n%s", want, out)
		}
	}
}

// Equal seeds give equal bytes, however many runs go on at a time; other seeds give others.
func TestSameBytes(t *testing.T) {
	for _, output := range []string{"text", "markdown", "json"} {
		args := with("compare", "-o", output, "--policy", "firstfit,random,berth,exact")
		_, first, errs := call("", append(args, "--parallel", "1")...)
		if errs != "" {
			t.Fatal(errs)
		}
		if _, again, _ := call("", append(args, "--parallel", "4")...); again != first {
			t.Errorf("%s: a second call differs", output)
		}
		if _, other, _ := call("", append(args, "--seed", "50")...); other == first {
			t.Errorf("%s: another seed gives the same", output)
		}
	}
}

func TestCompareWritesJSON(t *testing.T) {
	code, out, errs := call("", with("compare", "-o", "json", "--policy", "firstfit,berth,exact")...)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	var got report.Comparison
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.APIVersion != "sim.berth.dev/v1" || got.Kind != "Comparison" || len(got.Scenarios) != 1 {
		t.Fatalf("%+v", got)
	}
	s := got.Scenarios[0]
	if s.Hosts != 4 || s.Line != "loss" || s.Seeds != 2 || s.Best == nil || *s.Best < 0.4 || *s.Best > 0.9 || len(s.Policies) != 3 {
		t.Errorf("%+v", s)
	}
	for _, p := range s.Policies {
		if p.Goodput.Runs != 2 || p.Gap == nil || len(p.Sizes) != 2 || len(p.Sizes[0].Fits) == 0 {
			t.Errorf("%+v", p)
		}
		if p.Name == "exact" && p.Gap.Mean != 0 {
			t.Errorf("%s is %v short of the best", p.Name, p.Gap.Mean)
		}
	}
	if first := s.Policies[0].AgainstFirst; first.Mean != 0 || first.Half != 0 {
		t.Errorf("first fit against itself: %+v", first)
	}
}

func TestExactWritesStates(t *testing.T) {
	code, out, errs := call("", with("exact", "--policy", "random,exact")...)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	lines := strings.Split(out, "\n")
	// Two pairs of hosts: each free, half taken, taken by two, or taken as a whole; ten states up to swapping the pairs. There
	// is a choice in one: a single host beside a free pair.
	if want := "scenario   states   decisions"; !strings.HasPrefix(lines[1], want) || !strings.HasPrefix(lines[2], "scenario       10           1") {
		t.Errorf("%s", out)
	}
}

func TestScenariosFromAFile(t *testing.T) {
	text := `scenarios:
- &a
  name: a
  hardware: {family: kep}
  load: 0.5
  kinds: [{hosts: 4, duration: {kind: fixed, mean: 1h}}]
  hours: 20
  seeds: 1
- {<<: *a, name: b, load: 0.7}
`
	path := file(t, "s.yaml", text)
	_, both, errs := call("", "compare", "-s", path)
	if errs != "" || !strings.Contains(both, "a: 16 hosts, load 0.5,") || !strings.Contains(both, "b: 16 hosts, load 0.7,") {
		t.Fatalf("%s%s", errs, both)
	}
	if _, piped, _ := call(text, "compare", "-s", "-"); piped != both {
		t.Error("standard input gives something else")
	}
	_, one, errs := call("", "compare", "-s", path, "--only", "b", "--policy", "berth,random", "--hours", "10")
	if errs != "" || strings.Contains(one, "a: ") || !strings.Contains(one, "b: 16 hosts, load 0.7, gangs without a place are lost, 1 run of 10 hours") {
		t.Errorf("%s%s", errs, one)
	}
}

// A dumped cluster and a trace: two gangs of two hosts where one pair is held and never comes back.
func TestDumpAndTrace(t *testing.T) {
	trace := file(t, "t.csv", "arrival,class,duration\n0,pair,3600\n1800,pair,3600\n")
	code, out, errs := call("", "run", "-f", "internal/hardware/testdata/held.yaml", "--trace", trace, "--line", "free", "-o", "json")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	var got report.Comparison
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// The second waits half an hour for the first.
	if p := got.Scenarios[0].Policies[0]; p.Name != "berth" || p.Wait.Mean != 0.25 || p.Sizes[0].P99.Mean != 0.5 {
		t.Errorf("%s", out)
	}
}

func TestCharts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, format := range []string{"svg", "png"} {
		if code, _, errs := call("", with("compare", "--charts", dir, "--format", format)...); code != exitOK {
			t.Fatal(errs)
		}
		for _, name := range []string{"scenario-fits", "scenario-sizes"} {
			content, err := os.ReadFile(filepath.Join(dir, name+"."+format))
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]string{"svg": "<?xml", "png": "\x89PNG"}[format]; !strings.HasPrefix(string(content), want) {
				t.Errorf("%s begins with %q", name, content[:10])
			}
		}
	}
}

func TestBadCalls(t *testing.T) {
	bad := file(t, "bad.yaml", "scenarios:\n- {name: x, load: 2, policies: [berth, nope]}\n- {name: y}\n")
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "error: name a command: berth-sim --help lists them\n"},
		{[]string{"fly"}, "error: unknown command \"fly\" for \"berth-sim\"\n"},
		{[]string{"run"}, "error: name hardware with --family or -f, or scenarios with -s\n"},
		{with("run", "-o", "yaml"), "error: --output: is \"yaml\", must be text, markdown or json\n"},
		{with("run", "--format", "gif"), "error: --format: is \"gif\", must be svg or png\n"},
		{with("run", "--shares", "hosts"), "error: --shares: is \"hosts\", must be work or gangs\n"},
		{with("run", "--extent", "4x4"), "error: --extent: is \"4x4\", must be three numbers as in 4x4x2\n"},
		{with("run", "--kind", "hosts"), "error: --kind: \"hosts\": \"hosts\" is not key=value\n"},
		{with("run", "--kind", "hosts=x"), "error: --kind: \"hosts=x\": hosts: strconv.Atoi: parsing \"x\": invalid syntax\n"},
		{with("run", "--kind", "size=1"), "error: --kind: \"size=1\": there is no size\n"},
		{with("run", "--kind", "hosts=1,duration=fixed:1h:2:3"), "error: --kind: \"hosts=1,duration=fixed:1h:2:3\": duration: \"fixed:1h:2:3\" has more than a kind, a mean and one number\n"},
		{with("run", "--kind", "hosts=3,duration=fixed:1h"), "error: --kind[2]: no device spans 3 hosts; there are n1 (1), n2 (2), n4 (4)\n"},
		{with("run", "--kind", "hosts=1,duration=pareto:1h"), "error: --kind[2]: duration.alpha: pareto durations need an alpha above 1: below it they have no mean\n"},
		{with("run", "--size", "0"), "error: --size: is 0, must be between 1 and 64 hosts\n"},
		{with("run", "--policy", "worst"), "error: --policy[0]: is \"worst\", must be one of firstfit, random, bestfit, slurm, berth, berth-demand, exact\n"},
		{with("run", "--policy", "berth,slurm"), "error: --policy: run simulates one policy and scenario scenario names 2; compare takes several\n"},
		{with("compare", "--policy", "berth"), "error: --policy: compare needs at least two policies and scenario scenario names 1\n"},
		{with("exact", "--policy", "berth"), "error: --policy: scenario scenario does not name the policy exact\n"},
		{with("run", "--load", "0"), "error: --load: is 0, must be above 0 and at most 10\n"},
		{with("run", "--line", "up"), "error: --line: is \"up\", must be loss, free or targets\n"},
		{[]string{"run", "-s", "nowhere.yaml"}, "error: nowhere.yaml: open nowhere.yaml: no such file or directory\n"},
		{[]string{"run", "-s", bad, "--load", "1"}, "error: --load: the scenarios of the file say that\n"},
		{[]string{"compare", "-s", bad, "--only", "z"}, "error: --only: there is no scenario z\n"},
		{[]string{"compare", "-s", bad}, "error: BAD:2: scenarios[0].policies[1]: is \"nope\", must be one of firstfit, random, bestfit, slurm, berth, berth-demand, exact\n" +
			"error: BAD:2: scenarios[0].kinds: name at least one kind of gang, or a trace\n" +
			"error: BAD:3: scenarios[1].load: is 0, must be above 0 and at most 10\nerror: BAD:3: scenarios[1].kinds: name at least one kind of gang, or a trace\n"},
		{[]string{"run", "-f", "command.go", "--load", "1", "--kind", "hosts=1"}, "error: --kind[0]: duration.kind: is \"\", must be one of exponential, lognormal, pareto, fixed\n"},
		{[]string{"report", "-s", bad}, "error: name the document with --into and scenarios with -s\n"},
	} {
		code, out, errs := call("", row.args...)
		if got := strings.ReplaceAll(errs, bad, "BAD"); code != exitBadInput || out != "" || got != row.want {
			t.Errorf("%v: exit %d, %s\n got %s\nwant %s", row.args, code, out, got, row.want)
		}
	}
}

// What cannot be simulated although the input is in order ends with another exit code.
func TestOverload(t *testing.T) {
	code, _, errs := call("", "run", "--family", "tree", "--size", "1", "--spans", "1", "--load", "10", "--line", "free", "--seeds", "1", "--hours", "10000",
		"--kind", "hosts=1,duration=fixed:1h")
	if code != exitFailed || !strings.HasPrefix(errs, "error: scenario scenario: policy berth, seed 0: the line grows without end: more work comes than the hardware can do (5001 gangs wait after ") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
