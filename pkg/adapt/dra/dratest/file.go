package dratest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/snapshot"
)

// Load reads nodes, ResourceSlices and DeviceClasses from a file of YAML documents or Lists. Nodes come out Ready.
func Load(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &snapshot.Snapshot{}
	for _, doc := range bytes.Split(content, []byte("\n---\n")) {
		if err := add(s, doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return s
}

func add(s *snapshot.Snapshot, doc []byte) error {
	doc, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return err
	}
	var head struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "List":
		for _, item := range head.Items {
			if err := add(s, item); err != nil {
				return err
			}
		}
	case "Node":
		n := &corev1.Node{}
		s.Nodes = append(s.Nodes, n)
		err = json.Unmarshal(doc, n)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	case "ResourceSlice":
		s.ResourceSlices = append(s.ResourceSlices, &resourcev1.ResourceSlice{})
		err = json.Unmarshal(doc, s.ResourceSlices[len(s.ResourceSlices)-1])
	case "DeviceClass":
		s.DeviceClasses = append(s.DeviceClasses, &resourcev1.DeviceClass{})
		err = json.Unmarshal(doc, s.DeviceClasses[len(s.DeviceClasses)-1])
	}
	return err
}
