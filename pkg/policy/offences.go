package policy

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// The objects that a probe tries to create. They are valid in every other respect, and fit the "restricted" Pod Security
// Standard, so that nothing else refuses them first.

func (p prober) meta(name, mark string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name, Annotations: map[string]string{AnnotationProbe: mark}}
}

// claim carries the mark and, under its name, no other key of Berth.
func (p prober) claim(name, mark string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: p.meta(name, mark),
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			// The class does not exist, and no scheduler looks at a claim without a pod.
			Name: "probe", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "probe.berth.dev"},
		}}}},
	}
}

func (p prober) reservation() *v1alpha1.GangReservation {
	return &v1alpha1.GangReservation{
		ObjectMeta: p.meta("probe", "reservations"),
		Spec: v1alpha1.GangReservationSpec{
			WorkloadRef: v1alpha1.WorkloadReference{Name: "probe", UID: "probe"},
			Check:       "probe", Epoch: "0000000000", QueuedAt: metav1.Unix(0, 0),
			PodSets: []v1alpha1.ReservedPodSet{{
				Name: "probe", Count: 1, Hosts: []string{"probe"},
				Claims: []v1alpha1.ReservedClaim{{
					PodClaim: "probe", Prefix: "berth.probe", PodsPerClaim: 1,
					Devices: []v1alpha1.ReservedDevice{{Request: "probe", Driver: "probe.berth.dev", Pool: "probe", Device: "probe"}},
				}},
			}},
		},
	}
}

// thief is a pod that names a claim of Berth without being of a gang.
func (p prober) thief() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: p.meta("berth-probe", "pods"),
		Spec:       podSpec(corev1.PodResourceClaim{Name: "probe", ResourceClaimName: ptr.To(CanaryPool)}),
	}
}

// gangPod is what a Job controller creates for rank 1 of a gang of two on one claim.
func (p prober) gangPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: keys(),
		Spec:       podSpec(corev1.PodResourceClaim{Name: "probe", ResourceClaimTemplateName: ptr.To("probe")}),
	}
	pod.Namespace, pod.Name = p.namespace, "berth-probe"
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = "1"
	return pod
}

// copiedJob is a Job that was copied with the keys of a running one.
func (p prober) copiedJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: p.meta("berth-probe", "jobs"),
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: keys(),
				Spec:       podSpec(corev1.PodResourceClaim{Name: "probe", ResourceClaimTemplateName: ptr.To("probe")}),
			},
		},
	}
}

// copiedJobSet is untyped: only its controller's module has the type, and it is not needed otherwise.
func (p prober) copiedJobSet() *unstructured.Unstructured {
	job := p.copiedJob()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&job.Spec)
	if err != nil {
		panic(err) // a constant of this file
	}
	jobSet := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"spec": map[string]any{"suspend": true, "replicatedJobs": []any{map[string]any{
			"name": "probe", "replicas": int64(1), "template": map[string]any{"spec": spec},
		}}},
	}}
	jobSet.SetNamespace(p.namespace)
	jobSet.SetName("berth-probe")
	return jobSet
}

// keys are those that Kueue writes into a template for Berth.
func keys() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Labels: map[string]string{v1alpha1.LabelReservation: "probe"},
		Annotations: map[string]string{
			v1alpha1.AnnotationContract:              v1alpha1.ContractVersion,
			v1alpha1.AnnotationHosts:                 "probe-0,probe-1",
			v1alpha1.AnnotationClaimPrefix + "probe": "berth.probe/2",
		},
	}
}

func podSpec(claim corev1.PodResourceClaim) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		ResourceClaims: []corev1.PodResourceClaim{claim},
		Containers: []corev1.Container{{
			Name: "probe", Image: "berth.dev/probe",
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: claim.Name}}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}
