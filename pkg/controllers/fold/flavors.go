package fold

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// keepFlavors creates the ResourceFlavors that folds name and nobody has made, and keeps those that Berth made.
func (r *reconciler) keepFlavors(ctx context.Context, v *view) error {
	var failed failures
	for _, fl := range v.flavors() {
		if fl.of == nil {
			continue
		}
		at := slices.IndexFunc(v.snapshot.ResourceFlavors, func(rf *kueue.ResourceFlavor) bool { return rf.Name == fl.name })
		if at < 0 {
			failed.add(r.createFlavor(ctx, v, fl))
			continue
		}
		has := v.snapshot.ResourceFlavors[at]
		if fl.whole && keptFlavor(has) && !sameFlavor(has.Spec, fl.should(v.snapshot, has.Spec)) {
			failed.add(r.updateFlavor(ctx, v, fl))
		}
	}
	return failed.err()
}

func (r *reconciler) createFlavor(ctx context.Context, v *view, fl flavor) error {
	rf := &kueue.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: fl.name, Labels: map[string]string{berth.LabelFold: fl.of.object.Name}},
		Spec:       fl.should(v.snapshot, kueue.ResourceFlavorSpec{}),
	}
	switch err := r.Client.Create(ctx, rf); {
	case apierrors.IsAlreadyExists(err): // The cache is behind.
		return nil
	case err != nil:
		return fmt.Errorf("creating ResourceFlavor %s: %w", fl.name, err)
	}
	r.Recorder.Eventf(fl.of.object, nil, corev1.EventTypeNormal, eventFlavor, "Folding", "ResourceFlavor %s", fl.name)
	return nil
}

// updateFlavor changes the two fields that Berth keeps, on what the API server has.
func (r *reconciler) updateFlavor(ctx context.Context, v *view, fl flavor) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.GroupVersion.WithKind("ResourceFlavor"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: fl.name}, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil // Its deletion brings the next look.
		}
		return fmt.Errorf("reading ResourceFlavor %s: %w", fl.name, err)
	}
	has := &kueue.ResourceFlavor{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, has); err != nil {
		return fmt.Errorf("reading ResourceFlavor %s: %w", fl.name, err)
	}
	should := fl.should(v.snapshot, has.Spec)
	if !keptFlavor(has) || sameFlavor(has.Spec, should) {
		return nil
	}
	if err := setFlavor(object, should); err != nil {
		return err
	}
	if err := r.Writer.Update(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("updating ResourceFlavor %s: %w", fl.name, err)
	}
	return nil
}

// setFlavor puts the kept fields of a spec into an object.
func setFlavor(object *unstructured.Unstructured, spec kueue.ResourceFlavorSpec) error {
	kept, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kueue.ResourceFlavorSpec{NodeLabels: spec.NodeLabels, Tolerations: spec.Tolerations})
	if err != nil {
		return err
	}
	for _, field := range []string{"nodeLabels", "tolerations"} {
		if kept[field] == nil {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		} else if err := unstructured.SetNestedField(object.Object, kept[field], "spec", field); err != nil {
			return err
		}
	}
	return nil
}
