package reservation

import (
	"context"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/reservation"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzGather reads back reservations, and claims whose reservation is gone, with the pods, claims and Workloads that stand
// around them, whatever anybody has made of these. A claim is never cleared while a pod of the gang that has a seat in it may run.
func FuzzGather(f *testing.F) {
	fuzztest.Add(f)
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(known); err != nil {
			f.Fatal(err)
		}
	}
	base := fuzztest.Site()
	b := fuzztest.New(base)
	base.AcceleratorPools, base.ResourceSlices, base.DeviceClasses, base.DeviceTaintRules = nil, nil, nil, nil
	base.ResourceFlavors, base.ClusterQueues, base.LocalQueues, base.Configs = nil, nil, nil, nil
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, base)
		var objects []client.Object
		lists := reflect.ValueOf(s).Elem()
		for i := range lists.NumField() {
			for j := range lists.Field(i).Len() {
				object, ok := lists.Field(i).Index(j).Interface().(client.Object)
				if !ok || object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
					continue // an API server does not keep it
				}
				objects = append(objects, object)
			}
		}
		c := fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
		r := &reconciler{
			Dependencies: &shell.Dependencies{Client: c, Live: c, Config: configv1alpha1.Default(), Now: func() time.Time { return kueuetest.Start }},
			Options:      Options{Board: verdict.NewBoard(), Backoff: verdict.NewBackoff(time.Second, time.Minute, func() time.Time { return kueuetest.Start })},
		}
		keys := map[types.NamespacedName]bool{{Namespace: kueuetest.Namespace, Name: "res"}: true}
		for _, res := range s.Reservations {
			keys[client.ObjectKeyFromObject(res)] = true
		}
		for _, claim := range s.ResourceClaims {
			if name := claim.Labels[berth.LabelReservation]; name != "" {
				keys[types.NamespacedName{Namespace: claim.Namespace, Name: name}] = true
			}
		}
		for key := range keys {
			g, err := r.gather(context.Background(), key)
			if err != nil || g == nil {
				continue
			}
			plan := reservation.Next(g.View)
			for _, step := range plan.Steps {
				if step.Do != reservation.ClearClaims {
					continue
				}
				for _, p := range g.Pods {
					if p.Seated && !p.Terminal && !p.Stranger {
						t.Errorf("%s while pod %s may run", plan, p.Name)
					}
				}
			}
		}
	})
}
