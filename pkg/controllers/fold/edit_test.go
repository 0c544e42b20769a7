package fold

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func TestEdited(t *testing.T) {
	const (
		ours   = `{"berth.dev/fold":"tpus"}`
		theirs = `{}`
		cpu    = `{"coveredResources":["cpu","berth.dev/shares"],"flavors":[{"name":"cpus","resources":[{"name":"cpu","nominalQuota":"1"},{"name":"berth.dev/shares","nominalQuota":"0"}]}]}`
	)
	entryOf := func(number string) string {
		return `{"name":"tpu-v5e","resources":[{"name":"berth.dev/shares","nominalQuota":` + number + `}]}`
	}
	own := func(flavors string) string {
		return `{"coveredResources":["berth.dev/shares"],"flavors":[` + flavors + `]}`
	}
	for name, row := range map[string]struct{ labels, groups, want, err string }{
		"the number":            {theirs, own(entryOf(`"4"`)), own(entryOf(`"16"`)), ""},
		"the number as number":  {theirs, own(entryOf(`4`)), own(entryOf(`"16"`)), ""},
		"beside others":         {theirs, cpu + "," + own(entryOf(`"4"`)), cpu + "," + own(entryOf(`"16"`)), ""},
		"unknown fields stay":   {theirs, `{"future":[1],` + own(entryOf(`"4"`))[1:], own(entryOf(`"16"`))[:len(own(entryOf(`"16"`)))-1] + `,"future":[1]}`, ""},
		"no entry":              {theirs, cpu, "", "Cohort c has no quota for berth.dev/shares of flavor tpu-v5e"},
		"ours, without groups":  {ours, "", own(entryOf(`"16"`)), ""},
		"ours, another flavor":  {ours, own(`{"name":"v6","resources":[]}`), own(`{"name":"v6","resources":[]},` + entryOf(`"16"`)), ""},
		"ours, no group for it": {ours, cpu, cpu + "," + own(entryOf(`"16"`)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			text := `{"kind":"Cohort","metadata":{"name":"c","labels":` + row.labels + `},"spec":{"resourceGroups":[` + row.groups + `]}}`
			if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatal(err)
			}
			got, err := entry{"tpu-v5e", shares, 16}.edited(object)
			if err != nil || row.err != "" {
				if err == nil || err.Error() != row.err {
					t.Errorf("error %v, want %s", err, row.err)
				}
				return
			}
			groups, err := json.Marshal(got.Object["spec"].(map[string]any)["resourceGroups"])
			if err != nil {
				t.Fatal(err)
			}
			if string(groups) != "["+row.want+"]" {
				t.Errorf("%s\nwant [%s]", groups, row.want)
			}
			after, err := json.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			var before unstructured.Unstructured
			if err := json.Unmarshal([]byte(text), &before.Object); err != nil {
				t.Fatal(err)
			}
			if was, _ := json.Marshal(before.Object); string(was) != string(after) {
				t.Errorf("what was read is changed: %s", after)
			}
		})
	}
	if got := (entry{"tpu-v5e", shares, 16}).cohort("c", "tpus"); got.GetLabels()[berth.LabelFold] != "tpus" || got.GetAPIVersion() != "kueue.x-k8s.io/v1beta2" {
		t.Errorf("%v", got.Object)
	}
}
