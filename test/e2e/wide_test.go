package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// wideHosts is how many hosts the device of this test spans, and so how many pods share its claim.
const wideHosts = 200

// TestTwoHundredPodsOnOneClaim seats a gang of 200 on one device without counters: one write of the claim seats them all,
// and no attempt to bind fails.
func TestTwoHundredPodsOnOneClaim(t *testing.T) {
	c := shared.ForTest(t)
	s := scene.New(t, c)
	wide(s)
	s.Run()
	s.Create(s.Template("wide-200"))
	job := s.Submit(scene.Gang("wide", "wide-200", wideHosts))
	begun := time.Now()
	s.AwaitSeated(job)
	t.Logf("%d pods bound %v after the Job was created", wideHosts, time.Since(begun).Round(100*time.Millisecond))

	if n := writesOf(t, c, s.Namespace)["update resourceclaims/status"]; n != 2 {
		t.Errorf("%d writes of the claim's status until all pods ran, want 2: the allocation and the seating of all pods", n)
	}
	others, err := c.Writes(t.Context(), func(w cluster.Write) bool {
		claim := strings.HasPrefix(w.Resource, "resourceclaims") && w.User != berthUser
		binding := w.Resource == "pods/binding" && w.Code >= 400
		return w.Namespace == s.Namespace && (claim || binding)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range others {
		t.Errorf("%s wrote %s %s: answer %d", w.User, w.Verb, w.Resource, w.Code)
	}
	var events corev1.EventList
	if err := s.Client.List(t.Context(), &events, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "FailedScheduling" || e.Reason == "FailedBinding" {
			t.Errorf("pod %s: %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// wide makes 200 hosts and one device over all of them, and hands it to Berth.
func wide(s *scene.Scene) {
	ctx := s.Context()
	var names []string
	var objects []client.Object
	for i := range wideHosts {
		name := fmt.Sprintf("wide-%d", i)
		names = append(names, name)
		size := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("10"),
		}
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{corev1.LabelHostname: name, "rack": "wide"},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Allocatable: size, Capacity: size},
		})
	}
	pool := &berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: berth.AcceleratorPoolSpec{Driver: "wide.example.com"}}
	objects = append(objects,
		pool,
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "wide-200"}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "wide.example.com"`}}},
		}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "wide.example.com", Pool: resourcev1.ResourcePool{Name: "wide", Generation: 1, ResourceSliceCount: 1},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"wide"}},
			}}}},
			Devices: []resourcev1.Device{{Name: "rack-0"}},
		}},
	)
	for _, obj := range objects {
		s.Create(obj)
		s.Cleanup(func() {
			_ = s.Client.Delete(context.Background(), obj, client.GracePeriodSeconds(0))
		})
	}
	if err := s.Cluster.AwaitNodes(ctx, names...); err != nil {
		s.Fatal(err)
	}
}
