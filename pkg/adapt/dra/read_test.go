package dra_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const driver = "tpu.example.com"

var podA = inventory.PoolID{Driver: driver, Name: "pod-a"}

func ptr[T any](v T) *T { return &v }

func read(s *snapshot.Snapshot) *dra.View { return dra.NewCache().Read(s) }

func site(slices ...dratest.Slice) *snapshot.Snapshot {
	s := &snapshot.Snapshot{AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)}}
	for _, n := range []string{"node-1", "node-2", "node-10"} {
		s.Nodes = append(s.Nodes, dratest.Node(n))
	}
	for _, sl := range slices {
		s.ResourceSlices = append(s.ResourceSlices, sl.ResourceSlice)
	}
	return s
}

func TestHostsOfDevices(t *testing.T) { // Scenarios 26 and 28.
	in := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	byName := dratest.NewDevice("d", "x")
	byName.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "In", "node-2", "gone")}}}}
	named := dratest.NewDevice("d", "x")
	named.NodeName = ptr("node-10")
	everywhere := dratest.NewDevice("d", "x")
	everywhere.AllNodes = ptr(true)
	shared := dratest.NewDevice("d", "x").On("node-1").Shared()
	sharedByMany := dratest.NewDevice("d", "x").On("node-1", "node-2").Shared()
	takesNode := dratest.NewDevice("d", "x").On("node-1")
	takesNode.NodeAllocatableResources = map[corev1.ResourceName]resourcev1.NodeAllocatableResource{"cpu": {}}
	binds := dratest.NewDevice("d", "x").On("node-1", "node-2")
	binds.BindsToNode = ptr(true)
	tests := map[string]struct {
		device   dratest.Device
		hosts    []string
		byLabel  bool
		unusable string
	}{
		"listed hosts, natural order": {dratest.NewDevice("d", "x").On("node-10", "node-2", "node-1", "node-2"), []string{"node-1", "node-2", "node-10"}, false, ""},
		"listed host without a node":  {dratest.NewDevice("d", "x").On("node-2", "node-3"), []string{"node-2", "node-3"}, false, ""},
		"listed names":                {byName, []string{"gone", "node-2"}, false, ""},
		"named":                       {named, []string{"node-10"}, false, ""},
		"exists":                      {dratest.NewDevice("d", "x").Matching(in("rack", "Exists")), []string{"node-1", "node-2"}, true, ""},
		"not in":                      {dratest.NewDevice("d", "x").Matching(in("rack", "NotIn", "a")), []string{"node-2", "node-10"}, true, ""},
		"two requirements":            {dratest.NewDevice("d", "x").Matching(in("rack", "In", "a"), in(corev1.LabelHostname, "In", "node-1", "node-2")), []string{"node-1"}, true, ""},
		"matches nothing":             {dratest.NewDevice("d", "x").Matching(in("rack", "In", "z")), nil, true, ""},
		"bad operator":                {dratest.NewDevice("d", "x").Matching(in("rack", "Like", "z")), nil, true, "its node selector cannot be read"},
		"every node":                  {everywhere, nil, false, "every node reaches it, so it does not say where a gang would stand"},
		"shared":                      {shared, []string{"node-1"}, false, ""},
		"shared by many hosts":        {sharedByMany, []string{"node-1", "node-2"}, false, "it spans several hosts and may be allocated several times at once"},
		"takes of its node":           {takesNode, []string{"node-1"}, false, "it takes resources of its node, which only kube-scheduler counts"},
		"binds to one of many":        {binds, []string{"node-1", "node-2"}, false, "it spans several hosts but binds to the first node that uses it"},
		"nowhere":                     {dratest.NewDevice("d", "x"), nil, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := site(dratest.NewSlice("s", driver, "pod-a").Device(test.device))
			s.Nodes[0].Labels["rack"], s.Nodes[1].Labels["rack"] = "a", "b"
			inv := read(s).Inventory
			d := inv.Device(podA, "d")
			if diff := cmp.Diff(test.hosts, d.Hosts); diff != "" {
				t.Error(diff)
			}
			unusable := ""
			if d.Unusable != nil {
				unusable, _, _ = strings.Cut(d.Unusable.Detail, ":")
			}
			if d.ByLabel != test.byLabel || unusable != test.unusable {
				t.Errorf("by label %v, unusable %q", d.ByLabel, unusable)
			}
			for _, h := range d.Hosts {
				if host, known := inv.Host(h); !known || (host.Blocked != nil) != (h == "node-3" || h == "gone") {
					t.Errorf("host %s: %+v", h, host)
				}
			}
		})
	}
}

func TestRankLabel(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "x").On("node-1", "node-2", "node-10", "missing")))
	s.AcceleratorPools[0].Spec.RankLabel = "pos"
	s.Nodes[0].Labels["pos"], s.Nodes[2].Labels["pos"] = "10", "9"
	if diff := cmp.Diff([]string{"node-10", "node-1", "missing", "node-2"}, read(s).Inventory.Device(podA, "d").Hosts); diff != "" {
		t.Error(diff)
	}
}

func TestHostnameIsNotTheNodeName(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "x").On("a", "node-1")))
	s.Nodes[0].Labels[corev1.LabelHostname] = "a"
	inv := read(s).Inventory
	// The label node-1 belongs to nobody, although a node has that name.
	if diff := cmp.Diff([]string{"kubernetes.io/hostname=node-1", "node-1"}, inv.Device(podA, "d").Hosts); diff != "" {
		t.Error(diff)
	}
	if h, _ := inv.Host("kubernetes.io/hostname=node-1"); h.Blocked == nil || h.Blocked.Code != reason.HostMissing {
		t.Errorf("%+v", h)
	}
}

func TestPoolsAreComparedExactly(t *testing.T) { // Scenario 25.
	selector := func(p berth.PoolSelector) *berth.AcceleratorPool {
		a := dratest.Pool(driver)
		a.Spec.PoolSelector = &p
		return a
	}
	tests := map[string]struct {
		pool *berth.AcceleratorPool
		id   inventory.PoolID
		want bool
	}{
		"driver":             {dratest.Pool(driver), podA, true},
		"driver in capitals": {dratest.Pool(driver), inventory.PoolID{Driver: "TPU.example.com", Name: "pod-a"}, false},
		"longer driver":      {dratest.Pool(driver), inventory.PoolID{Driver: driver + ".org", Name: "pod-a"}, false},
		"name":               {selector(berth.PoolSelector{Names: []string{"pod-a"}}), podA, true},
		"longer name":        {selector(berth.PoolSelector{Names: []string{"pod-a"}}), inventory.PoolID{Driver: driver, Name: "pod-ab"}, false},
		"other case":         {selector(berth.PoolSelector{Prefixes: []string{"Pod"}}), podA, false},
		"prefix":             {selector(berth.PoolSelector{Names: []string{"x"}, Prefixes: []string{"pod-"}}), podA, true},
		"no selection":       {selector(berth.PoolSelector{}), podA, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := dra.NewManaged([]*berth.AcceleratorPool{test.pool}).Owner(test.id) != nil; got != test.want {
				t.Errorf("managed is %v", got)
			}
		})
	}
}

func TestClasses(t *testing.T) { // Scenario 29.
	d := dratest.NewDevice("d", "4x4").On("node-1")
	d.Attributes["other.example.com/topology"] = resourcev1.DeviceAttribute{StringValue: ptr("ring")}
	d.Attributes["rev"] = resourcev1.DeviceAttribute{VersionValue: ptr("1.10.0")}
	d.Attributes["links"] = resourcev1.DeviceAttribute{StringValues: []string{"a", "b"}}
	d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"chips": {Value: resource.MustParse("4")}}
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(d), dratest.NewSlice("u", "other.example.com", "x").Device(dratest.NewDevice("u", "free").On("node-2")))
	for name, expression := range map[string]string{
		"bare":       `device.attributes["tpu.example.com"].topology == "4x4"`,
		"qualified":  `device.attributes["other.example.com"].topology == "ring"`,
		"version":    `device.driver == "tpu.example.com" && device.attributes["tpu.example.com"].rev.isGreaterThan(semver("1.9.0"))`,
		"list":       `device.driver == "tpu.example.com" && device.attributes["tpu.example.com"].links.includes("b")`,
		"capacity":   `device.driver == "tpu.example.com" && device.capacity["tpu.example.com"].chips.compareTo(quantity("4")) == 0`,
		"everything": `true`,
		"unmanaged":  `device.driver == "other.example.com"`,
		"unguarded":  `device.attributes["other.example.com"].topology == "free"`,
		"nothing":    `device.driver == "TPU.example.com"`,
		"runtime":    `device.attributes["tpu.example.com"].nothere == "x"`,
		"syntax":     `device.driver ==`,
	} {
		s.DeviceClasses = append(s.DeviceClasses, dratest.Class(name, expression))
	}
	inv := read(s).Inventory
	for name, want := range map[string]inventory.ClassState{
		"bare": inventory.ClassManaged, "qualified": inventory.ClassManaged, "version": inventory.ClassManaged, "list": inventory.ClassManaged,
		"capacity": inventory.ClassManaged, "everything": inventory.ClassManaged, "unmanaged": inventory.ClassUnmanaged, "unguarded": inventory.ClassUnmanaged,
		"nothing": inventory.ClassEmpty, "runtime": inventory.ClassBroken, "syntax": inventory.ClassBroken, "absent": inventory.ClassUnknown,
	} {
		c := inv.Class(name)
		if c.State != want {
			t.Errorf("%s is %v (%s), want %v", name, c.State, c.Problem, want)
		}
		if want == inventory.ClassBroken && c.Problem == "" {
			t.Errorf("%s: no problem named", name)
		}
	}
}

func TestOldGenerationsDoNotSelect(t *testing.T) { // Scenario 6.
	old := dratest.NewSlice("old", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1"))
	next := dratest.NewSlice("new", driver, "pod-a").Generation(2).Of(2).Device(dratest.NewDevice("d", "2x2").On("node-1"))
	s := site(old, next)
	s.DeviceClasses = []*resourcev1.DeviceClass{dratest.ByTopology("big", driver, "4x4"), dratest.ByTopology("small", driver, "2x2")}
	inv := read(s).Inventory
	// Nothing selects by the old view; the rest of the new one may still bring such a device.
	if c := inv.Class("big"); c.State != inventory.ClassEmpty || len(c.Withheld) != 1 {
		t.Errorf("%+v", c)
	}
	c := inv.Class("small")
	if len(c.Devices) != 0 || len(c.Withheld) != 1 || c.Withheld[0].Problem.Code != reason.PoolIncomplete {
		t.Errorf("%+v", c)
	}
}

func TestTaintRules(t *testing.T) { // Scenario 10.
	rule := func(sel *resourcev1.DeviceTaintSelector, key string) *resourcev1.DeviceTaintRule {
		return &resourcev1.DeviceTaintRule{Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: sel, Taint: resourcev1.DeviceTaint{Key: key, Effect: "NoSchedule"}}}
	}
	s := site(dratest.NewSlice("s", driver, "pod-a").
		Device(dratest.NewDevice("a", "x").On("node-1").Taint("own", "v")).Device(dratest.NewDevice("b", "x").On("node-2")))
	fence := rule(&resourcev1.DeviceTaintSelector{Driver: ptr(driver)}, "fence")
	fence.Labels = map[string]string{dra.LabelFence: "tpu"}
	s.DeviceTaintRules = []*resourcev1.DeviceTaintRule{
		rule(nil, "none"), rule(&resourcev1.DeviceTaintSelector{}, "all"), rule(&resourcev1.DeviceTaintSelector{Device: ptr("b")}, "device"),
		rule(&resourcev1.DeviceTaintSelector{Driver: ptr(driver), Pool: ptr("pod-b")}, "other"), fence,
	}
	inv := read(s).Inventory
	want := []inventory.Taint{{Key: "all", Effect: "NoSchedule"}, {Key: "own", Value: "v", Effect: "NoSchedule"}}
	if diff := cmp.Diff(want, inv.Device(podA, "a").Taints); diff != "" {
		t.Error(diff)
	}
	want = []inventory.Taint{{Key: "all", Effect: "NoSchedule"}, {Key: "device", Effect: "NoSchedule"}}
	if diff := cmp.Diff(want, inv.Device(podA, "b").Taints); diff != "" {
		t.Error(diff)
	}
}

func TestCacheNoticesChanges(t *testing.T) { // Scenario 7.
	c := dra.NewCache()
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("a", "x").Matching(corev1.NodeSelectorRequirement{Key: "rack", Operator: "Exists"})))
	first := c.Read(s).Inventory.Pool(podA)
	s.Nodes[1] = s.Nodes[1].DeepCopy() // A heartbeat.
	if c.Read(s).Inventory.Pool(podA) != first {
		t.Error("an unchanged pool was read again")
	}
	s.Nodes[1] = s.Nodes[1].DeepCopy()
	s.Nodes[1].Labels["rack"] = "a"
	second := c.Read(s).Inventory.Pool(podA)
	if second == first || len(second.Device("a").Hosts) != 1 {
		t.Error("new node label not noticed")
	}
	s.ResourceSlices[0] = s.ResourceSlices[0].DeepCopy()
	s.ResourceSlices[0].Spec.Devices[0].Name = "b"
	if p := c.Read(s).Inventory.Pool(podA); p.Device("b") == nil || p.Device("a") != nil {
		t.Error("change in place not noticed")
	}
	s.DeviceTaintRules = []*resourcev1.DeviceTaintRule{{Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{}, Taint: resourcev1.DeviceTaint{Key: "k", Effect: "NoExecute"}}}}
	if p := c.Read(s).Inventory.Pool(podA); len(p.Device("b").Taints) != 1 {
		t.Error("new rule not noticed")
	}
	s.AcceleratorPools = nil
	if c.Read(s).Inventory.Pool(podA) != nil {
		t.Error("pool still managed")
	}
}

func TestClaim(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1")), dratest.NewSlice("u", "other", "x").Device(dratest.NewDevice("u", "nic").On("node-2")))
	s.DeviceClasses = []*resourcev1.DeviceClass{dratest.ByTopology("tpu", driver, "4x4"), dratest.Class("nic", `device.driver == "other"`)}
	inv := read(s).Inventory
	with := func(class string, change func(*resourcev1.ResourceClaimSpec)) *resourcev1.ResourceClaimSpec {
		spec := dratest.Request(class, 1)
		change(spec)
		return spec
	}
	exactly := func(change func(*resourcev1.ExactDeviceRequest)) func(*resourcev1.ResourceClaimSpec) {
		return func(s *resourcev1.ResourceClaimSpec) { change(s.Devices.Requests[0].Exactly) }
	}
	tests := map[string]struct {
		spec    *resourcev1.ResourceClaimSpec
		managed bool
		want    string
	}{
		"plain":     {dratest.Request("tpu", 1), true, ""},
		"unmanaged": {dratest.Request("nic", 1), false, ""},
		"unknown":   {dratest.Request("nothere", 1), true, ""},
		"empty":     {&resourcev1.ResourceClaimSpec{}, false, ""},
		"mixed": {with("tpu", func(s *resourcev1.ResourceClaimSpec) {
			s.Devices.Requests = append(s.Devices.Requests, dratest.Request("nic", 1).Devices.Requests[0])
		}), true, "Unsupported: claim c: it asks for devices of tpu, which Berth manages, and of nic, which it does not: split it into two claims"},
		"all":         {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.AllocationMode = resourcev1.DeviceAllocationModeAll })), true, "Unsupported: claim c: allocationMode All in request r is not supported for devices that Berth manages (tpu)"},
		"adminAccess": {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = ptr(true) })), true, "Unsupported: claim c: adminAccess in request r is not supported for devices that Berth manages (tpu)"},
		"selectors":   {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.Selectors = make([]resourcev1.DeviceSelector, 1) })), true, "Unsupported: claim c: selectors in request r is not supported for devices that Berth manages (tpu)"},
		"capacity":    {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.Capacity = needs("memory", "4Gi") })), true, ""},
		"fraction":    {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.Capacity = needs("memory", "1u") })), true, "Unsupported: claim c: request r asks for 1u of capacity memory, which cannot be counted"},
		"negative":    {with("tpu", exactly(func(e *resourcev1.ExactDeviceRequest) { e.Capacity = needs("memory", "-1") })), true, "Unsupported: claim c: request r asks for -1 of capacity memory, which cannot be counted"},
		"constraints": {with("tpu", func(s *resourcev1.ResourceClaimSpec) { s.Devices.Constraints = make([]resourcev1.DeviceConstraint, 1) }), true, "Unsupported: claim c: devices.constraints is not supported for devices that Berth manages (tpu)"},
		"config": {with("tpu", func(s *resourcev1.ResourceClaimSpec) {
			s.Devices.Config = make([]resourcev1.DeviceClaimConfiguration, 1)
		}), true, "Unsupported: claim c: devices.config is not supported for devices that Berth manages (tpu)"},
		"firstAvailable": {with("tpu", func(s *resourcev1.ResourceClaimSpec) {
			s.Devices.Requests[0] = resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "x", DeviceClassName: "tpu"}}}
		}), true, "Unsupported: claim c: firstAvailable in request r is not supported for devices that Berth manages (tpu)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, managed, r := dra.Claim(test.spec, "c", inv)
			got := ""
			if r != nil {
				got = r.Error()
			}
			if managed != test.managed || got != test.want {
				t.Errorf("managed %v, refusal\n got %s\nwant %s", managed, got, test.want)
			}
		})
	}
	spec := dratest.Request("tpu", 2)
	spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{
		{Key: "k", Operator: resourcev1.DeviceTolerationOpExists, Effect: "NoExecute"},
		{Key: "for-a-while", Operator: resourcev1.DeviceTolerationOpExists, Effect: "NoExecute", TolerationSeconds: ptr(int64(60))},
	}
	c, _, _ := dra.Claim(spec, "c", inv)
	if r := c.Requests[0]; c.PodClaim != "c" || r.Count != 2 || r.Class != "tpu" || len(r.Tolerations) != 1 || !r.Tolerations[0].Exists {
		t.Errorf("%+v", c)
	}
}

func needs(name resourcev1.QualifiedName, value string) *resourcev1.CapacityRequirements {
	return &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{name: resource.MustParse(value)}}
}

func TestHoldings(t *testing.T) { // Scenario 30.
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1")))
	admin := dratest.Result(driver, "pod-a", "d")
	admin.AdminAccess = ptr(true)
	forged := dratest.Claim("x", "not-ours", dratest.Result(driver, "pod-a", "d"))
	forged.Annotations = map[string]string{berth.AnnotationReservationUID: "uid"}
	ours := dratest.Claim("ml", "berth.a-0", dratest.Result(driver, "pod-a", "gone"))
	ours.Labels = map[string]string{berth.LabelReservation: "a"}
	ours.Annotations = map[string]string{
		berth.AnnotationReservationUID: "uid",
		berth.AnnotationDevices:        `[{"request":"r","driver":"tpu.example.com","pool":"pod-a","device":"gone","generation":1,"hosts":["node-2"],"charge":[{"counterSet":"cs","counter":"h","milli":4000}]}]`,
	}
	elsewhere := dratest.Claim("x", "gone", dratest.Result(driver, "pod-a", "also-gone"))
	elsewhere.Status.Allocation.NodeSelector = dratest.NewDevice("", "").On("node-1", "node-10").NodeSelector
	s.ResourceClaims = []*resourcev1.ResourceClaim{
		dratest.Claim("x", "admin", admin), dratest.Claim("x", "other", dratest.Result("other", "pod-a", "d")), forged, ours, elsewhere,
		{ObjectMeta: metav1.ObjectMeta{Name: "pending"}},
	}
	got := map[string]string{}
	for _, h := range read(s).Holdings(s, nil) {
		got[h.Owner] = h.Device + " " + h.Reservation
		switch h.Owner {
		case "ml/a":
			if len(h.Charge) != 1 || h.Charge[0].Milli != 4000 || h.Hosts[0] != "node-2" {
				t.Errorf("%+v", h)
			}
		case "x/gone":
			if diff := cmp.Diff([]string{"node-1", "node-10"}, h.Hosts); diff != "" {
				t.Error(diff)
			}
		}
	}
	want := map[string]string{"x/not-ours": "d ", "ml/a": "gone uid", "x/gone": "also-gone "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a shared device's holders have is told apart by claim and request: the reservation and its claims say the same.
func TestHoldingsOfShares(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1").Shared().Has("memory", "16Gi", nil)))
	share := func(request, memory string) resourcev1.DeviceRequestAllocationResult {
		r := dratest.Result(driver, "pod-a", "d")
		r.Request, r.ShareID = request, ptr(types.UID("1-"+request))
		r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
		return r
	}
	record := []berth.ReservedDevice{
		{Instance: 1, Request: "a", Driver: driver, Pool: "pod-a", Device: "d", Share: true, Capacity: []berth.CapacityShare{{Name: "memory", Milli: 2000}}},
		{Instance: 1, Request: "b", Driver: driver, Pool: "pod-a", Device: "d", Share: true, Capacity: []berth.CapacityShare{{Name: "memory", Milli: 3000}}},
	}
	raw, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	ours := dratest.Claim("ml", "berth.g-1", share("a", "2"), share("b", "3"))
	ours.Labels = map[string]string{berth.LabelReservation: "g"}
	ours.Annotations = map[string]string{berth.AnnotationReservationUID: "uid", berth.AnnotationDevices: string(raw)}
	s.ResourceClaims = []*resourcev1.ResourceClaim{ours, dratest.Claim("x", "theirs", share("r", "4500m"))}
	res := &berth.GangReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "g", UID: "uid"}}
	res.Spec.PodSets = []berth.ReservedPodSet{{Claims: []berth.ReservedClaim{{Prefix: "berth.g", Devices: record}}}}
	s.Reservations = []*berth.GangReservation{res}
	var got []string
	for _, h := range read(s).Holdings(s, nil) {
		got = append(got, fmt.Sprint(h.Owner, " ", h.Reservation, " ", h.Share, " ", h.Capacity))
	}
	slices.Sort(got)
	want := []string{
		"ml/g uid berth.g-1 a [{memory 2000}]", "ml/g uid berth.g-1 a [{memory 2000}]",
		"ml/g uid berth.g-1 b [{memory 3000}]", "ml/g uid berth.g-1 b [{memory 3000}]", "x/theirs  theirs r [{memory 4500}]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A capacity that cannot be counted keeps a shared device out of use; of another one it is as if it were not there.
func TestCapacities(t *testing.T) {
	q := func(s string) *resource.Quantity { return ptr(resource.MustParse(s)) }
	between := func(low, high, step *resource.Quantity) *resourcev1.CapacityRequestPolicy {
		return &resourcev1.CapacityRequestPolicy{Default: q("1"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: low, Max: high, Step: step}}
	}
	for name, test := range map[string]struct {
		value  string
		policy *resourcev1.CapacityRequestPolicy
		want   string
	}{
		"whole":             {"16Gi", nil, ""},
		"thousandths":       {"1500m", nil, ""},
		"range":             {"8", between(q("1"), q("4"), q("1")), ""},
		"no bounds":         {"8", &resourcev1.CapacityRequestPolicy{Default: q("500m")}, ""},
		"values":            {"8", &resourcev1.CapacityRequestPolicy{Default: q("1"), ValidValues: []resource.Quantity{*q("1"), *q("1500m")}}, ""},
		"millionths":        {"1u", nil, "its capacity c is 1u, which cannot be counted"},
		"too much":          {"10P", nil, "its capacity c is 10P, which cannot be counted"},
		"negative":          {"-1", nil, "its capacity c is -1, which cannot be counted"},
		"no minimum":        {"8", between(nil, q("4"), nil), "the request policy of its capacity c cannot be kept"},
		"no step":           {"8", between(q("1"), nil, q("0")), "the request policy of its capacity c cannot be kept"},
		"half a step":       {"8", between(q("1"), nil, q("500m")), "the request policy of its capacity c cannot be kept"},
		"values not sorted": {"8", &resourcev1.CapacityRequestPolicy{Default: q("1"), ValidValues: []resource.Quantity{*q("2"), *q("1")}}, "the request policy of its capacity c cannot be kept"},
	} {
		device := dratest.NewDevice("d", "x").On("node-1").Has("c", test.value, test.policy)
		whole := read(site(dratest.NewSlice("s", driver, "pod-a").Device(device))).Inventory.Device(podA, "d")
		shared := read(site(dratest.NewSlice("s", driver, "pod-a").Device(device.Shared()))).Inventory.Device(podA, "d")
		got := ""
		if shared.Unusable != nil {
			got = shared.Unusable.Detail
		}
		if got != test.want || whole.Unusable != nil || (len(whole.Capacity) == 1) != (test.want == "") || !shared.Shared || whole.Shared {
			t.Errorf("%s: shared %q, want %q; whole %+v", name, got, test.want, whole)
		}
	}
}
