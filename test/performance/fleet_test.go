package performance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// ask is a gang of pods for k devices of a class that spans so many hosts.
func ask(class string, span, k int) gang.Gang {
	return gang.Gang{Key: gang.Key{Namespace: "ml", Name: "a"}, PodSets: []gang.PodSet{{
		Name: "main", Count: span * k, Slices: k, Requests: map[string]int64{"cpu": 1000, "pods": 1000},
		Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{Name: "r", Class: class, Count: 1}}}},
	}}}
}

// fleet is 10,000 hosts or so as API objects: pools of cubes and racks, half of them held by gangs that run, and as many
// pods on each host as is usual.
type fleet struct {
	*snapshot.Snapshot
	version int
}

const podsPerHost = 30

func newFleet(tb testing.TB, pools, racks, pods int) *fleet {
	tb.Helper()
	site := &worlds.Site{}
	for i := range pools {
		site.Add(worlds.Cubes(140)(fmt.Sprint("cubes-", i)))
	}
	for i := range racks {
		site.Add(worlds.Rack(fmt.Sprint("rack-", i)))
	}
	f := &fleet{Snapshot: &snapshot.Snapshot{ResourceSlices: dratest.Publish(site.Slices)}}
	f.AcceleratorPools = []*berth.AcceleratorPool{dratest.Pool(worlds.Driver)}
	for class := range site.Classes {
		f.DeviceClasses = append(f.DeviceClasses, dratest.ByTopology(class, worlds.Driver, class))
	}
	for _, h := range site.Hosts {
		n := dratest.Node(h.Name)
		for i := range 20 {
			n.Labels[fmt.Sprint("example.com/label-", i)] = "value"
		}
		f.Nodes = append(f.Nodes, n)
	}
	for _, s := range f.ResourceSlices {
		f.stamp(s)
	}
	for _, c := range f.DeviceClasses {
		f.stamp(c)
	}
	for _, n := range f.Nodes {
		f.stamp(n)
	}
	f.stamp(f.AcceleratorPools[0])
	f.reserveHalf(site)
	for i := range pods {
		f.Pods = append(f.Pods, f.pod(i, f.Nodes[i%len(f.Nodes)].Name))
	}
	return f
}

func (f *fleet) stamp(obj metav1.Object) {
	f.version++
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", f.version)))
	}
	obj.SetResourceVersion(fmt.Sprint(f.version))
}

// pod is a small pod as a web service has them, with what an API server and a kubelet add.
func (f *fleet) pod(i int, node string) *corev1.Pod {
	yes := true
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(50+i%7*10), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi")}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprintf("web-%d-5d4f8c7b9-%05d", i%1000, i), GenerateName: "web-5d4f8c7b9-", CreationTimestamp: metav1.Now(),
			Labels:          map[string]string{"app": fmt.Sprint("web-", i%1000), "pod-template-hash": "5d4f8c7b9", "team": fmt.Sprint(i % 50), "example.com/tier": "front"},
			Annotations:     map[string]string{"example.com/checksum": fmt.Sprintf("%064d", i%1000), "example.com/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: types.UID(fmt.Sprint(i % 1000)), Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: "default", SchedulerName: "default-scheduler", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{
				{Name: "web", Image: "registry.example.com/web:1.2.3", Command: []string{"/web", "--port=8080"}, Resources: corev1.ResourceRequirements{Requests: requests},
					Env:          []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
					VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}},
				{Name: "proxy", Image: "registry.example.com/proxy:4.5", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}},
			},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, {Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			Volumes:     []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "web", Ready: true, Image: "registry.example.com/web:1.2.3", ImageID: fmt.Sprintf("sha256:%064d", i%1000), ContainerID: fmt.Sprintf("containerd://%064d", i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "proxy", Ready: true, Image: "registry.example.com/proxy:4.5", ImageID: "sha256:0", ContainerID: fmt.Sprintf("containerd://%064d", i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	}
	f.stamp(p)
	return p
}

// reserveHalf has random gangs of one device hold half of the hosts: reservation, claim and Workload of each.
func (f *fleet) reserveHalf(site *worlds.Site) {
	inv := site.Inventory()
	rng := rand.New(rand.NewPCG(1, 1))
	l := halfTaken(inv, rng, 32)
	for i, h := range l.Holdings() {
		f.reserve(fmt.Sprint("gang-", i), inv.Device(h.Pool, h.Device))
	}
}

func (f *fleet) reserve(name string, d *inventory.Device) {
	device := berth.ReservedDevice{Request: "r", Driver: d.Pool.Driver, Pool: d.Pool.Name, Generation: d.Generation, Device: d.Name, Hosts: d.Hosts}
	for _, c := range d.Charge {
		device.Charge = append(device.Charge, berth.CounterCharge{CounterSet: c.CounterSet, Counter: c.Counter, Milli: c.Milli})
	}
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "job-" + name},
		Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: int32(len(d.Hosts)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}},
		}}}}},
	}
	f.stamp(wl)
	r := &berth.GangReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
	r.Spec.WorkloadRef = berth.WorkloadReference{Name: wl.Name, UID: wl.UID}
	r.Spec.PodSets = []berth.ReservedPodSet{{Name: "main", Count: int32(len(d.Hosts)), Hosts: d.Hosts, Claims: []berth.ReservedClaim{{
		PodClaim: "tpu", Prefix: "berth." + name, PodsPerClaim: int32(len(d.Hosts)), Devices: []berth.ReservedDevice{device},
	}}}}
	r.Status.Phase = berth.PhaseHandedOver
	f.stamp(r)
	c := dratest.Claim("ml", "berth."+name+"-0", dratest.Result(d.Pool.Driver, d.Pool.Name, d.Name))
	c.Labels = map[string]string{berth.LabelReservation: name}
	story, err := json.Marshal([]berth.ReservedDevice{device})
	if err != nil {
		panic(err)
	}
	c.Annotations = map[string]string{berth.AnnotationReservationUID: string(r.UID), berth.AnnotationDevices: string(story)}
	f.stamp(c)
	f.Workloads, f.Reservations, f.ResourceClaims = append(f.Workloads, wl), append(f.Reservations, r), append(f.ResourceClaims, c)
}
