package cluster

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ensure is Apply for what may be there already, as it is for each but the first test on a cluster. Objects that say all that
// the files say are left alone: an apply that changes nothing costs the API server more than most writes that do.
func (c *Cluster) Ensure(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			return err
		}
		for _, object := range objects {
			there, err := c.says(ctx, object)
			if err == nil && !there {
				err = c.ApplyObjects(ctx, object)
			}
			if err != nil {
				return fmt.Errorf("applying %s: %w", path, err)
			}
		}
	}
	return nil
}

// says reports whether an object exists and says what the given one says.
func (c *Cluster) says(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	object = object.DeepCopy()
	target, err := c.resource(object)
	if err != nil {
		return false, err
	}
	found, err := target.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && contains(found.Object, object.Object), err
}

// contains reports whether everything that is in part is in whole. Lists are compared one by one.
func contains(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, is := whole.(map[string]any)
		for key, value := range part {
			if !is || !contains(whole[key], value) {
				return false
			}
		}
		return is
	case []any:
		whole, is := whole.([]any)
		if !is || len(whole) != len(part) {
			return false
		}
		for i := range part {
			if !contains(whole[i], part[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(whole, part)
}
