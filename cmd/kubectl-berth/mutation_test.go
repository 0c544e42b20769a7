package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var rounds = flag.Int("rounds", 60, "how many broken inputs TestMutations tries")

// TestMutations breaks the inputs of the stories at random places, within their structure, and runs every command on what
// comes out: each must end with one of its exit codes and say the same when the objects come again.
func TestMutations(t *testing.T) {
	objects := treasury(t)
	r := rand.New(rand.NewPCG(7, 11))
	ended := map[int]int{}
	for round := range *rounds {
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": pick(r, objects)}
		for range 1 + r.IntN(4) {
			list["items"] = mutate(r, list["items"])
		}
		input, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"fit -o json", "fit --order=line", "capacity -o json", "map --placed -o wide", "why --workload first"} {
			var first, second bytes.Buffer
			args := append(strings.Fields(line), "-f", "-")
			code := run(args, bytes.NewReader(input), &first, &first)
			if again := run(args, bytes.NewReader(input), &second, &second); again != code || first.String() != second.String() {
				t.Fatalf("round %d, %s: exit %d, then %d", round, line, code, again)
			}
			ended[code]++
		}
	}
	for _, code := range []int{exitOK, exitNoFit, exitBadInput} {
		if ended[code] == 0 && *rounds >= 60 {
			t.Errorf("no run ended with %d: the mutations are too mild or too wild", code)
		}
	}
}

// treasury are the objects of all inputs that can be read, and those of the pool.
func treasury(t *testing.T) []any {
	names, err := filepath.Glob("testdata/in/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for _, name := range append(names, "../../test/testdata/kep4815-multihost.yaml") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(content), "\n---\n") {
			var o map[string]any
			if yaml.Unmarshal([]byte(text), &o) != nil || o == nil {
				continue
			}
			if items, ok := o["items"].([]any); ok {
				objects = append(objects, items...)
			} else {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

// pick leaves some objects out, and no two of the same name in.
func pick(r *rand.Rand, objects []any) []any {
	seen := map[string]bool{}
	var out []any
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			continue
		}
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil {
			continue
		}
		meta, _ := object["metadata"].(map[string]any)
		id, err := json.Marshal([]any{object["kind"], meta["namespace"], meta["name"]})
		if err != nil || seen[string(id)] || r.IntN(8) == 0 || object["kind"] == "AcceleratorPol" || object["apiVersion"] == nil || object["apiVersion"] == "resource.k8s.io/v1beta1" || meta["name"] == "s" {
			continue
		}
		seen[string(id)] = true
		out = append(out, object)
	}
	return out
}

// mutate changes one place of a value, more likely a deep one.
func mutate(r *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 || r.IntN(12) == 0 {
			break
		}
		keys := slices.Sorted(maps.Keys(v))
		key := keys[r.IntN(len(keys))]
		if r.IntN(6) == 0 {
			delete(v, key)
			return v
		}
		v[key] = mutate(r, v[key])
		return v
	case []any:
		if len(v) == 0 || r.IntN(12) == 0 {
			break
		}
		i := r.IntN(len(v))
		if r.IntN(6) == 0 {
			return slices.Delete(v, i, i+1)
		}
		v[i] = mutate(r, v[i])
		return v
	case float64:
		return []any{0, -1, 1, v * 2, 1 << 31, -v, int64(1) << 62}[r.IntN(7)]
	case string:
		return []any{"", v + "x", "-1", "0", "1e9", "node-0", "tpu-4x4", strings.Repeat("a", 300), strings.ToUpper(v)}[r.IntN(9)]
	case bool:
		return !v
	}
	return []any{nil, map[string]any{}, []any{}, "", 0}[r.IntN(5)]
}
