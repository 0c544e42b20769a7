package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const reported = `scenarios:
- &a
  name: a
  group: g
  hardware: {family: tree, size: 4, spans: [1, 2]}
  load: 0.8
  kinds: [{hosts: 1, duration: {kind: exponential, mean: 1h}}, {hosts: 2, duration: {kind: exponential, mean: 1h}}]
  policies: [firstfit, berth, exact]
  hours: 20
  seeds: 2
- {<<: *a, name: b, load: 0.9}
- <<: *a
  name: c
  group: w
  hardware: {family: tree, size: 4, spans: [1, 2], pools: 3}
  policies: [random, berth]
  line: free
  compact: true
`

const document = `# Title

<!-- berth-sim summary gap g -->
stale
<!-- /berth-sim -->
between
<!-- berth-sim chart gap g charts/gap.svg -->
<!-- /berth-sim -->
<!-- berth-sim policies c -->
<!-- /berth-sim -->
<!-- berth-sim sizes c -->
<!-- /berth-sim -->
<!-- berth-sim fits a -->
<!-- /berth-sim -->
<!-- berth-sim summary hosts w -->
<!-- /berth-sim -->
<!-- berth-sim fit-chart a charts/fits.png -->
<!-- /berth-sim -->
end
`

func TestReport(t *testing.T) {
	scenarios, into := file(t, "s.yaml", reported), file(t, "d.md", document)
	write := func() string {
		if code, _, errs := call("", "report", "-s", scenarios, "--into", into); code != exitOK {
			t.Fatal(errs)
		}
		content, err := os.ReadFile(into)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	got := write()
	for _, want := range []string{
		"# Title\n\n<!-- berth-sim summary gap g -->\n\n| scenario | best % | firstfit | berth |\n|---|---:|---:|---:|\n| a | ",
		"\n\n<!-- /berth-sim -->\nbetween\n<!-- berth-sim chart gap g charts/gap.svg -->\n\n![gap](charts/gap.svg)\n\n<!-- /berth-sim -->\n",
		"\n\nc: 12 hosts, load 0.8, gangs wait and may go before each other, 2 runs of 20 hours, the first 2 not measured\n\n| policy | goodput % | against random | work blocked % | wait h | against random h | hosts needed | against random % |\n",
		"\n\nWait by size in hours, mean / 99th percentile\n\n| size | random | berth |\n", "| scenario | random | berth |\n|---|---:|---:|\n| c | 12 ± 0 | ", "\n<!-- /berth-sim -->\nend\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the document lacks\n%s\nit is\n%s", want, got)
		}
	}
	if strings.Contains(got, "stale") {
		t.Error("what stood there before is still there")
	}
	if again := write(); again != got {
		t.Error("written again, the document differs")
	}
	for _, name := range []string{"gap.svg", "fits.png"} {
		if info, err := os.Stat(filepath.Join(filepath.Dir(into), "charts", name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReportThatCannotBeWritten(t *testing.T) {
	scenarios := file(t, "s.yaml", reported)
	for text, want := range map[string]string{
		"nothing\n":                          `D: the document has no line that begins with "<!-- berth-sim "`,
		"<!-- berth-sim summary gap g -->\n": "D:1: <!-- /berth-sim --> is missing below",
		"\n<!-- /berth-sim -->\n":            "D:2: ends what did not begin",
		"<!-- berth-sim sizes a -->\n<!-- berth-sim sizes a -->\n":         "D:2: what begins in line 1 does not end before",
		"<!-- berth-sim dance -->\n<!-- /berth-sim -->":                    `D:1: "dance" is nothing that berth-sim report writes`,
		"<!-- berth-sim summary luck g -->\n<!-- /berth-sim -->":           `D:1: "summary luck g" is nothing that berth-sim report writes`,
		"x\n<!-- berth-sim summary gap h -->\n<!-- /berth-sim -->":         "D:2: there is no scenario of group h",
		"x\n<!-- berth-sim sizes z -->\n<!-- /berth-sim -->":               "D:2: there is no scenario z",
		"x\n<!-- berth-sim summary gap w -->\n<!-- /berth-sim -->":         "D:2: scenario c does not name the policy exact, so nothing is known of the best one",
		"x\n<!-- berth-sim summary hosts g -->\n<!-- /berth-sim -->":       "D:2: scenario a does not ask how many hosts are needed: set compact",
		"x\n<!-- berth-sim fit-chart a chart.gif -->\n<!-- /berth-sim -->": "D:2: chart.gif: the name of a chart must end in .svg or .png",
	} {
		into := file(t, "d.md", text)
		code, _, errs := call("", "report", "-s", scenarios, "--into", into)
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(errs, into, "D")), "\n")
		if got := lines[len(lines)-1]; code != exitBadInput || got != "error: "+want {
			t.Errorf("%s\nexit %d\n got %s\nwant error: %s", text, code, got, want)
		}
		if content, err := os.ReadFile(into); err != nil || string(content) != text {
			t.Errorf("the document was changed: %v", err)
		}
	}
}
