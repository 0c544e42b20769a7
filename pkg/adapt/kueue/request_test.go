package kueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const driver = "tpu.example.com"

// request is a Workload with everything that it refers to.
type request struct {
	job       *batchv1.Job
	wl        kueuetest.Workload
	templates map[string]*resourcev1.ResourceClaimTemplate
	claims    map[string]*resourcev1.ResourceClaim
	flavors   map[string]*kueue.ResourceFlavor
	nodes     []*corev1.Node
}

func newRequest() *request {
	job := kueuetest.NewJob("train", "tpu-4x4", 4)
	return &request{
		job: job, wl: kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start),
		templates: map[string]*resourcev1.ResourceClaimTemplate{"tpu-4x4": kueuetest.NewTemplate("tpu-4x4"), "nic": kueuetest.NewTemplate("nic"), "gpu": kueuetest.NewTemplate("gpu")},
		claims:    map[string]*resourcev1.ResourceClaim{},
		flavors:   map[string]*kueue.ResourceFlavor{kueuetest.Flavor: kueuetest.NewFlavor(kueuetest.Flavor)},
		nodes:     []*corev1.Node{dratest.Node("node-1"), dratest.Node("node-2")},
	}
}

func (r *request) read() (adaptkueue.Request, string) {
	s := &snapshot.Snapshot{AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)}, Nodes: r.nodes}
	s.ResourceSlices = []*resourcev1.ResourceSlice{
		dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1", "node-2")).ResourceSlice,
		dratest.NewSlice("u", "nic.example.com", "nics").Device(dratest.NewDevice("n", "nic").On("node-2")).ResourceSlice,
	}
	// Nothing of the class gpu is published.
	s.DeviceClasses = []*resourcev1.DeviceClass{
		dratest.ByTopology("tpu-4x4", driver, "4x4"), dratest.Class("nic", `device.driver == "nic.example.com"`), dratest.Class("gpu", `device.driver == "gpu.example.com"`),
	}
	req, refusal := adaptkueue.Read(r.wl.Workload, adaptkueue.Lookup{
		Template: func(ns, name string) *resourcev1.ResourceClaimTemplate {
			if ns != kueuetest.Namespace {
				return nil
			}
			return r.templates[name]
		},
		Claim:     func(_, name string) *resourcev1.ResourceClaim { return r.claims[name] },
		Flavor:    func(name string) *kueue.ResourceFlavor { return r.flavors[name] },
		Job:       func(_, name string) *batchv1.Job { return map[string]*batchv1.Job{"train": r.job}[name] },
		Nodes:     nodes.NewEligibility(r.nodes),
		Inventory: dra.NewCache().Read(s).Inventory,
	})
	if refusal != nil {
		return req, refusal.Error()
	}
	return req, ""
}

func (r *request) podSet() *kueue.PodSet { return &r.wl.Spec.PodSets[0] }

func (r *request) entries(entries ...corev1.PodResourceClaim) {
	r.podSet().Template.Spec.ResourceClaims = entries
}

func fromTemplate(name, template string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To(template)}
}

func byName(name, claim string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: name, ResourceClaimName: ptr.To(claim)}
}

func annotate(key, value string) func(*request) {
	return func(r *request) { r.podSet().Template.Annotations = map[string]string{key: value} }
}

func TestRead(t *testing.T) {
	got, refusal := newRequest().read()
	if refusal != "" {
		t.Fatal(refusal)
	}
	want := adaptkueue.Request{
		Managed: true, Flavor: "tpu-v5e", Counts: map[string]int32{"main": 4},
		Templates: map[adaptkueue.PodClaim]berth.TemplateReference{{PodSet: "main", Name: "tpu"}: {Name: "tpu-4x4", UID: "template-tpu-4x4"}},
		Owner:     berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "train"},
		Gang: gang.Gang{
			Key: gang.Key{Namespace: "ml", Name: "job-train"}, UID: "wl-train",
			PodSets: []gang.PodSet{{
				Name: "main", Count: 4, Requests: map[string]int64{"cpu": 1000, "pods": 1000}, Ineligible: map[string]string{},
				Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{Name: "slice", Class: "tpu-4x4", Count: 1}}}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefusals(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*request)
		want   string
	}{
		{"the template is not there", func(r *request) { delete(r.templates, "tpu-4x4") }, "ClaimMissing: ResourceClaimTemplate tpu-4x4 of pod claim tpu does not exist"},
		{"the template is younger than the quota", func(r *request) {
			r.templates["tpu-4x4"].CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Second))
		}, "TemplateReplaced: ResourceClaimTemplate tpu-4x4 of pod claim tpu was created after Kueue had charged for another one of that name"},
		{"the claim is not there", func(r *request) { r.entries(byName("tpu", "mine")) }, "ClaimMissing: ResourceClaim mine of pod claim tpu does not exist"},
		{"a claim by name", func(r *request) {
			r.entries(byName("tpu", "mine"))
			r.claims["mine"] = &resourcev1.ResourceClaim{Spec: r.templates["tpu-4x4"].Spec.Spec}
		}, "Unsupported: pod claim tpu names ResourceClaim mine: use a ResourceClaimTemplate, so that Berth can make a claim for each slice"},
		{"nine claims", func(r *request) {
			for i := range 8 {
				r.podSet().Template.Spec.ResourceClaims = append(r.podSet().Template.Spec.ResourceClaims, fromTemplate(fmt.Sprint("tpu-", i), "tpu-4x4"))
			}
		}, "TooManyClaims: a pod of pod set main has 9 claims for managed devices, at most 8 are possible"},
		{"the ninth claim, after eight for others", func(r *request) {
			var all []corev1.PodResourceClaim
			for i := range 8 {
				all = append(all, fromTemplate(fmt.Sprint("nic-", i), "nic"))
			}
			r.entries(append(all, fromTemplate("tpu", "tpu-4x4"))...)
		}, ""},
		{"a request that cannot be reserved", func(r *request) {
			r.templates["tpu-4x4"].Spec.Spec.Devices.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
		}, "Unsupported: claim tpu: allocationMode All in request slice is not supported for devices that Berth manages (tpu-4x4)"},

		{"our label", func(r *request) { r.podSet().Template.Labels = map[string]string{berth.LabelReservation: "x"} }, "ReservedKeys: the pod template of pod set main carries keys that only Berth sets: remove label berth.dev/reservation"},
		{"all of our keys", func(r *request) {
			r.podSet().Template.Labels = map[string]string{berth.LabelReservation: "x", "app": "mine"}
			r.podSet().Template.Annotations = map[string]string{
				berth.AnnotationHosts: "h", berth.AnnotationContract: "v1", berth.AnnotationPodsPerJob: "2", berth.AnnotationClaimPrefix + "tpu": "p/4", "note": "mine",
			}
		}, "ReservedKeys: the pod template of pod set main carries keys that only Berth sets: remove annotation berth.dev/contract, annotation berth.dev/hosts, annotation berth.dev/pods-per-job, annotation claim.berth.dev/tpu, label berth.dev/reservation"},

		{"a count that may shrink", func(r *request) { r.podSet().MinCount = ptr.To[int32](2) }, "CountMismatch: pod set main may run with fewer pods (minCount): a slice is whole, so leave minCount out"},
		{"fewer admitted", func(r *request) { r.wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3) }, "CountMismatch: pod set main has 4 pods and Kueue admitted 3: a slice is whole"},
		{"fewer admitted than what succeeded explains", func(r *request) {
			r.wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](2)
			r.wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 1}}
		}, "CountMismatch: pod set main has 4 pods and Kueue admitted 2: a slice is whole"},
		{"fewer admitted, others succeeded", func(r *request) {
			r.wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3)
			r.wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "other", Count: 1}}
		}, "CountMismatch: pod set main has 4 pods and Kueue admitted 3: a slice is whole"},

		{"slices in words", annotate(berth.AnnotationSlices, "two"), `NotDivisible: annotation berth.dev/slices is "two": it must be a whole number of slices, 1 or more, in plain digits`},
		{"no slices", annotate(berth.AnnotationSlices, "0"), `NotDivisible: annotation berth.dev/slices is "0": it must be a whole number of slices, 1 or more, in plain digits`},
		{"slices with a sign", annotate(berth.AnnotationSlices, "+2"), `NotDivisible: annotation berth.dev/slices is "+2": it must be a whole number of slices, 1 or more, in plain digits`},
		{"slices with a zero", annotate(berth.AnnotationSlices, "02"), `NotDivisible: annotation berth.dev/slices is "02": it must be a whole number of slices, 1 or more, in plain digits`},
		{"half a slice", annotate(berth.AnnotationSlices, "0.5"), `NotDivisible: annotation berth.dev/slices is "0.5": it must be a whole number of slices, 1 or more, in plain digits`},

		{"slices on the Job itself", func(r *request) { r.job.Annotations = map[string]string{berth.AnnotationSlices: "2"} },
			`CountMismatch: annotation berth.dev/slices: "2" stands on the Job itself, where it has no effect: set it on the Job's pod template (spec.template.metadata.annotations)`},
		{"one slice on the Job itself", func(r *request) { r.job.Annotations = map[string]string{berth.AnnotationSlices: "1"} }, ""},
		{"slices on both", func(r *request) {
			r.job.Annotations = map[string]string{berth.AnnotationSlices: "2"}
			annotate(berth.AnnotationSlices, "1")(r)
		}, ""},

		{"an interconnect of another word", annotate(berth.AnnotationInterconnect, "Required"), `Unsupported: annotation berth.dev/interconnect is "Required": it must be required or preferred`},
		{"an interconnect of no word", annotate(berth.AnnotationInterconnect, ""), `Unsupported: annotation berth.dev/interconnect is "": it must be required or preferred`},

		{"hosts of Kueue's choice", func(r *request) {
			r.wl.Status.Admission.PodSetAssignments[0].TopologyAssignment = &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
		}, "TopologyAssigned: flavor tpu-v5e has a topology (Kueue's topology-aware scheduling), which would choose other hosts: use a flavor without topologyName"},
		{"hosts that Kueue will choose, by one flavor of two", func(r *request) {
			r.flavors["racks"] = kueuetest.NewFlavor("racks")
			r.flavors["racks"].Spec.TopologyName = ptr.To[kueue.TopologyReference]("racks")
			assigned := &r.wl.Status.Admission.PodSetAssignments[0]
			assigned.Flavors["memory"] = "racks"
			assigned.DelayedTopologyRequest = ptr.To(kueue.DelayedTopologyRequestStatePending)
		}, "TopologyAssigned: flavor racks has a topology (Kueue's topology-aware scheduling), which would choose other hosts: use a flavor without topologyName"},

		{"no ranks", func(r *request) { r.job.Spec.CompletionMode = nil }, "Unsupported: the pods have no rank: set spec.completionMode to Indexed"},
		{"the Job is gone", func(r *request) { r.job = nil }, "ClaimMissing: Job train does not exist"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRequest()
			row.change(r)
			if _, got := r.read(); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

// What Berth does not manage is none of its business, whatever it looks like.
func TestReadNothingManaged(t *testing.T) {
	for name, change := range map[string]func(*request){
		"no claims":               func(r *request) { r.entries() },
		"a claim of neither kind": func(r *request) { r.entries(corev1.PodResourceClaim{Name: "x"}) },
		"a template for others":   func(r *request) { r.entries(fromTemplate("nic", "nic")) },
		"a claim by name for others": func(r *request) {
			r.entries(byName("nic", "mine"))
			r.claims["mine"] = &resourcev1.ResourceClaim{Spec: r.templates["nic"].Spec.Spec}
		},
		"nine templates for others":    func(r *request) { r.entries(make([]corev1.PodResourceClaim, 9)...) },
		"our keys, which do not apply": func(r *request) { r.entries(); annotate(berth.AnnotationHosts, "h")(r) },
		"no ranks, which do not apply": func(r *request) { r.entries(); r.job = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest()
			change(r)
			if got, refusal := r.read(); refusal != "" || got.Managed || len(got.Gang.PodSets) > 0 {
				t.Errorf("refusal %q, request %+v", refusal, got)
			}
		})
	}
}

// While nothing of what a gang asks for is published it may be none of Berth's business: it waits, whatever it looks like.
func TestReadNothingPublished(t *testing.T) {
	const gone = "ShapeUnknown: DeviceClass gpu selects no device that is published now"
	devices := func(r *request) *resourcev1.DeviceClaim { return &r.templates["gpu"].Spec.Spec.Devices }
	for _, row := range []struct {
		name   string
		change func(*request)
		want   string
	}{
		{"a gang that Berth could serve", func(*request) {}, ""},
		{"pods of another kind", func(r *request) {
			r.wl.OwnerReferences[0].Kind, r.wl.OwnerReferences[0].APIVersion = "JobSet", "jobset.x-k8s.io/v1alpha2"
		}, gone},
		{"pods of another kind, no such class", func(r *request) {
			devices(r).Requests[0].Exactly.DeviceClassName = "unknown"
			r.wl.OwnerReferences[0].Kind = "JobSet"
		}, "ShapeUnknown: there is no DeviceClass unknown"},
		{"no ranks", func(r *request) { r.job.Spec.CompletionMode = nil }, gone},
		{"more completions than pods at once", func(r *request) { r.job.Spec.Completions = ptr.To[int32](8) }, gone},
		{"slices on the Job itself", func(r *request) { r.job.Annotations = map[string]string{berth.AnnotationSlices: "2"} }, gone},
		{"the Job is gone", func(r *request) { r.job = nil }, "ClaimMissing: Job train does not exist"},
		{"a count that may shrink", func(r *request) { r.podSet().MinCount = ptr.To[int32](2) }, gone},
		{"our label", func(r *request) { r.podSet().Template.Labels = map[string]string{berth.LabelReservation: "x"} }, gone},
		{"constraints", func(r *request) { devices(r).Constraints = make([]resourcev1.DeviceConstraint, 1) }, gone},
		{"beside devices that Berth does not manage", func(r *request) {
			devices(r).Requests = append(devices(r).Requests, r.templates["nic"].Spec.Spec.Devices.Requests...)
		}, gone},
		{"a claim by name", func(r *request) {
			r.entries(byName("gpu", "mine"))
			r.claims["mine"] = &resourcev1.ResourceClaim{Spec: r.templates["gpu"].Spec.Spec}
		}, gone},
		{"a claim by name beside a managed one", func(r *request) {
			r.entries(fromTemplate("tpu", "tpu-4x4"), byName("gpu", "mine"))
			r.claims["mine"] = &resourcev1.ResourceClaim{Spec: r.templates["gpu"].Spec.Spec}
		}, gone},
		{"hosts of Kueue's choice", func(r *request) {
			r.wl.Status.Admission.PodSetAssignments[0].TopologyAssignment = &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
		}, gone},
		{"no ranks, beside a managed claim", func(r *request) {
			r.entries(fromTemplate("tpu", "tpu-4x4"), fromTemplate("gpu", "gpu"))
			r.job.Spec.CompletionMode = nil
		}, "Unsupported: the pods have no rank: set spec.completionMode to Indexed"},
		{"nine claims, one of them managed", func(r *request) {
			r.entries(fromTemplate("tpu", "tpu-4x4"))
			for i := range 8 {
				r.podSet().Template.Spec.ResourceClaims = append(r.podSet().Template.Spec.ResourceClaims, fromTemplate(fmt.Sprint("gpu-", i), "gpu"))
			}
		}, gone},
		{"the template is younger than the quota", func(r *request) {
			r.templates["gpu"].CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Second))
		}, gone},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRequest()
			r.entries(fromTemplate("gpu", "gpu"))
			row.change(r)
			if _, got := r.read(); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestReadSeveralPodSets(t *testing.T) {
	r := newRequest()
	leader := *r.podSet().DeepCopy()
	leader.Name, leader.Count, leader.Template.Spec.ResourceClaims = "leader", 1, nil
	second := *r.podSet().DeepCopy()
	second.Name, second.Count = "second", 8
	second.Template.Annotations = map[string]string{berth.AnnotationSlices: "2"}
	r.wl.Spec.PodSets = []kueue.PodSet{leader, r.wl.Spec.PodSets[0], second}
	r.wl.QuotaReserved(kueuetest.Start)
	got, refusal := r.read()
	if refusal != "" {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff(map[string]int32{"main": 4, "second": 8}, got.Counts); diff != "" {
		t.Error(diff)
	}
	if sets := got.Gang.PodSets; len(sets) != 2 || sets[0].Name != "main" || sets[1].Name != "second" || sets[1].Slices != 2 || sets[1].Count != 8 {
		t.Errorf("%+v", got.Gang.PodSets)
	}
}

// Only a template that is certainly younger is another one: times count seconds, and who has no quota has been charged nothing.
func TestReadTemplates(t *testing.T) {
	for name, change := range map[string]func(*request){
		"as old as the quota": func(r *request) { r.templates["tpu-4x4"].CreationTimestamp = metav1.NewTime(kueuetest.Start) },
		"no quota": func(r *request) {
			r.templates["tpu-4x4"].CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Hour))
			r.wl.Status.Conditions = nil
		},
		"not ours": func(r *request) {
			r.entries(fromTemplate("nic", "nic"), fromTemplate("tpu", "tpu-4x4"))
			r.templates["nic"].CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Hour))
		},
	} {
		r := newRequest()
		change(r)
		got, refusal := r.read()
		want := map[adaptkueue.PodClaim]berth.TemplateReference{{PodSet: "main", Name: "tpu"}: {Name: "tpu-4x4", UID: "template-tpu-4x4"}}
		if diff := cmp.Diff(want, got.Templates); refusal != "" || diff != "" {
			t.Errorf("%s: %s %s", name, refusal, diff)
		}
	}
}

func TestReadInterconnect(t *testing.T) {
	for value, want := range map[string]gang.Interconnect{"required": gang.Required, "preferred": gang.Preferred} {
		r := newRequest()
		annotate(berth.AnnotationInterconnect, value)(r)
		if got, refusal := r.read(); refusal != "" || got.Gang.PodSets[0].Interconnect != want {
			t.Errorf("%s: %q, refusal %q", value, got.Gang.PodSets[0].Interconnect, refusal)
		}
	}
	if got, _ := newRequest().read(); got.Gang.PodSets[0].Interconnect != gang.Preferred {
		t.Errorf("%q is the default", got.Gang.PodSets[0].Interconnect)
	}
}

// A gang of which one rank has succeeded before an eviction gets a whole slice and three pods.
func TestReadAfterSuccess(t *testing.T) {
	r := newRequest()
	r.wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3)
	r.wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 1}}
	got, refusal := r.read()
	if refusal != "" || got.Counts["main"] != 3 || got.Gang.PodSets[0].Count != 4 {
		t.Errorf("refusal %q, counts %v, ranks %d", refusal, got.Counts, got.Gang.PodSets[0].Count)
	}
	// A pod of the former admission came to its end after Kueue had counted.
	r.wl.Status.ReclaimablePods[0].Count = 2
	got, refusal = r.read()
	if refusal != "" || got.Counts["main"] != 3 || got.Gang.PodSets[0].Count != 4 {
		t.Errorf("refusal %q, counts %v, ranks %d", refusal, got.Counts, got.Gang.PodSets[0].Count)
	}
}

// All pods came to their end while the gang was being evicted: Kueue admits none, and nobody needs a slice.
func TestReadAfterAllSucceeded(t *testing.T) {
	r := newRequest()
	r.wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](0)
	r.wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 4}}
	got, refusal := r.read()
	if refusal != "" || got.Managed || !got.Ended || len(got.Gang.PodSets) > 0 {
		t.Errorf("refusal %q, request %+v", refusal, got)
	}
	// What they asked for may be gone as well.
	clear(r.templates)
	if got, refusal := r.read(); refusal != "" || !got.Ended {
		t.Errorf("without the template: refusal %q, request %+v", refusal, got)
	}
}

func TestReadFlavors(t *testing.T) {
	r := newRequest()
	r.flavors["spot"] = kueuetest.NewFlavor("spot")
	r.flavors["spot"].Spec.NodeLabels = map[string]string{"kind": "spot"}
	r.flavors["spot"].Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	r.nodes[0].Labels["kind"] = "spot"
	r.nodes[0].Spec.Taints = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}
	r.wl.Status.Admission.PodSetAssignments[0].Flavors = map[corev1.ResourceName]kueue.ResourceFlavorReference{
		"cpu": "spot", "berth.dev/shares": "spot", "memory": "no longer there",
	}
	got, refusal := r.read()
	want := map[string]string{"node-2": "lacks the flavor's node label kind=spot"}
	if diff := cmp.Diff(want, got.Gang.PodSets[0].Ineligible); diff != "" || refusal != "" || got.Flavor != "spot" {
		t.Errorf("refusal %q, flavor %s: %s", refusal, got.Flavor, diff)
	}
	// Without an admission nothing is added.
	r.wl.Status.Admission = nil
	got, _ = r.read()
	want = map[string]string{"node-1": "has the taint spot:NoSchedule, which the pods do not tolerate"}
	if diff := cmp.Diff(want, got.Gang.PodSets[0].Ineligible); diff != "" || got.Flavor != "" || got.Counts["main"] != 4 {
		t.Errorf("flavor %q: %s", got.Flavor, diff)
	}
}

// Flavors that contradict each other are read the same way each time, or the sentence on the Workload would flap.
func TestReadContradictingFlavors(t *testing.T) {
	for range 20 {
		r := newRequest()
		for _, name := range []string{"a", "z"} {
			r.flavors[name] = kueuetest.NewFlavor(name)
			r.flavors[name].Spec.NodeLabels = map[string]string{"kind": name}
		}
		r.wl.Status.Admission.PodSetAssignments[0].Flavors = map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "z", "memory": "a", "berth.dev/shares": "z"}
		got, _ := r.read()
		want := map[string]string{"node-1": "lacks the flavor's node label kind=z", "node-2": "lacks the flavor's node label kind=z"}
		if diff := cmp.Diff(want, got.Gang.PodSets[0].Ineligible); diff != "" {
			t.Fatal(diff)
		}
	}
}
