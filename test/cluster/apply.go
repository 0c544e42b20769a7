package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "berth-cluster"

// Apply server-side-applies, as administrator and in order, all objects of the given YAML or JSON files; of a folder,
// all its *.yaml, *.yml and *.json files by name, without descending. Lists are taken apart. Namespaced objects without
// a namespace go to "default". A status, if an object has one and its kind has the subresource, is applied too: this is
// how a Node gets its allocatable. After a CustomResourceDefinition it waits until the API serves the kind.
func (c *Cluster) Apply(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			return err
		}
		if err := c.ApplyObjects(ctx, objects...); err != nil {
			return fmt.Errorf("applying %s: %w", path, err)
		}
	}
	return nil
}

// ApplyYAML is Apply for text.
func (c *Cluster) ApplyYAML(ctx context.Context, text string) error {
	objects, err := decode(strings.NewReader(text))
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, objects...)
}

// ApplyObjects is Apply for objects in memory. They are not changed.
func (c *Cluster) ApplyObjects(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := c.applyOne(ctx, object.DeepCopy()); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (c *Cluster) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	target, err := c.resource(object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := target.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if _, has := object.Object["status"]; has {
		// Only identity and status: the rest is not the subresource's.
		only := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "status": object.Object["status"],
		}}
		only.SetName(object.GetName())
		only.SetNamespace(object.GetNamespace())
		_, err := target.Apply(ctx, object.GetName(), only, options, "status")
		if err != nil && !apierrors.IsNotFound(err) { // not found: no such subresource
			return fmt.Errorf("status: %w", err)
		}
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return c.awaitServed(ctx, target, object.GetName())
	}
	return nil
}

// resource is where an object belongs; one that is to be in a namespace and names none gets the default.
func (c *Cluster) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.find(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// awaitServed returns once the API serves a kind and says so to clients.
func (c *Cluster) awaitServed(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	return await(ctx, readyLimit, func(ctx context.Context) (bool, error) {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, condition := range conditions {
			if is, ok := condition.(map[string]any); ok && is["type"] == "Established" && is["status"] == "True" {
				return c.discovered(ctx, crd)
			}
		}
		return false, err
	})
}

// discovered reports whether the document that controllers learn all kinds from, in one request, has every served version
// of a kind. The API server puts it together in the background: with Kueue's kinds it comes up to 100 ms after Established,
// on a busy machine later than Kueue, which then finds "no matches for kind" and exits.
func (c *Cluster) discovered(ctx context.Context, crd *unstructured.Unstructured) (bool, error) {
	client, ok := c.client.Discovery().(discovery.AggregatedDiscoveryInterfaceWithContext)
	if !ok {
		return false, permanent{fmt.Errorf("%T does not know aggregated discovery", c.client.Discovery())}
	}
	_, resources, _, err := client.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return false, err
	}
	group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
	if err != nil {
		return false, err
	}
	plural, _, err := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	if err != nil {
		return false, err
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		is, ok := version.(map[string]any)
		if !ok || is["served"] != true {
			continue
		}
		known := resources[schema.GroupVersion{Group: group, Version: fmt.Sprint(is["name"])}]
		if known == nil || !slices.ContainsFunc(known.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			return false, nil
		}
	}
	return err == nil, err
}

// readObjects decodes a file, or the files of a folder.
func readObjects(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		objects, err := decode(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return objects, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, entry := range entries {
		if !isManifest(entry) {
			continue
		}
		objects, err := readObjects(filepath.Join(path, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func isManifest(entry fs.DirEntry) bool {
	switch filepath.Ext(entry.Name()) {
	case ".yaml", ".yml", ".json":
		// A kustomization is instructions to a tool, not an object of the API.
		return !entry.IsDir() && !strings.HasPrefix(entry.Name(), "kustomiz")
	}
	return false
}

func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0: // a separator too many
			continue
		case object.GetKind() == "" || object.GetAPIVersion() == "":
			return nil, fmt.Errorf("document %d has no kind or apiVersion", len(objects)+1)
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

// mapper finds the resource of a kind and asks the server again when it meets a new one.
type mapper struct {
	mu    sync.Mutex
	inner *restmapper.DeferredDiscoveryRESTMapper
}

func newMapper(client discovery.DiscoveryInterface) *mapper {
	return &mapper{inner: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))}
}

func (m *mapper) find(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mapping, err := m.inner.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		m.inner.Reset()
		mapping, err = m.inner.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}

// encode is the inverse of decode.
func encode(objects ...*unstructured.Unstructured) ([]byte, error) {
	var all bytes.Buffer
	for _, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "---\n%s\n", content)
	}
	return all.Bytes(), nil
}
