package written

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresource remembers answers to writes of a subresource, which carry the whole object.
type subresource struct {
	client.SubResourceClient
	of *Client
}

// Update is client.SubResourceWriter.Update.
func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.of.remember(obj, s.SubResourceClient.Update(ctx, obj, opts...))
}

// Patch is client.SubResourceWriter.Patch.
func (s *subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.remember(obj, s.SubResourceClient.Patch(ctx, obj, patch, opts...))
}

// assign copies what seen points to into obj; both are pointers to the same type.
func assign(obj, seen client.Object) error {
	to, from := reflect.ValueOf(obj), reflect.ValueOf(seen.DeepCopyObject())
	if to.Type() != from.Type() {
		return fmt.Errorf("cannot read a %s into a %s", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	return nil
}

func labelsOf(obj client.Object) labels.Set { return labels.Set(obj.GetLabels()) }
