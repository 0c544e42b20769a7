package files_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/snapshot/files"
)

const node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"

// read reads one text as if it were standard input.
func read(text string) (*files.Objects, files.Faults) {
	return files.Read([]string{files.Stdin}, strings.NewReader(text))
}

// TestFaults has a row for every kind of fault, with all of its words.
func TestFaults(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"syntax":              {"a: [", "-: document 1: line 1: did not find expected node content"},
		"syntax, lower down":  {node + "---\n\n\nkind: Node\n\ta: 1\n", "-: document 2: line 8: found a tab character that violates indentation"},
		"key twice":           {node + "kind: Node\n", `-: document 1: line 4: key "kind" already set in map`},
		"JSON key twice":      {`{"apiVersion": "v1", "kind": "Node", "kind": "Pod"}`, `-: document 1: key "kind" already set in map`},
		"two in a row":        {`{a: 1} {a: 2}`, "-: document 1: did not find expected <document start>"},
		"after JSON":          {`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}} and`, "-: document 2: invalid character 'a' looking for beginning of value"},
		"two JSON objects":    {`{"a": 1} {"a": 2}`, "-: document 1: apiVersion: is missing\n-: document 1: kind: is missing\n-: document 2: apiVersion: is missing\n-: document 2: kind: is missing"},
		"after the end":       {node + "...\nsize: 1\n", "-: document 2: apiVersion: is missing\n-: document 2: kind: is missing"},
		"JSON too deep":       {`{"a": ` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", "-: document 1: nests deeper than 1000"},
		"no object":           {"[1]", "-: document 1: is a list, must be an object"},
		"nothing said":        {"a: 1", "-: document 1: apiVersion: is missing\n-: document 1: kind: is missing"},
		"kind is a number":    {"apiVersion: v1\nkind: 3", "-: document 1: kind: is 3, must be a string"},
		"odd version":         {"apiVersion: a/b/c\nkind: Node", `-: document 1: apiVersion: "a/b/c" is not group/version`},
		"old version":         {"apiVersion: resource.k8s.io/v1beta2\nkind: ResourceSlice", "-: document 1: apiVersion: resource.k8s.io/v1beta2 ResourceSlice is not read: it must be resource.k8s.io/v1"},
		"no such kind":        {"apiVersion: berth.dev/v1alpha1\nkind: Pool", "-: document 1: kind: there is no kind Pool in berth.dev/v1alpha1"},
		"unknown field":       {node + "spec: {podCIDRs: [], podcidr: x, size: 1}", "-: document 1: spec.podcidr: unknown field: it is spelled podCIDR\n-: document 1: spec.size: unknown field"},
		"string for a list":   {node + "spec: {taints: all}", `-: document 1: spec.taints: is "all", must be a list`},
		"list for an object":  {node + "spec: []", "-: document 1: spec: is a list, must be an object"},
		"number for a bool":   {node + "spec: {unschedulable: 1}", "-: document 1: spec.unschedulable: is 1, must be true or false"},
		"bool for a string":   {node + "spec: {taints: [{key: yes}]}", "-: document 1: spec.taints[0].key: is true, must be a string"},
		"quantity":            {node + "status: {allocatable: {cpu: many}}", "-: document 1: status.allocatable[cpu]: \"many\" is not a quantity: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		"quantity, enormous":  {node + "status: {allocatable: {cpu: 1e999999999}}", "-: document 1: status.allocatable[cpu]: the exponent of 1e999999999 is out of range"},
		"time":                {"apiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: yesterday}", `-: document 1: metadata.creationTimestamp: "yesterday" is not a time: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`},
		"fraction":            {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: 1.5}", "-: document 1: spec.parallelism: 1.5 is not a whole number in plain digits"},
		"too large":           {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: 4294967296}", "-: document 1: spec.parallelism: 4294967296 is out of range"},
		"number as text":      {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: '4'}", `-: document 1: spec.parallelism: is "4", must be a number`},
		"no name":             {"apiVersion: v1\nkind: Node", "-: document 1: metadata.name: is missing"},
		"odd name":            {"apiVersion: v1\nkind: Node\nmetadata: {name: Node_1}", `-: document 1: metadata.name: is "Node_1", must be at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends`},
		"odd namespace":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: a.b}", `-: document 1: metadata.namespace: is "a.b", must be at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"kind in lower case":  {"apiVersion: v1\nkind: node\nmetadata: {name: a}", "-: document 1: kind: there is no kind node in v1: it is spelled Node"},
		"request":             {"apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: a}\nspec: {spec: {devices: {requests: [{}, {name: b, exactly: {}}]}}}", "-: document 1: spec.spec.devices.requests[0].name: is missing\n-: document 1: spec.spec.devices.requests[0]: needs one of exactly and firstAvailable\n-: document 1: spec.spec.devices.requests[1].exactly.deviceClassName: is missing"},
		"claim of nothing":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {resourceClaims: [{name: b}, {resourceClaimName: c, resourceClaimTemplateName: d}]}", "-: document 1: spec.resourceClaims[0]: needs one of resourceClaimName and resourceClaimTemplateName\n-: document 1: spec.resourceClaims[1].name: is missing\n-: document 1: spec.resourceClaims[1]: needs one of resourceClaimName and resourceClaimTemplateName"},
		"negative":            {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{resources: {requests: {memory: -1Gi, cpu: -1}}}]}}}", "-: document 1: spec.template.spec.containers[0].resources.requests[cpu]: is -1, must not be negative\n-: document 1: spec.template.spec.containers[0].resources.requests[memory]: is -1Gi, must not be negative"},
		"negative limits":     {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {initContainers: [{resources: {limits: {cpu: -1}}}], resources: {limits: {memory: -1Gi}}}}}", "-: document 1: spec.template.spec.initContainers[0].resources.limits[cpu]: is -1, must not be negative\n-: document 1: spec.template.spec.resources.limits[memory]: is -1Gi, must not be negative"},
		"namespace":           {"apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: b}", "-: document 1: metadata.namespace: a Node has no namespace"},
		"twice, with a fault": {node + "---\n" + node + "specc: {}\n", "-: document 2: specc: unknown field\n-: document 2: metadata.name: Node a was given before (-, document 1)"},
		"twice, both wrong":   {node + "specc: {}\n---\n" + node + "specc: {}\n", "-: document 1: specc: unknown field\n-: document 2: specc: unknown field\n-: document 2: metadata.name: Node a was given before (-, document 1)"},
		"twice":               {node + "---\n" + node, "-: document 2: metadata.name: Node a was given before (-, document 1)"},
		"slice without":       {"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: a}\nspec: {devices: [{}]}", "-: document 1: spec.driver: is missing\n-: document 1: spec.pool.name: is missing\n-: document 1: spec.devices[0].name: is missing"},
		"pool without":        {"apiVersion: berth.dev/v1alpha1\nkind: AcceleratorPool\nmetadata: {name: a}\nspec: {fence: Maybe, poolSelector: {}}", "-: document 1: spec.driver: is missing\n-: document 1: spec.poolSelector: needs names or prefixes; leave it out to select every pool of the driver\n-: document 1: spec.fence: is \"Maybe\", must be Enforce or Observe"},
		"in a list":           {"apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: a}}, {metadata: {name: a}, size: 1}, 7]\nsize: 2", "-: document 1: size: unknown field\n-: document 1: items[1].size: unknown field\n-: document 1: items[1].metadata.name: Node a was given before (-, document 1)\n-: document 1: items[2]: is 7, must be an object"},
		"list of no list":     {"apiVersion: v1\nkind: List\nitems: all", `-: document 1: items: is "all", must be a list`},
		"in a JobSet":         {"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec: {replicatedJobs: [{name: w, replicas: two, template: {spec: {paralelism: 1}}}]}", "-: document 1: spec.replicatedJobs[0].replicas: is \"two\", must be a number\n-: document 1: spec.replicatedJobs[0].template.spec.paralelism: unknown field"},
		"JSON cut off":        {`{"apiVersion": "v1", "kind": "Node"} {"kind": `, "-: document 1: metadata.name: is missing\n-: document 2: the file ends in the middle of an object"},
		"request twice":       {"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {devices: {requests: [{name: b, exactly: {deviceClassName: c}}, {name: b, exactly: {deviceClassName: c}}]}}", "-: document 1: spec.devices.requests[1].name: b was given before"},
		"Job, long":           {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + strings.Repeat("a", 64) + "}", "-: document 1: metadata.name: is \"" + strings.Repeat("a", 40) + "...\": the pods carry it as a label, so it may have at most 63 characters"},
		"Job, long hostnames": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a" + strings.Repeat("b", 60) + "}\nspec: {completionMode: Indexed, completions: 11}", "-: document 1: metadata.name: is \"a" + strings.Repeat("b", 39) + "...\": the hostname of the last pod, 64 characters long, must be at most 63 lower-case letters, digits and -"},
		"merged behind":       {"a: &a {kind: Pod}\nb: {kind: Node, <<: *a}", `-: document 1: line 1: key "kind" already set in map`},
		"twice with a merge":  {"a: &a {kind: Pod}\nb: {<<: *a, kind: Node, kind: Pod}", `-: document 1: line 2: key "kind" already set in map line 2: key "kind" already set in map`},
		"pool, odd": {"apiVersion: berth.dev/v1alpha1\nkind: AcceleratorPool\nmetadata: {name: a}\nspec: {driver: A B, hostHold: NodeTaint, rankLabel: a b, interconnect: {nodeLabel: '?', deviceAttribute: cube}}",
			"-: document 1: spec.driver: is \"A B\", must be at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends\n-: document 1: spec.hostHold: is \"NodeTaint\", must be None\n" +
				"-: document 1: spec.rankLabel: is \"a b\", must be the key of a node label, for example example.com/rack or rack\n-: document 1: spec.interconnect.nodeLabel: is \"?\", must be the key of a node label, for example example.com/rack or rack\n" +
				"-: document 1: spec.interconnect: needs one of nodeLabel and deviceAttribute\n-: document 1: spec.interconnect.deviceAttribute: is \"cube\", must be qualified: domain/name, for example tpu.example.com/cube"},
		"reservation of nothing": {"apiVersion: berth.dev/v1alpha1\nkind: GangReservation\nmetadata: {name: a}", "-: document 1: spec.workloadRef.name: is missing\n-: document 1: spec.podSets: is missing"},
		"fold of nothing":        {"apiVersion: berth.dev/v1alpha1\nkind: CapacityFold\nmetadata: {name: a}", "-: document 1: spec.deviceClasses: is missing\n-: document 1: spec.flavor: is missing\n-: document 1: spec.targets: is missing"},
		"fold": {"apiVersion: berth.dev/v1alpha1\nkind: CapacityFold\nmetadata: {name: a}\nspec: {poolSelector: {}, deviceClasses: [b, b, ''], flavor: B C, mode: Alive, hysteresisSeconds: 3601, targets: [{name: c, weight: -1, max: -2}, {kind: Cohort, name: d, weight: 1000001, min: -3}, {kind: Cohort, name: d}, {kind: Queue}]}",
			"-: document 1: spec.poolSelector: needs names or prefixes; leave it out to select every pool of the driver\n-: document 1: spec.deviceClasses[1]: b was given before\n-: document 1: spec.deviceClasses[2]: is empty\n" +
				"-: document 1: spec.flavor: is \"B C\", must be at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends\n-: document 1: spec.mode: is \"Alive\", must be Physical or Live\n-: document 1: spec.hysteresisSeconds: is 3601, must be from 0 to 3600\n" +
				"-: document 1: spec.targets[0].kind: is missing: it must be Cohort or ClusterQueue\n-: document 1: spec.targets[0].weight: is -1, must be from 0 to 1000000\n-: document 1: spec.targets[0].max: is -2, must be 0 or more\n" +
				"-: document 1: spec.targets[1].weight: is 1000001, must be from 0 to 1000000\n-: document 1: spec.targets[1].min: is -3, must be 0 or more\n-: document 1: spec.targets[2]: Cohort d was given before\n" +
				"-: document 1: spec.targets[3].kind: is \"Queue\", must be Cohort or ClusterQueue\n-: document 1: spec.targets[3].name: is missing"},
		"one hides no other":  {"a: [\n---\n" + node + "size: 1", "-: document 1: line 1: did not find expected node content\n-: document 2: size: unknown field"},
		"whatever it is skip": {"apiVersion: v1\nkind: ConfigMap\ndata: 7", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := read(row.text)
			if diff := cmp.Diff(row.want, faults.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestForms reads the same object in every form that a file may have.
func TestForms(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                   node,
		"marker first":            "---\n" + node,
		"marker and comment":      "--- # a node\n" + node + "...\n",
		"empty documents":         "---\n---\n# nothing\n---\n" + node + "---\n",
		"byte order mark":         "\xef\xbb\xbf" + node,
		"carriage returns":        strings.ReplaceAll("---\n"+node+"---\n", "\n", "\r\n"),
		"List":                    "apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n- " + strings.ReplaceAll(node, "\n", "\n  "),
		"List in a List":          `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: a}}]}]}`,
		"NodeList":                "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: a}}]",
		"JSON":                    "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}",
		"null stands for nothing": node + "spec: {taints: null, podCIDR: null}\nstatus:\n",
	} {
		t.Run(name, func(t *testing.T) {
			o, faults := read(text)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if len(o.Nodes) != 1 || o.Nodes[0].Name != "a" {
				t.Errorf("read %d nodes", len(o.Nodes))
			}
		})
	}
}

// TestSeveralDocuments finds the second document behind the first, whatever ends the lines and codes the characters.
func TestSeveralDocuments(t *testing.T) {
	two := "---\n" + node + "---\n" + strings.ReplaceAll(node, "name: a", "name: b")
	wide := func(order binary.AppendByteOrder, text string) string {
		out := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, unit)
		}
		return string(out)
	}
	for name, text := range map[string]string{
		"line feeds":            two,
		"carriage returns":      strings.ReplaceAll(two, "\n", "\r"),
		"both":                  strings.ReplaceAll(two, "\n", "\r\n"),
		"UTF-16, little-endian": wide(binary.LittleEndian, two),
		"UTF-16, big-endian":    wide(binary.BigEndian, strings.ReplaceAll(two, "\n", "\r\n")),
		"merged":                "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {<<: *a, metadata: {name: b}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			o, faults := read(text)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if len(o.Nodes) != 2 || o.Nodes[0].Name != "a" || o.Nodes[1].Name != "b" {
				t.Errorf("read %d nodes", len(o.Nodes))
			}
		})
	}
}

// TestCompleted is what a file may leave out.
func TestCompleted(t *testing.T) {
	o, faults := read(`
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "4"}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {conditions: [{type: Ready, status: "False"}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: one.example.com, nodeName: a, pool: {name: p, resourceSliceCount: 1}}
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: train-}
spec: {template: {spec: {containers: []}}}
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: train-}
---
apiVersion: batch/v1
kind: Job
metadata: {name: owned}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: w, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: owned, uid: known, controller: true}]}
spec: {podSets: [{count: 1, template: {}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 3
---
apiVersion: v1
kind: ConfigMap
metadata: {name: skipped}
`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if cpu := o.Nodes[0].Status.Allocatable.Cpu().String(); cpu != "4" {
		t.Errorf("allocatable is %s", cpu)
	}
	for i, want := range []string{"True", "False"} {
		if got := string(o.Nodes[i].Status.Conditions[0].Status); got != want {
			t.Errorf("node %s is Ready %s", o.Nodes[i].Name, got)
		}
	}
	if len(o.AcceleratorPools) != 1 || o.AcceleratorPools[0].Spec.Driver != "one.example.com" {
		t.Errorf("AcceleratorPools: %v", o.AcceleratorPools)
	}
	var names []string
	for _, s := range o.Submitted {
		names = append(names, s.GetNamespace()+"/"+s.GetName()+" "+string(s.GetUID()))
	}
	want := []string{"default/train-1 file:Job/default/train-1", "default/train-2 file:Job/default/train-2", "default/owned known", "default/w file:Workload/default/w"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if got := o.Workloads[0].Spec.PodSets[0].Name; got != "main" {
		t.Errorf("pod set is called %q", got)
	}
	if diff := cmp.Diff([]string{"not read: 1 ConfigMap (v1)"}, o.Warnings); diff != "" {
		t.Error(diff)
	}
	if ref := metav1.GetControllerOf(o.Workloads[0]); ref == nil || ref.UID != o.Jobs[2].UID {
		t.Errorf("the Workload's owner is %v", ref)
	}
}

// TestCopies: two objects with one UID are two.
func TestCopies(t *testing.T) {
	o, faults := read("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, uid: u}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: b, uid: u}\n")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if a, b := o.Jobs[0].UID, o.Jobs[1].UID; a != "u" || b != "file:Job/default/b" {
		t.Errorf("%s and %s", a, b)
	}
	if diff := cmp.Diff("Job default/b has the UID of Job default/a: it is taken for another one", o.Warnings[len(o.Warnings)-1]); diff != "" {
		t.Error(diff)
	}
}

// TestDirectory reads the files of a directory by name, and nothing below it.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job := func(name string) string { return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + "}\n" }
	write("b.yml", job("second"))
	write("a.yaml", job("first"))
	write("c.json", `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "third"}}`)
	write("notes.txt", "a: [")
	write("below/d.yaml", job("fourth"))
	o, faults := files.Read([]string{dir}, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var names []string
	for _, s := range o.Submitted {
		names = append(names, s.GetName())
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, names); diff != "" {
		t.Error(diff)
	}
	if _, faults = files.Read([]string{filepath.Join(dir, "none"), files.Stdin}, nil); faults.Error() != filepath.Join(dir, "none")+": no such file or directory\n-: there is no standard input" {
		t.Error(faults)
	}
	_, faults = files.Read([]string{"", files.Stdin, files.Stdin}, strings.NewReader(node))
	if diff := cmp.Diff(": the name of a file is empty\n-: standard input can be read only once", faults.Error()); diff != "" {
		t.Error(diff)
	}
}

// TestNewerFields: what an API server serves has no misspellings, and may be of a newer release. Everything else about it
// is held against the types all the same.
func TestNewerFields(t *testing.T) {
	served := "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, uid: u, resourceVersion: '7'}\nspec: {containers: [{fresh: 1}, {fresh: 2}], fresher: {a: b}}\n"
	o, faults := read(strings.ReplaceAll(served, "NAME", "a") + "---\n" + strings.ReplaceAll(served, "NAME", "b"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []string{
		"not read, because this release does not know the fields: Pod spec.containers[].fresh, Pod spec.fresher",
		"the input holds no ResourceSlice: there is no hardware to place anything on",
	}
	if diff := cmp.Diff(want, o.Warnings); diff != "" {
		t.Error(diff)
	}
	_, faults = read(strings.ReplaceAll(served, "NAME", "a") + "status: {phase: 1}\n")
	if diff := cmp.Diff("-: document 1: status.phase: is 1, must be a string", faults.Error()); diff != "" {
		t.Error(diff)
	}
}
