package leadership

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns inner with every write refused (ErrNotLeader) unless this process certainly is the leader and has
// taken over, and ended at Deadline otherwise. Reads pass.
//
// Cancelling the context of a write that has begun does not end it; the context's deadline does.
func (g *Guard) Client(inner client.Client) client.Client {
	return guarded{inner: inner, guard: g, needed: leading}
}

// guarded writes every method out instead of embedding client.Client: a write that a later version of the interface
// adds must not slip through, it must fail to compile.
type guarded struct {
	inner  client.Client
	guard  *Guard
	needed phase
}

// errPanicked stands for the outcome of a write that never returned: unknown, like that of every other foreign error.
var errPanicked = errors.New("the write panicked")

func (c guarded) write(ctx context.Context, send func(context.Context) error) error {
	ctx, finish, err := c.guard.begin(ctx, c.needed)
	if err != nil {
		return err
	}
	err = errPanicked
	defer func() { finish(err) }()
	err = send(ctx)
	return err
}

func (c guarded) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.inner.Get(ctx, key, obj, opts...)
}

func (c guarded) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.inner.List(ctx, list, opts...)
}

func (c guarded) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.Apply(ctx, obj, opts...) })
}

func (c guarded) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.Create(ctx, obj, opts...) })
}

func (c guarded) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.Delete(ctx, obj, opts...) })
}

func (c guarded) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.Update(ctx, obj, opts...) })
}

func (c guarded) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.Patch(ctx, obj, patch, opts...) })
}

func (c guarded) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.inner.DeleteAllOf(ctx, obj, opts...) })
}

func (c guarded) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c guarded) SubResource(name string) client.SubResourceClient {
	return guardedSubResource{inner: c.inner.SubResource(name), client: c}
}

func (c guarded) Scheme() *runtime.Scheme { return c.inner.Scheme() }

func (c guarded) RESTMapper() meta.RESTMapper { return c.inner.RESTMapper() }

func (c guarded) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.inner.GroupVersionKindFor(obj)
}

func (c guarded) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.inner.IsObjectNamespaced(obj)
}

type guardedSubResource struct {
	inner  client.SubResourceClient
	client guarded
}

func (s guardedSubResource) Get(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceGetOption) error {
	return s.inner.Get(ctx, obj, subResource, opts...)
}

func (s guardedSubResource) Create(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption) error {
	return s.client.write(ctx, func(ctx context.Context) error { return s.inner.Create(ctx, obj, subResource, opts...) })
}

func (s guardedSubResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.client.write(ctx, func(ctx context.Context) error { return s.inner.Update(ctx, obj, opts...) })
}

func (s guardedSubResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.write(ctx, func(ctx context.Context) error { return s.inner.Patch(ctx, obj, patch, opts...) })
}

func (s guardedSubResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return s.client.write(ctx, func(ctx context.Context) error { return s.inner.Apply(ctx, obj, opts...) })
}
