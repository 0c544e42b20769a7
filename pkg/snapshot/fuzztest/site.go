package fuzztest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Drivers of Site.
const (
	Slices = "tpu.example.com"
	Local  = "gpu.example.com"
)

// Site has something of everything: a pool of eight hosts with slices of one, four and eight hosts that share counters,
// three hosts of node-local devices, some of which many may share, a device taint, a gang that runs, one that waits for
// slices, one for devices and one for parts of them, two folds, a stranger's claim and a stranger's pod. It is valid, and nothing of it
// is overdrawn.
func Site() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(Local), dratest.Pool(Slices)},
		DeviceClasses: []*resourcev1.DeviceClass{
			dratest.ByTopology("one", Slices, "one"), dratest.ByTopology("four", Slices, "four"), dratest.ByTopology("eight", Slices, "eight"),
			dratest.ByTopology("gpu", Local, "gpu"), dratest.ByTopology("nic", Local, "nic"),
		},
		DeviceTaintRules: []*resourcev1.DeviceTaintRule{{
			ObjectMeta: metav1.ObjectMeta{Name: "bad-gpu"},
			Spec: resourcev1.DeviceTaintRuleSpec{
				DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(Local), Pool: ptr.To("g2"), Device: ptr.To("gpu-1")},
				Taint:          resourcev1.DeviceTaint{Key: "example.com/bad", Effect: resourcev1.DeviceTaintEffectNoSchedule},
			},
		}},
		AdmissionChecks: []*kueue.AdmissionCheck{kueuetest.NewCheck(kueuetest.Check)},
		ResourceFlavors: []*kueue.ResourceFlavor{kueuetest.NewFlavor(kueuetest.Flavor)},
		ClusterQueues: []*kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: kueuetest.Queue}, Spec: kueue.ClusterQueueSpec{
			AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueuetest.Check}}},
		}}},
		LocalQueues: []*kueue.LocalQueue{{
			ObjectMeta: metav1.ObjectMeta{Namespace: kueuetest.Namespace, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueuetest.Queue},
		}},
		Cohorts: []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "all"}}},
		CapacityFolds: []*berth.CapacityFold{
			fold("slices", berth.FoldTarget{Kind: berth.FoldCohort, Name: "all"}, "one", "four", "eight"),
			fold("gpus", berth.FoldTarget{Kind: berth.FoldClusterQueue, Name: kueuetest.Queue}, "gpu"),
		},
		Configs: []*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}}},
	}
	hardware(s)
	for _, class := range []string{"one", "four", "eight", "gpu", "nic"} {
		s.ResourceClaimTemplates = append(s.ResourceClaimTemplates, kueuetest.NewTemplate(class))
	}
	submit(s, "waits", "eight", 8)
	submit(s, "loose", "gpu", 2)
	submit(s, "shares", "nic", 3)
	s.ResourceClaimTemplates[4].Spec.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"gigabits": resource.MustParse("35")},
	}
	running(s)

	part := dratest.Result(Local, "g0", "nic")
	part.ShareID = ptr.To(types.UID("11111111-1111-1111-1111-111111111111"))
	part.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"gigabits": resource.MustParse("30")}
	foreign := dratest.Claim("other", "foreign", dratest.Result(Local, "g0", "gpu-0"), part)
	foreign.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "stranger", UID: "stranger"}}
	s.ResourceClaims = append(s.ResourceClaims, foreign)
	s.Pods = append(s.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "stranger", UID: "stranger"},
		Spec: corev1.PodSpec{NodeName: "g0", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30")},
		}}}},
	})
	return s
}

// fold is a CapacityFold of classes into the flavor that every gang is assigned.
func fold(name string, target berth.FoldTarget, classes ...string) *berth.CapacityFold {
	return &berth.CapacityFold{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: berth.CapacityFoldSpec{
		DeviceClasses: classes, Flavor: kueuetest.Flavor, Resource: "berth.dev/shares", Mode: berth.FoldLive, Targets: []berth.FoldTarget{target},
	}}
}

func hardware(s *snapshot.Snapshot) {
	var hosts []string
	for i := range 8 {
		hosts = append(hosts, fmt.Sprintf("h%d", i))
	}
	devices := dratest.NewSlice("pod-a-devices", Slices, "pod-a").Of(2).
		Device(dratest.NewDevice("eight", "eight").On(hosts...).Consumes("hosts", "4", hosts...)).
		Device(dratest.NewDevice("four-0", "four").On(hosts[:4]...).Consumes("hosts", "4", hosts[:4]...)).
		Device(dratest.NewDevice("four-4", "four").On(hosts[4:]...).Consumes("hosts", "4", hosts[4:]...))
	for _, h := range hosts {
		devices = devices.Device(dratest.NewDevice("one-"+h, "one").On(h).Consumes("hosts", "4", h))
	}
	counters := dratest.NewSlice("pod-a-counters", Slices, "pod-a").Of(2).Counters("hosts", "4", hosts...)
	s.ResourceSlices = append(s.ResourceSlices, devices.ResourceSlice, counters.ResourceSlice)
	for i := range 3 {
		name := fmt.Sprintf("g%d", i)
		hosts = append(hosts, name)
		slice := dratest.NewSlice(name, Local, name).Node(name)
		for d := range 2 {
			slice = slice.Device(dratest.NewDevice(fmt.Sprintf("gpu-%d", d), "gpu"))
		}
		slice = slice.Device(shared("nic", "gigabits"))
		s.ResourceSlices = append(s.ResourceSlices, slice.ResourceSlice)
	}
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "example.com/rack"}
	for i, h := range hosts {
		n := dratest.Node(h)
		n.Labels["example.com/rack"] = fmt.Sprint(i % 2)
		s.Nodes = append(s.Nodes, n)
	}
}

// shared is a device of which many may have a part, by tens of a hundred.
func shared(name, capacity string) dratest.Device {
	d := dratest.NewDevice(name, "nic")
	ten := resource.MustParse("10")
	d.AllowMultipleAllocations = ptr.To(true)
	d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{resourcev1.QualifiedName(capacity): {
		Value:         resource.MustParse("100"),
		RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &ten, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &ten, Step: &ten}},
	}}
	return d
}

// submit adds a gang that has quota.
func submit(s *snapshot.Snapshot, name, class string, pods int32) (*batchv1.Job, kueuetest.Workload) {
	job := kueuetest.NewJob(name, class, pods)
	wl := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start)
	s.Jobs, s.Workloads = append(s.Jobs, job), append(s.Workloads, wl.Workload)
	return job, wl
}

// running adds a gang that holds a slice of four, with one of its pods bound and one still gated.
func running(s *snapshot.Snapshot) {
	job, wl := submit(s, "runs", "four", 4)
	wl.Admitted().Named("res")
	res := kueuetest.NewReservation("res", wl, job, "four-4", "h4", "h5", "h6", "h7")
	res.Status.Phase = berth.PhaseHandedOver
	device := &res.Spec.PodSets[0].Claims[0].Devices[0]
	for _, h := range device.Hosts {
		device.Charge = append(device.Charge, berth.CounterCharge{CounterSet: "hosts", Counter: h, Milli: 4000})
	}
	s.Reservations = append(s.Reservations, res)
	story, err := json.Marshal([]berth.ReservedDevice{*device})
	if err != nil {
		panic(err) // plain strings and numbers
	}
	claim := dratest.Claim(res.Namespace, res.Spec.PodSets[0].Claims[0].Prefix+"-0", dratest.Result(Slices, "pod-a", "four-4"))
	claim.UID, claim.Finalizers = "claim", []string{berth.FinalizerHold}
	claim.Labels = map[string]string{berth.LabelReservation: res.Name}
	claim.Annotations = map[string]string{
		berth.AnnotationReservationUID: string(res.UID), berth.AnnotationWorkload: wl.Name, berth.AnnotationWorkloadUID: string(wl.UID),
		berth.AnnotationEpoch: res.Spec.Epoch, berth.AnnotationDevices: string(story),
	}
	claim.Spec = s.ResourceClaimTemplates[1].Spec.Spec
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "kueue.x-k8s.io", Resource: "workloads", Name: wl.Name, UID: wl.UID}}
	for rank := range 2 {
		pod := kueuetest.NewPod(res, rank)
		if rank == 0 {
			pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.Status.Phase = "h4", nil, corev1.PodRunning
		}
		s.Pods = append(s.Pods, pod)
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: types.UID(pod.Name)})
	}
	s.ResourceClaims = append(s.ResourceClaims, claim)
}

// Copy copies a snapshot with all its objects.
func Copy(s *snapshot.Snapshot) *snapshot.Snapshot {
	out := &snapshot.Snapshot{}
	from, to := reflect.ValueOf(s).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		list := reflect.MakeSlice(from.Field(i).Type(), 0, from.Field(i).Len())
		for j := range from.Field(i).Len() {
			if object, ok := from.Field(i).Index(j).Interface().(runtime.Object); ok {
				list = reflect.Append(list, reflect.ValueOf(object.DeepCopyObject()))
			}
		}
		to.Field(i).Set(list)
	}
	return out
}

// Reversed is the same snapshot with every list in the opposite order. A Snapshot has no order, so it means the same.
func Reversed(s *snapshot.Snapshot) *snapshot.Snapshot {
	out := &snapshot.Snapshot{}
	from, to := reflect.ValueOf(s).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		list := reflect.MakeSlice(from.Field(i).Type(), 0, from.Field(i).Len())
		for j := range slices.Backward(make([]struct{}, from.Field(i).Len())) {
			list = reflect.Append(list, from.Field(i).Index(j))
		}
		to.Field(i).Set(list)
	}
	return out
}
