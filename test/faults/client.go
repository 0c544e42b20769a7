package faults

import (
	"context"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Wrap returns a client whose writes pass through plan. Reads and watches are not touched. Dry-run writes count as
// writes: the API server answers them like any other, and so can fail to.
//
// Writes that a controller makes past this client, such as events and leases, are not seen; see Proxy for those.
func Wrap(inner client.WithWatch, plan *Plan) client.WithWatch {
	return WrapEach(inner, func(string) *Plan { return plan })
}

// WrapEach is Wrap with a plan for each namespace: one process can be dead to one namespace and alive to the others. The
// namespace of an object that has none is empty. Where planOf returns nil, writes pass and are not recorded.
func WrapEach(inner client.WithWatch, planOf func(namespace string) *Plan) client.WithWatch {
	write := func(namespace string, site Site, send func(visible bool) error) error {
		if plan := planOf(namespace); plan != nil {
			return plan.write(site, send)
		}
		return send(true)
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(obj.GetNamespace(), Site{Verb: VerbCreate, Resource: resourceOf(c, obj)}, func(visible bool) error {
				return c.Create(ctx, shown(obj, visible), opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return write(obj.GetNamespace(), Site{Verb: VerbUpdate, Resource: resourceOf(c, obj)}, func(visible bool) error {
				return c.Update(ctx, shown(obj, visible), opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(obj.GetNamespace(), Site{Verb: patchVerb(patch), Resource: resourceOf(c, obj)}, func(visible bool) error {
				return c.Patch(ctx, shown(obj, visible), patch, opts...)
			})
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return write(appliedNamespaceOf(obj), Site{Verb: VerbApply, Resource: appliedResourceOf(c, obj)}, func(visible bool) error {
				return c.Apply(ctx, shownApply(obj, visible), opts...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(obj.GetNamespace(), Site{Verb: VerbDelete, Resource: resourceOf(c, obj)}, func(visible bool) error {
				return c.Delete(ctx, shown(obj, visible), opts...)
			})
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			all := client.DeleteAllOfOptions{}
			all.ApplyOptions(opts)
			return write(all.Namespace, Site{Verb: VerbDeleteCollection, Resource: resourceOf(c, obj)}, func(visible bool) error {
				return c.DeleteAllOf(ctx, shown(obj, visible), opts...)
			})
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj client.Object, body client.Object, opts ...client.SubResourceCreateOption) error {
			return write(obj.GetNamespace(), Site{Verb: VerbCreate, Resource: resourceOf(c, obj), Subresource: sub}, func(visible bool) error {
				return c.SubResource(sub).Create(ctx, shown(obj, visible), shown(body, visible), opts...)
			})
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return write(obj.GetNamespace(), Site{Verb: VerbUpdate, Resource: resourceOf(c, obj), Subresource: sub}, func(visible bool) error {
				return c.SubResource(sub).Update(ctx, shown(obj, visible), opts...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(obj.GetNamespace(), Site{Verb: patchVerb(patch), Resource: resourceOf(c, obj), Subresource: sub}, func(visible bool) error {
				return c.SubResource(sub).Patch(ctx, shown(obj, visible), patch, opts...)
			})
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return write(appliedNamespaceOf(obj), Site{Verb: VerbApply, Resource: appliedResourceOf(c, obj), Subresource: sub}, func(visible bool) error {
				return c.SubResource(sub).Apply(ctx, shownApply(obj, visible), opts...)
			})
		},
	})
}

// patchVerb tells an apply that came through Patch, as Kueue's do, from a patch.
func patchVerb(patch client.Patch) string {
	if patch.Type() == types.ApplyPatchType || patch.Type() == types.ApplyCBORPatchType {
		return VerbApply
	}
	return VerbPatch
}

// shown returns the object that takes the answer: the caller's own, or a copy if the caller must not see it.
func shown(obj client.Object, visible bool) client.Object {
	if visible {
		return obj
	}
	return obj.DeepCopyObject().(client.Object)
}

// shownApply is shown for apply configurations, which have no DeepCopy. One that does not survive the way through JSON
// is sent itself: its caller then sees the answer, which only spoils the disguise.
func shownApply(obj runtime.ApplyConfiguration, visible bool) runtime.ApplyConfiguration {
	kind := reflect.TypeOf(obj)
	if visible || kind.Kind() != reflect.Pointer || kind.Elem().Kind() != reflect.Struct {
		return obj
	}
	content, err := json.Marshal(obj)
	if err != nil {
		return obj
	}
	duplicate := reflect.New(kind.Elem())
	if err := json.Unmarshal(content, duplicate.Interface()); err != nil {
		return obj
	}
	return duplicate.Interface().(runtime.ApplyConfiguration)
}
