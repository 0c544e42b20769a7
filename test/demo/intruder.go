package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/demo/witness"
)

const (
	// user is somebody with the role edit in the team's namespace.
	user = "jane"
	// intruder is the name of the claim and of the pod that go around Berth. Both stay to the end: whatever becomes
	// free must not become theirs.
	intruder = "shortcut"
	// scheduler is who allocates claims where Berth does not.
	scheduler = "system:kube-scheduler"
)

func (d *demo) goAround(ctx context.Context) error {
	claim, err := d.createIntruder(ctx)
	if err != nil {
		return err
	}
	d.say("%s (role edit) creates pod %s with an ordinary claim of class tpu-2x2, one host. Eight hosts are free.", user, intruder)
	var word string
	err = d.await(ctx, "kube-scheduler finds nothing for pod "+intruder, func(o *witness.Observation) error {
		word, err = unschedulable(o, intruder)
		if err != nil {
			return err
		}
		return o.Nothing(namespace, intruder, intruder)
	})
	if err != nil {
		return err
	}
	d.say("kube-scheduler says: %s", word)

	o, err := witness.Observe(ctx, d.admin)
	if err != nil {
		return err
	}
	target, err := freeHost(o)
	if err != nil {
		return err
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		AllocationTimestamp: ptr.To(metav1.Now()),
		Devices:             resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{target}},
	}
	writer, err := client.New(d.cluster.RESTConfigFor(scheduler), client.Options{Scheme: d.admin.Scheme()})
	if err != nil {
		return err
	}
	d.say("\nNow kube-scheduler's own user writes %s, which is free, straight into the claim.", target.Device)
	sentence, err := refusal(writer.Status().Update(ctx, claim))
	if err != nil {
		return err
	}
	d.say("The API server refuses: %s", sentence)
	return nil
}

// createIntruder makes the claim and the pod as an ordinary user of the namespace.
func (d *demo) createIntruder(ctx context.Context) (*resourcev1.ResourceClaim, error) {
	err := d.admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	if err != nil {
		return nil, err
	}
	jane, err := client.New(d.cluster.RESTConfigFor(user), client.Options{Scheme: d.admin.Scheme()})
	if err != nil {
		return nil, err
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: intruder},
		Spec:       oneOf("tpu-2x2"),
	}
	// The API server's authorizer learns of a new binding through a watch.
	err = d.await(ctx, user+" may create a claim", func(*witness.Observation) error { return jane.Create(ctx, claim) })
	if err != nil {
		return nil, err
	}
	return claim, jane.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: intruder},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{worker()},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "tpu", ResourceClaimName: ptr.To(intruder)}},
		},
	})
}

// unschedulable is kube-scheduler's word on a pod that it finds no place for.
func unschedulable(o *witness.Observation, pod string) (string, error) {
	for _, p := range o.Pods {
		if p.Namespace != namespace || p.Name != pod {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return c.Message, nil
			}
		}
		return "", fmt.Errorf("pod %s is not said to be unschedulable: %+v", pod, p.Status.Conditions)
	}
	return "", fmt.Errorf("pod %s does not exist", pod)
}

// freeHost is a device of one host on which nothing is allocated.
func freeHost(o *witness.Observation) (resourcev1.DeviceRequestAllocationResult, error) {
	taken := map[string]bool{}
	for i := range o.Claims {
		for _, node := range o.Under(&o.Claims[i]) {
			taken[node] = true
		}
	}
	for _, s := range o.Slices {
		for _, device := range s.Spec.Devices {
			if hosts := o.HostsOf(s.Spec.Driver, s.Spec.Pool.Name, device.Name); len(hosts) == 1 && !taken[hosts[0]] {
				return resourcev1.DeviceRequestAllocationResult{
					Request: "slice", Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: device.Name,
				}, nil
			}
		}
	}
	return resourcev1.DeviceRequestAllocationResult{}, errors.New("no single host is free")
}

// refusal is the sentence with which the fence refused a write. It fails when the write succeeded or failed otherwise.
func refusal(err error) (string, error) {
	switch {
	case err == nil:
		return "", errors.New("the write around Berth was accepted")
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "'"+policy.ClaimStatus+"'"):
		return "", fmt.Errorf("the write around Berth failed, but not at policy %s: %w", policy.ClaimStatus, err)
	}
	_, sentence, found := strings.Cut(err.Error(), "denied request: ")
	if !found {
		sentence = err.Error()
	}
	return sentence, nil
}
