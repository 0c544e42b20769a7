package written

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Client reads from informers and sees its own writes. It serves typed objects only.
//
// List merges own writes when the list is narrowed by namespace or labels; a field selector hides objects that only the
// overlay knows, so do not use one on kinds that you create.
type Client struct {
	client.Client
	overlay *overlay
}

// New wraps a client whose reads come from informers; live answers from the API server.
func New(cached client.Client, live client.Reader) *Client {
	return &Client{Client: cached, overlay: &overlay{entries: map[key]entry{}, live: live, now: time.Now}}
}

var _ client.Client = &Client{}

// Get is client.Reader.Get.
func (c *Client) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	k := key{gvk, name}
	own, known := c.overlay.entry(k)
	err = c.Client.Get(ctx, name, obj, opts...)
	if !known || (err != nil && !apierrors.IsNotFound(err)) {
		return err
	}
	cached := obj
	if err != nil {
		cached = nil
	}
	seen := c.overlay.merge(ctx, k, own, cached)
	switch {
	case seen == nil && err != nil:
		return err
	case seen == nil:
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name.Name)
	case seen != cached:
		return assign(obj, seen)
	default:
		return nil
	}
}

// List is client.Reader.List.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	narrowed := client.ListOptions{}
	narrowed.ApplyOptions(opts)
	own := c.overlay.pending(gvk, narrowed.Namespace)
	if err := c.Client.List(ctx, list, opts...); err != nil || len(own) == 0 {
		return err
	}
	return c.lay(ctx, list, gvk, own, narrowed)
}

// lay replaces, adds and removes the items that the overlay knows better.
func (c *Client) lay(ctx context.Context, list client.ObjectList, gvk schema.GroupVersionKind, own map[key]entry, narrowed client.ListOptions) error {
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return err
	}
	merged := make([]runtime.Object, 0, len(items)+len(own))
	keep := func(seen, cached client.Object) {
		if seen == nil || (narrowed.LabelSelector != nil && !narrowed.LabelSelector.Matches(labelsOf(seen))) {
			return
		}
		if seen != cached && !ptr.Deref(narrowed.UnsafeDisableDeepCopy, false) {
			seen = seen.DeepCopyObject().(client.Object)
		}
		merged = append(merged, seen)
	}
	for _, item := range items {
		obj := item.(client.Object)
		k := key{gvk, client.ObjectKeyFromObject(obj)}
		e, known := own[k]
		if !known {
			merged = append(merged, obj)
			continue
		}
		delete(own, k)
		keep(c.overlay.merge(ctx, k, e, obj), obj)
	}
	for k, e := range own {
		// Not in the list: unknown to the informer, or hidden by the selector because it shows an older version.
		cached, err := c.cached(ctx, k)
		if err != nil {
			return err
		}
		keep(c.overlay.merge(ctx, k, e, cached), cached)
	}
	return apimeta.SetList(list, merged)
}

func (c *Client) cached(ctx context.Context, k key) (client.Object, error) {
	fresh, err := c.Scheme().New(k.gvk)
	if err != nil {
		return nil, err
	}
	obj := fresh.(client.Object)
	switch err := c.Client.Get(ctx, k.NamespacedName, obj); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return obj, nil
	}
}

// Create is client.Writer.Create.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.remember(obj, c.Client.Create(ctx, obj, opts...))
}

// Update is client.Writer.Update.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.remember(obj, c.Client.Update(ctx, obj, opts...))
}

// Patch is client.Writer.Patch.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.remember(obj, c.Client.Patch(ctx, obj, patch, opts...))
}

// Delete is client.Writer.Delete. obj must be as it was read, because its finalizers decide what remains.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := c.Client.Delete(ctx, obj, opts...)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	k, kerr := c.key(obj)
	if kerr != nil {
		return kerr
	}
	_, graceful := gracefully[k.gvk.GroupKind()]
	if err == nil && (len(obj.GetFinalizers()) > 0 || graceful) {
		c.overlay.put(k, c.remains(ctx, k, obj))
	} else {
		c.overlay.put(k, entry{uid: obj.GetUID()})
	}
	return err
}

// remains reads what a DELETE has left: the next write needs the version that the deletionTimestamp was set with.
func (c *Client) remains(ctx context.Context, k key, obj client.Object) entry {
	kept := obj.DeepCopyObject().(client.Object)
	switch err := c.overlay.live.Get(ctx, k.NamespacedName, kept); {
	case err == nil && kept.GetUID() == obj.GetUID():
		return entry{uid: obj.GetUID(), obj: kept}
	case err == nil || apierrors.IsNotFound(err):
		return entry{uid: obj.GetUID()}
	default:
		kept = obj.DeepCopyObject().(client.Object)
		now := metav1.NewTime(c.overlay.now())
		kept.SetDeletionTimestamp(&now)
		return entry{uid: obj.GetUID(), obj: kept, deleting: true}
	}
}

// gracefully lists kinds whose objects outlive an accepted DELETE without a finalizer.
var gracefully = map[schema.GroupKind]struct{}{{Kind: "Pod"}: {}}

// Status is client.StatusClient.Status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource is client.SubResourceClientConstructor.SubResource.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subresource{SubResourceClient: c.Client.SubResource(name), of: c}
}

func (c *Client) key(obj client.Object) (key, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	return key{gvk, client.ObjectKeyFromObject(obj)}, err
}

// remember keeps the answer to a write that succeeded and passes its error on.
func (c *Client) remember(obj client.Object, err error) error {
	if err != nil {
		return err
	}
	k, err := c.key(obj)
	if err != nil {
		return err
	}
	e := entry{uid: obj.GetUID()}
	// The answer to the write that takes the last finalizer off an object in deletion is its last sign of life.
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 || !removable(k) {
		e.obj = obj.DeepCopyObject().(client.Object)
	}
	c.overlay.put(k, e)
	return nil
}

func removable(k key) bool {
	_, graceful := gracefully[k.gvk.GroupKind()]
	return !graceful
}
