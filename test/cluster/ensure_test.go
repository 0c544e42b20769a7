package cluster

import "testing"

func TestContains(t *testing.T) {
	whole := map[string]any{"spec": map[string]any{
		"n": int64(1), "off": false,
		"list": []any{map[string]any{"a": "x", "defaulted": "y"}, "z"},
	}}
	for name, tc := range map[string]struct {
		part any
		want bool
	}{
		"less":              {map[string]any{"spec": map[string]any{"n": int64(1)}}, true},
		"defaults in lists": {map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": "x"}, "z"}}}, true},
		"another number":    {map[string]any{"spec": map[string]any{"n": int64(2)}}, false},
		"zero is a value":   {map[string]any{"spec": map[string]any{"n": int64(0)}}, false},
		"false is a value":  {map[string]any{"spec": map[string]any{"off": false}}, true},
		"more":              {map[string]any{"spec": map[string]any{"new": int64(1)}}, false},
		"a shorter list":    {map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": "x"}}}}, false},
		"another kind":      {map[string]any{"spec": []any{}}, false},
	} {
		if got := contains(whole, tc.part); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
