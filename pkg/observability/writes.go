package observability

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Results of a write that are no reason of the API server.
const (
	resultOK = "OK"
	// resultUnanswered: no answer, so the write may or may not have been carried out.
	resultUnanswered = "Unanswered"
	resultOther      = "Other"
)

// reasons that are told apart; admission plug-ins can make up others.
var reasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonBadRequest, metav1.StatusReasonConflict,
	metav1.StatusReasonForbidden, metav1.StatusReasonGone, metav1.StatusReasonInternalError, metav1.StatusReasonInvalid,
	metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotFound, metav1.StatusReasonRequestEntityTooLarge,
	metav1.StatusReasonServerTimeout, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout,
	metav1.StatusReasonTooManyRequests, metav1.StatusReasonUnauthorized,
}

func result(err error) string {
	if err == nil {
		return resultOK
	}
	switch reason := apierrors.ReasonForError(err); {
	case slices.Contains(reasons, reason):
		return string(reason)
	case reason == metav1.StatusReasonUnknown:
		return resultUnanswered
	default:
		return resultOther
	}
}

// CountWrites returns inner with every write that reaches it counted. Wrap it inside of the lease's guard, so that
// what the guard refuses is not counted as sent.
func (m *Metrics) CountWrites(inner client.WithWatch) client.WithWatch {
	count := func(verb, subresource string, obj any, err error) error {
		resource := resourceOf(inner, obj)
		if subresource != "" {
			resource += "/" + subresource
		}
		m.writes.WithLabelValues(verb, resource, result(err)).Inc()
		return err
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return count("create", "", obj, c.Create(ctx, obj, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return count("delete", "", obj, c.Delete(ctx, obj, opts...))
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return count("deletecollection", "", obj, c.DeleteAllOf(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return count("update", "", obj, c.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return count("patch", "", obj, c.Patch(ctx, obj, patch, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return count("apply", "", obj, c.Apply(ctx, obj, opts...))
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
			return count("create", name, obj, c.SubResource(name).Create(ctx, obj, sub, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return count("update", name, obj, c.SubResource(name).Update(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return count("patch", name, obj, c.SubResource(name).Patch(ctx, obj, patch, opts...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, name string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return count("apply", name, obj, c.SubResource(name).Apply(ctx, obj, opts...))
		},
	})
}

// resourceOf is the plural name of an object's kind, or "unknown".
func resourceOf(c client.Client, obj any) string {
	var kind schema.GroupKind
	switch obj := obj.(type) {
	case client.Object:
		gvk, err := c.GroupVersionKindFor(obj)
		if err != nil {
			return "unknown"
		}
		kind = gvk.GroupKind()
	case interface { // generated apply configurations
		GetAPIVersion() *string
		GetKind() *string
	}:
		if obj.GetAPIVersion() == nil || obj.GetKind() == nil {
			return "unknown"
		}
		kind = schema.FromAPIVersionAndKind(*obj.GetAPIVersion(), *obj.GetKind()).GroupKind()
	default:
		return "unknown"
	}
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if err != nil {
		return "unknown"
	}
	return mapping.Resource.Resource
}
