package main

import (
	"context"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

// namespace is the team's; its queue has the same name.
const namespace = "team"

// prepareTeam makes what a team has before its first Job: a namespace, a queue, and a claim template per shape.
func (d *demo) prepareTeam(ctx context.Context) error {
	if err := d.cluster.CreateNamespace(ctx, namespace, nil); err != nil {
		return err
	}
	for _, obj := range []client.Object{
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: queueName},
		},
		claimTemplate("tpu-4x4"),
		claimTemplate("tpu-8x8"),
	} {
		if err := d.admin.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// claimTemplate asks for one device of a class and is named after it.
func claimTemplate(class string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: class},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: oneOf(class)},
	}
}

func oneOf(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name:    "slice",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
	}}}}
}

// gang is an ordinary Indexed Job: nothing in it names Berth.
func gang(name, class string, pods int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{kueueconstants.QueueLabel: namespace},
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Parallelism: ptr.To(pods), Completions: ptr.To(pods),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy:  corev1.RestartPolicyNever,
				Containers:     []corev1.Container{worker()},
				ResourceClaims: []corev1.PodResourceClaim{{Name: "tpu", ResourceClaimTemplateName: ptr.To(class)}},
			}},
		},
	}
}

// within gives a Job a time after which Kueue ends it.
func within(limit time.Duration, job *batchv1.Job) *batchv1.Job {
	job.Labels[kueueconstants.MaxExecTimeSecondsLabel] = strconv.Itoa(int(limit.Seconds()))
	return job
}

func worker() corev1.Container {
	return corev1.Container{
		Name: "worker", Image: "worker:1", // never pulled: KWOK plays the kubelet
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			Claims:   []corev1.ResourceClaim{{Name: "tpu"}},
		},
	}
}
