package dra_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

func TestDomainByNodeLabel(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "pod-a").
		Device(dratest.NewDevice("one", "x").On("node-1")).
		Device(dratest.NewDevice("both", "x").On("node-1", "node-2")).
		Device(dratest.NewDevice("apart", "x").On("node-1", "node-10")).
		Device(dratest.NewDevice("missing", "x").On("node-1", "node-3")).
		Device(dratest.NewDevice("none", "x").On("node-10")).
		Device(dratest.NewDevice("nowhere", "x").Matching(corev1.NodeSelectorRequirement{Key: "z", Operator: "Exists"})))
	s.Nodes[0].Labels["example.com/rack"], s.Nodes[1].Labels["example.com/rack"] = "r1", "r1"
	cache := dra.NewCache()
	domains := func() map[string]string {
		inv := cache.Read(s).Inventory
		got := map[string]string{}
		for _, d := range inv.Pool(podA).Devices {
			got[d.Name] = d.Domain.By + "=" + d.Domain.Value
		}
		return got
	}
	none := map[string]string{"one": "=", "both": "=", "apart": "=", "missing": "=", "none": "=", "nowhere": "="}
	if diff := cmp.Diff(none, domains()); diff != "" {
		t.Error(diff)
	}
	// A pool is read again when its AcceleratorPool names an interconnect, and when a label changes.
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "example.com/rack"}
	const label = "label example.com/rack="
	want := map[string]string{"one": label + "r1", "both": label + "r1", "apart": label, "missing": label, "none": label, "nowhere": label}
	if diff := cmp.Diff(want, domains()); diff != "" {
		t.Error(diff)
	}
	s.Nodes[2] = s.Nodes[2].DeepCopy()
	s.Nodes[2].Labels["example.com/rack"] = "r1"
	want["apart"], want["none"] = label+"r1", label+"r1"
	if diff := cmp.Diff(want, domains()); diff != "" {
		t.Error(diff)
	}
}

func TestDomainByAttribute(t *testing.T) {
	with := func(name string, attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute) dratest.Device {
		d := dratest.NewDevice(name, "x").On("node-1")
		for k, v := range attributes {
			d.Attributes[k] = v
		}
		return d
	}
	type attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
	s := site(dratest.NewSlice("s", driver, "pod-a").
		Device(with("bare", attributes{"cube": {StringValue: ptr("a")}})).
		Device(with("qualified", attributes{driver + "/cube": {StringValue: ptr("a")}})).
		Device(with("number", attributes{"cube": {IntValue: ptr(int64(7))}})).
		Device(with("bool", attributes{"cube": {BoolValue: ptr(true)}})).
		Device(with("version", attributes{"cube": {VersionValue: ptr("1.2.3")}})).
		Device(with("list", attributes{"cube": {StringValues: []string{"a"}}})).
		Device(with("elsewhere", attributes{"other.example.com/cube": {StringValue: ptr("a")}})).
		Device(with("none", nil)))
	read := func(attribute string) map[string]string {
		s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{DeviceAttribute: attribute}
		got := map[string]string{}
		for _, d := range read(s).Inventory.Pool(podA).Devices {
			if d.Domain.By != "attribute "+attribute {
				t.Errorf("%s: %+v", d.Name, d.Domain)
			}
			got[d.Name] = d.Domain.Value
		}
		return got
	}
	want := map[string]string{"bare": "a", "qualified": "a", "number": "7", "bool": "true", "version": "1.2.3", "list": "", "elsewhere": "", "none": ""}
	if diff := cmp.Diff(want, read(driver+"/cube")); diff != "" {
		t.Error(diff)
	}
	// A bare name stands in the driver's own domain and in no other.
	if got := read("other.example.com/cube"); got["elsewhere"] != "a" || got["bare"] != "" {
		t.Errorf("%v", got)
	}
}

func TestDomainsOfAnInventory(t *testing.T) {
	s := site()
	for _, n := range s.Nodes {
		s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice(n.Name, driver, n.Name).Node(n.Name).Device(dratest.NewDevice("g", "x")).ResourceSlice)
		n.Labels["rack"] = map[string]string{"node-1": "r2", "node-2": "r10", "node-10": "r2"}[n.Name]
	}
	broken := dratest.NewSlice("broken", driver, "broken").Node("node-1").Of(2).Device(dratest.NewDevice("g", "x"))
	s.ResourceSlices = append(s.ResourceSlices, broken.ResourceSlice)
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "rack"}
	inv := read(s).Inventory
	at := func(pool string) int {
		i, _ := inv.Position(inventory.PoolID{Driver: driver, Name: pool})
		return i
	}
	want := []inventory.DomainMembers{
		{Domain: inventory.Domain{By: "label rack", Value: "r2"}, Pools: []inventory.DomainPool{{Pool: at("node-1"), Devices: []int32{0}}, {Pool: at("node-10"), Devices: []int32{0}}}},
		{Domain: inventory.Domain{By: "label rack", Value: "r10"}, Pools: []inventory.DomainPool{{Pool: at("node-2"), Devices: []int32{0}}}},
	}
	if diff := cmp.Diff(want, inv.Domains()); diff != "" {
		t.Error(diff)
	}
	if noun := inv.Domains()[0].Domain.Noun(); noun != "rack" {
		t.Errorf("it is called %s", noun)
	}
}
