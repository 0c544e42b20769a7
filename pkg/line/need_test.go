package line

import (
	"reflect"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Gangs that differ in anything but their names have different needs. A field that is added to a request and forgotten in
// needs.of fails here.
func TestNeedsTellEverythingApart(t *testing.T) {
	base := func() gang.Gang {
		return gang.Gang{Key: gang.Key{Namespace: "n", Name: "g"}, UID: "u", PodSets: []gang.PodSet{{
			Name: "main", Count: 4, Slices: 2, Interconnect: gang.Required,
			Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{
				Name: "slice", Class: "c", Count: 1, Capacity: []inventory.Amount{{Name: "memory", Milli: 1}}, Tolerations: []gang.Toleration{{Key: "k", Exists: true, Value: "v", Effect: "NoExecute"}},
			}}}},
			Requests: map[string]int64{"cpu": 1}, Ineligible: map[string]string{"h": "why"},
		}}}
	}
	n := needs{hosts: map[uintptr]string{}}
	same := base()
	same.Key.Name, same.UID = "other", "other"
	if n.of(base()) != n.of(same) {
		t.Error("equal gangs have different needs")
	}
	seen := map[string]string{n.of(base()): "nothing"}
	try := func(what string, g gang.Gang) {
		need := n.of(g)
		if other, twice := seen[need]; twice {
			t.Errorf("a change of %s looks like one of %s", what, other)
		}
		seen[need] = what
	}
	each := func(what string, of func(*gang.Gang) reflect.Value) {
		g := base()
		for i := range of(&g).NumField() {
			g := base()
			field := of(&g).Field(i)
			switch field.Kind() {
			case reflect.String:
				field.SetString(field.String() + "x")
			case reflect.Int, reflect.Int64:
				field.SetInt(field.Int() + 7)
			case reflect.Bool:
				field.SetBool(!field.Bool())
			default:
				field.SetZero()
			}
			try(what+"."+of(&g).Type().Field(i).Name, g)
		}
	}
	each("PodSet", func(g *gang.Gang) reflect.Value { return reflect.ValueOf(&g.PodSets[0]).Elem() })
	each("Claim", func(g *gang.Gang) reflect.Value { return reflect.ValueOf(&g.PodSets[0].Claims[0]).Elem() })
	each("Request", func(g *gang.Gang) reflect.Value { return reflect.ValueOf(&g.PodSets[0].Claims[0].Requests[0]).Elem() })
	each("Amount", func(g *gang.Gang) reflect.Value {
		return reflect.ValueOf(&g.PodSets[0].Claims[0].Requests[0].Capacity[0]).Elem()
	})
	each("Toleration", func(g *gang.Gang) reflect.Value {
		return reflect.ValueOf(&g.PodSets[0].Claims[0].Requests[0].Tolerations[0]).Elem()
	})
	asking := func(of []inventory.Amount, pods map[string]int64) gang.Gang {
		g := base()
		r := &g.PodSets[0].Claims[0].Requests[0]
		r.Tolerations, r.Capacity, g.PodSets[0].Requests = nil, of, pods
		return g
	}
	try("an amount of the device", asking([]inventory.Amount{{Name: "memory", Milli: 1}}, nil))
	try("an amount of the pods", asking(nil, map[string]int64{"memory": 1}))
	if len(seen) < 23 {
		t.Errorf("only %d needs", len(seen))
	}
}
