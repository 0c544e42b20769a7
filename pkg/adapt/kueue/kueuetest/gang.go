package kueuetest

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// NewJob is an indexed Job of n pods, each with one CPU and one claim from the template of a class.
func NewJob(name, class string, n int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name)},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(n), Completions: ptr.To(n), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "train", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				}}},
				ResourceClaims: []corev1.PodResourceClaim{{Name: PodClaim, ResourceClaimTemplateName: ptr.To(class)}},
			}},
		},
	}
}

// NewTemplate is a ResourceClaimTemplate for one device of a class, named after it.
func NewTemplate(class string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: class, UID: types.UID("template-" + class), CreationTimestamp: metav1.NewTime(Start)},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "slice", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			}}},
		}}},
	}
}

// NewReservation serves a Workload with one device over hosts, one pod on each.
func NewReservation(name string, w Workload, job *batchv1.Job, device string, hosts ...string) *berth.GangReservation {
	return &berth.GangReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Finalizers: []string{berth.FinalizerReservation}},
		Spec: berth.GangReservationSpec{
			WorkloadRef: berth.WorkloadReference{Name: w.Name, UID: w.UID},
			Owner:       berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID},
			Check:       Check, Flavor: Flavor, Epoch: "0000000000", QueuedAt: w.CreationTimestamp,
			PodSets: []berth.ReservedPodSet{{
				Name: PodSet, Count: int32(len(hosts)), Hosts: hosts,
				Claims: []berth.ReservedClaim{{
					PodClaim: PodClaim, Prefix: fmt.Sprintf("%s%s.%s.%s", berth.ClaimNamePrefix, name, PodSet, PodClaim), PodsPerClaim: int32(len(hosts)),
					Devices: []berth.ReservedDevice{{Request: "slice", Driver: "tpu.example.com", Pool: "pod-a", Generation: 1, Device: device, Hosts: hosts}},
				}},
			}},
		},
	}
}

// NewPod is a pod of the reservation's Job, pinned by the pod policy to the place of a rank of its first pod set.
func NewPod(res *berth.GangReservation, rank int) *corev1.Pod {
	ps := res.Spec.PodSets[0]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: res.Namespace, Name: fmt.Sprintf("%s-%d", res.Spec.Owner.Name, rank), UID: types.UID(fmt.Sprintf("%s-%d", res.Spec.Owner.Name, rank)),
			Labels:      map[string]string{berth.LabelReservation: res.Name, batchv1.JobCompletionIndexAnnotation: strconv.Itoa(rank)},
			Annotations: map[string]string{berth.AnnotationContract: berth.ContractVersion},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: res.Spec.Owner.APIVersion, Kind: res.Spec.Owner.Kind, Name: res.Spec.Owner.Name, UID: res.Spec.Owner.UID, Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeSelector:    map[string]string{corev1.LabelHostname: ps.Hosts[rank]},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: berth.GateSeating}},
		},
	}
	for _, c := range ps.Claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{
			Name: c.PodClaim, ResourceClaimName: ptr.To(fmt.Sprintf("%s-%d", c.Prefix, rank/int(c.PodsPerClaim))),
		})
	}
	return pod
}
