package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// object is one object as JSON has it.
type object = map[string]any

// stage holds the objects of a scenario, as the API server would.
type stage struct {
	*testing.T
	objects []object
	// version counts changes; every object that is changed gets the next one.
	version int
	// changed is true when the objects are not those of the last check.
	changed bool
	// kept has seen every world of the story, one after the other, as the controller's has.
	kept *cluster.Cluster
}

func newStage(t *testing.T) *stage { return &stage{T: t, kept: cluster.New()} }

// json is all objects as one List.
func (s *stage) json() []byte {
	raw, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": s.objects})
	if err != nil {
		s.Fatal(err)
	}
	return raw
}

// read is what kubectl-berth reads of the objects.
func (s *stage) read() (*files.Objects, files.Faults) {
	return files.Read([]string{files.Stdin}, strings.NewReader(string(s.json())))
}

func metaOf(o object) object {
	meta, _ := o["metadata"].(object)
	if meta == nil {
		meta = object{}
		o["metadata"] = meta
	}
	return meta
}

func same(a, b object) bool {
	x, y := metaOf(a), metaOf(b)
	return a["kind"] == b["kind"] && x["name"] == y["name"] && x["namespace"] == y["namespace"]
}

// put adds an object or replaces the one of its name, whose UID and place it keeps.
func (s *stage) put(typed any) (verb string) {
	raw, err := json.Marshal(typed)
	if err != nil {
		s.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		s.Fatal(err)
	}
	s.version++
	meta := metaOf(o)
	meta["resourceVersion"] = fmt.Sprint(s.version)
	i := slices.IndexFunc(s.objects, func(old object) bool { return same(old, o) })
	if i < 0 {
		if meta["uid"] == nil {
			meta["uid"] = fmt.Sprintf("uid-%d", s.version)
		}
		s.objects = append(s.objects, o)
		return "created"
	}
	meta["uid"] = metaOf(s.objects[i])["uid"]
	s.objects[i] = o
	return "changed"
}

// load reads a file with objects: load FILE.
func (s *stage) load(args []string, _ string) string {
	content, err := os.ReadFile(args[0])
	if err != nil {
		s.Fatal(err)
	}
	before := len(s.objects)
	s.apply(nil, string(content))
	return fmt.Sprintf("%d objects", len(s.objects)-before)
}

// apply creates or replaces the objects of a YAML text.
func (s *stage) apply(_ []string, body string) string {
	var said strings.Builder
	for _, text := range strings.Split("\n"+body, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			s.Fatal(err)
		}
		if o == nil {
			continue
		}
		fmt.Fprintf(&said, "%s %s %s\n", o["kind"], metaOf(o)["name"], s.put(o))
	}
	return said.String()
}

// remove deletes objects: delete KIND NAME…
func (s *stage) remove(args []string, _ string) string {
	names, _ := wordsOf(args[1:])
	var said []string
	for _, name := range names {
		i := slices.IndexFunc(s.objects, func(o object) bool { return o["kind"] == args[0] && metaOf(o)["name"] == name })
		if i < 0 {
			s.Fatalf("there is no %s %s to delete", args[0], name)
		}
		s.objects = slices.Delete(s.objects, i, i+1)
		said = append(said, args[0]+" "+name+" deleted")
	}
	return strings.Join(said, "\n")
}
