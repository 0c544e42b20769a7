package chart

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder  = "../../../charts/berth"
	configFolder = "../../../config"
	// namespace is another than that of config/, so that a name the chart forgets to replace shows.
	namespace = "elsewhere"
)

// objects are parsed manifests by kind and name.
type objects map[string]map[string]any

// add parses the documents of text and fails the test if two have the same kind and name.
func (o objects) add(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		kind, _ := object["kind"].(string)
		name, _ := metadata["name"].(string)
		if _, twice := o[kind+" "+name]; twice {
			t.Fatalf("%s %s is there twice", kind, name)
		}
		o[kind+" "+name] = object
	}
}

func renderChart(t *testing.T, values map[string]any) objects {
	t.Helper()
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "berth", Namespace: namespace, Revision: 1, IsInstall: true}
	input, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, input)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			found.add(t, text)
		}
	}
	for _, crd := range chart.CRDObjects() {
		found.add(t, string(crd.File.Data))
	}
	return found
}

func renderConfig(t *testing.T) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), configFolder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	found.add(t, string(bytes.ReplaceAll(text, []byte("berth-system"), []byte(namespace))))
	return found
}

func TestChartInstallsWhatKustomizeDoes(t *testing.T) {
	want, got := renderConfig(t), renderChart(t, nil)
	// Helm makes the release's namespace itself.
	if _, there := want["Namespace "+namespace]; !there {
		t.Errorf("config/ has no Namespace, only %v", slices.Sorted(maps.Keys(want)))
	}
	delete(want, "Namespace "+namespace)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/ (-) and chart (+) differ:\n%s", diff)
	}
}

func TestValuesReachTheDeployment(t *testing.T) {
	got := renderChart(t, map[string]any{
		"image":            "example/berth:1",
		"imagePullPolicy":  "Always",
		"imagePullSecrets": []any{map[string]any{"name": "pull"}},
		"replicas":         3,
		"configuration":    "kind: BerthConfiguration\n",
		"args":             []any{"--extra=1"},
		"resources":        map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		"nodeSelector":     map[string]any{"role": "system"},
		"tolerations":      []any{map[string]any{"operator": "Exists"}},
	})

	want := renderChart(t, nil)
	want["ConfigMap berth-controller"]["data"] = map[string]any{"config.yaml": "kind: BerthConfiguration\n"}
	spec := want["Deployment berth-controller"]["spec"].(map[string]any)
	spec["replicas"] = float64(3)
	template := spec["template"].(map[string]any)
	annotations := template["metadata"].(map[string]any)["annotations"].(map[string]any)
	// Only another annotation makes new pods when nothing but the ConfigMap changes.
	annotations["berth.dev/configuration"] = fmt.Sprintf("%x", sha256.Sum256([]byte("kind: BerthConfiguration\n")))
	pod := template["spec"].(map[string]any)
	pod["imagePullSecrets"] = []any{map[string]any{"name": "pull"}}
	pod["nodeSelector"] = map[string]any{"role": "system"}
	pod["tolerations"] = []any{map[string]any{"operator": "Exists"}}
	container := pod["containers"].([]any)[0].(map[string]any)
	container["image"] = "example/berth:1"
	container["imagePullPolicy"] = "Always"
	container["resources"] = map[string]any{"limits": map[string]any{"memory": "1Gi"}}
	args, _ := container["args"].([]any)
	container["args"] = append(args, "--extra=1")

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-) and got (+) differ:\n%s", diff)
	}
}
