package shapes

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// fleet is a scene and the hosts, pools and classes that one test brings.
type fleet struct {
	*scene.Scene
	hosts []string
	// brought is removed after the controller has stopped, the last first.
	brought []client.Object
}

func (f *fleet) bring(obj client.Object) {
	f.Helper()
	f.Create(obj)
	f.brought = append(f.brought, obj)
}

func (f *fleet) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := len(f.brought) - 1; i >= 0; i-- {
		if obj := f.brought[i]; client.IgnoreNotFound(f.Client.Delete(ctx, obj)) != nil {
			f.Errorf("%T %s cannot be removed", obj, obj.GetName())
		}
	}
}

// host makes a Node of 8 CPUs.
func (f *fleet) host(name string, labels map[string]string) {
	f.Helper()
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	all := map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}
	maps.Copy(all, labels)
	f.bring(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	})
	f.hosts = append(f.hosts, name)
}

func driver(class string) string { return class + ".example.com" }

// class makes a DeviceClass of all devices of its driver, the template of one of them, and gives the driver's pools to Berth.
func (f *fleet) class(name string, change ...func(*berth.AcceleratorPoolSpec)) {
	f.Helper()
	f.bring(&resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf("device.driver == %q", driver(name)),
		}}}},
	})
	f.Create(f.Template(name))
	pool := &berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: berth.AcceleratorPoolSpec{Driver: driver(name)}}
	for _, c := range change {
		c(&pool.Spec)
	}
	f.bring(pool)
}

// local publishes devices of a class that stand on one host. The pool is named after the host.
func (f *fleet) local(class, host string, devices ...resourcev1.Device) {
	f.Helper()
	f.bring(&resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: host + "-" + class},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver(class), NodeName: ptr.To(host), Devices: devices,
			Pool: resourcev1.ResourcePool{Name: host, Generation: 1, ResourceSliceCount: 1},
		},
	})
}

// pairs publishes a pool of devices over two hosts each: the first two, the next two and so on. change may be nil.
func (f *fleet) pairs(pool string, change func(i int, d *resourcev1.Device)) {
	f.Helper()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: pool},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver(pair), PerDeviceNodeSelection: ptr.To(true),
			Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range len(f.hosts) / 2 {
		d := resourcev1.Device{
			Name: fmt.Sprintf("pair-%d", i),
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: f.hosts[2*i : 2*i+2],
				}},
			}}},
		}
		if change != nil {
			change(i, &d)
		}
		slice.Spec.Devices = append(slice.Spec.Devices, d)
	}
	f.bring(slice)
}

// on keeps the pods of a Job to hosts with a label.
func on(label, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{label: value} }
}

// asks sets annotations of the pod template, given as key, value, key, value.
func asks(annotations ...string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		if j.Spec.Template.Annotations == nil {
			j.Spec.Template.Annotations = map[string]string{}
		}
		for i := 0; i < len(annotations); i += 2 {
			j.Spec.Template.Annotations[annotations[i]] = annotations[i+1]
		}
	}
}

// seat submits a Job, waits until it runs by rank, and until GangReserved says on what.
func (f *fleet) seat(job *batchv1.Job, slice string) *batchv1.Job {
	f.Helper()
	f.Submit(job)
	f.AwaitSeated(job)
	f.AwaitReserved(job, "True Reserved: "+slice)
	return job
}

// wait submits a Job and waits until GangReserved says why it waits. It must hold nothing then.
func (f *fleet) wait(job *batchv1.Job, why string) *batchv1.Job {
	f.Helper()
	f.Submit(job)
	f.AwaitReserved(job, "False "+why)
	f.holdsNothing(job)
	return job
}

func (f *fleet) holdsNothing(job *batchv1.Job) {
	f.Helper()
	wl, err := f.WorkloadOf(f.Context(), job)
	if err != nil {
		f.Fatal(err)
	}
	if r, err := f.ReservationOf(f.Context(), job); err == nil {
		f.Errorf("%s waits and has GangReservation %s", job.Name, r.Name)
	}
	for _, c := range f.claims() {
		if c.Annotations[berth.AnnotationWorkloadUID] == string(wl.UID) {
			f.Errorf("%s waits and has ResourceClaim %s", job.Name, c.Name)
		}
	}
}

// claims are the pinned ones of the namespace.
func (f *fleet) claims() map[string]*resourcev1.ResourceClaim {
	f.Helper()
	var list resourcev1.ResourceClaimList
	if err := f.Client.List(f.Context(), &list, client.InNamespace(f.Namespace)); err != nil {
		f.Fatal(err)
	}
	all := map[string]*resourcev1.ResourceClaim{}
	for i := range list.Items {
		if c := &list.Items[i]; strings.HasPrefix(c.Name, berth.ClaimNamePrefix) {
			all[c.Name] = c
		}
	}
	return all
}

// reservation of a gang, which must have one.
func (f *fleet) reservation(job *batchv1.Job) *berth.GangReservation {
	f.Helper()
	r, err := f.ReservationOf(f.Context(), job)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// holder is how a refusal names a gang that holds something.
func (f *fleet) holder(job *batchv1.Job) string {
	f.Helper()
	return f.Namespace + "/" + f.reservation(job).Name
}

// ranks are the pods of a Job by rank.
func (f *fleet) ranks(job *batchv1.Job) map[string]*corev1.Pod {
	f.Helper()
	pods, err := f.PodsOf(f.Context(), job)
	if err != nil {
		f.Fatal(err)
	}
	all := map[string]*corev1.Pod{}
	for i := range pods {
		all[pods[i].Labels[batchv1.JobCompletionIndexAnnotation]] = &pods[i]
	}
	return all
}

// end finishes gangs and waits until nothing of them is left.
func (f *fleet) end(jobs ...*batchv1.Job) {
	f.Helper()
	for _, job := range jobs {
		f.Finish(job)
	}
	f.AwaitNoTrace()
}
