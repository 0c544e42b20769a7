package files

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Read reads every object of the paths: files, directories, or "-" for stdin. On any fault it returns all of them and no
// objects.
func Read(paths []string, stdin io.Reader) (*Objects, Faults) {
	docs, faults := documents(paths, stdin)
	r := reader{objects: &Objects{}, seen: map[string]string{}, generated: map[string]int{}, skipped: map[string]int{}, newer: map[string]int{}}
	for _, d := range docs {
		r.doc = d
		r.read(d.value, "", schema.GroupVersionKind{})
	}
	faults = append(faults, r.faults...)
	if len(faults) > 0 {
		slices.SortStableFunc(faults, byFile(paths))
		return nil, faults
	}
	r.warn(len(docs))
	complete(r.objects)
	return r.objects, nil
}

// byFile keeps faults of parsing and of contents together, file by file.
func byFile(paths []string) func(a, b Fault) int {
	position := func(f Fault) int {
		return slices.IndexFunc(paths, func(p string) bool { return f.File == p || strings.HasPrefix(f.File, p) })
	}
	return func(a, b Fault) int {
		if c := position(a) - position(b); c != 0 {
			return c
		}
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Document - b.Document
	}
}

// reader gathers objects and faults of one Read.
type reader struct {
	objects *Objects
	faults  Faults
	doc     document
	// seen tells where an object stands, by kind, namespace and name.
	seen map[string]string
	// generated counts names that were made from generateName.
	generated map[string]int
	// skipped counts objects by kinds that are not read.
	skipped map[string]int
	// newer counts fields that are not known, by kind and path.
	newer map[string]int
}

func (r *reader) fault(field, message string) {
	r.faults = append(r.faults, Fault{File: r.doc.file, Document: r.doc.index, Field: field, Message: message})
}

// read takes one object or list. Items of a typed list need not say what they are: then they are of the kind assumed.
func (r *reader) read(value any, at string, assumed schema.GroupVersionKind) {
	object, ok := value.(map[string]any)
	if !ok {
		r.fault(at, fmt.Sprintf("is %s, must be an object", show(value)))
		return
	}
	gvk, ok := r.identify(object, at, assumed)
	if !ok {
		return
	}
	if items, listed := object["items"]; listed && strings.HasSuffix(gvk.Kind, "List") && kindOf(gvk) == nil {
		r.list(object, items, at, gvk)
		return
	}
	k := kindOf(gvk)
	switch {
	case k == nil && gvk.Group == "berth.dev":
		r.fault(join(at, "kind"), fmt.Sprintf("there is no kind %s in %s", gvk.Kind, gvk.GroupVersion()))
		return
	case k == nil:
		if other := spelled(gvk); other != "" {
			r.fault(join(at, "kind"), fmt.Sprintf("there is no kind %s in %s: it is spelled %s", gvk.Kind, gvk.GroupVersion(), other))
			return
		}
		r.skipped[gvk.Kind+" ("+gvk.GroupVersion().String()+")"]++
		return
	case !slices.Contains(k.versions, gvk.Version):
		want := schema.GroupVersion{Group: k.group, Version: k.versions[0]}
		r.fault(join(at, "apiVersion"), fmt.Sprintf("%s %s is not read: it must be %s", gvk.GroupVersion(), gvk.Kind, want))
		return
	}
	r.object(object, at, *k)
}

// identify reads apiVersion and kind.
func (r *reader) identify(object map[string]any, at string, assumed schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	text := func(field, otherwise string) (string, bool) {
		value, given := object[field]
		if !given && otherwise != "" {
			return otherwise, true
		}
		s, ok := value.(string)
		switch {
		case !given || value == nil || ok && s == "":
			r.fault(join(at, field), "is missing")
			return "", false
		case !ok:
			r.fault(join(at, field), fmt.Sprintf("is %s, must be a string", show(value)))
		}
		return s, ok
	}
	apiVersion, ok := text("apiVersion", assumedVersion(assumed))
	kindName, ok2 := text("kind", assumed.Kind)
	if !ok || !ok2 {
		return schema.GroupVersionKind{}, false
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		r.fault(join(at, "apiVersion"), fmt.Sprintf("%q is not group/version", apiVersion))
		return schema.GroupVersionKind{}, false
	}
	return gv.WithKind(kindName), true
}

func assumedVersion(gvk schema.GroupVersionKind) string {
	if gvk.Kind == "" {
		return ""
	}
	return gvk.GroupVersion().String()
}

func (r *reader) list(list map[string]any, items any, at string, gvk schema.GroupVersionKind) {
	for key := range list {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, key) {
			r.fault(join(at, key), "unknown field")
		}
	}
	all, ok := items.([]any)
	if !ok && items != nil {
		r.fault(join(at, "items"), fmt.Sprintf("is %s, must be a list", show(items)))
	}
	var assumed schema.GroupVersionKind
	if name := strings.TrimSuffix(gvk.Kind, "List"); name != "" {
		assumed = gvk.GroupVersion().WithKind(name)
	}
	for i, item := range all {
		r.read(item, fmt.Sprintf("%s[%d]", join(at, "items"), i), assumed)
	}
}

// object checks, decodes and keeps one object of a kind that is read.
func (r *reader) object(value map[string]any, at string, k kind) {
	before := len(r.faults)
	c := checker{fault: r.fault, unknown: r.fault}
	if served(value) {
		c.unknown = func(field, _ string) {
			r.newer[k.name+" "+index.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(field, at), "."), "[]")]++
		}
	}
	c.check(value, k.typ, at)
	if len(r.faults) > before {
		r.named(value, at, k)
		return
	}
	raw, err := json.Marshal(value)
	decoded := reflect.New(k.typ).Interface()
	if err == nil {
		err = json.Unmarshal(raw, decoded)
	}
	if err != nil {
		r.fault(at, strings.TrimPrefix(err.Error(), "json: "))
		return
	}
	meta, ok := decoded.(metav1.Object)
	if !ok {
		r.fault(at, "has no metadata")
		return
	}
	if r.name(meta, at, k) {
		r.required(decoded, at)
		k.add(r.objects, decoded)
	}
}

// named looks at the name of an object that has other faults, so that a second one of that name is told in the same run.
func (r *reader) named(value map[string]any, at string, k kind) {
	metadata, _ := value["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, given := metadata["namespace"]
	text, ok := namespace.(string)
	if name == "" || given && namespace != nil && !ok {
		return
	}
	r.name(&metav1.ObjectMeta{Name: name, Namespace: text}, at, k)
}

// subdomain says what the name of an object must be.
const subdomain = "must be at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends"

// index is a position in a list.
var index = regexp.MustCompile(`\[\d+\]`)

// served reports whether an API server has given the object out. It knows its fields: one that is unknown here is no
// misspelling but of a newer release.
func served(value map[string]any) bool {
	meta, ok := value["metadata"].(map[string]any)
	return ok && meta["resourceVersion"] != nil && meta["resourceVersion"] != "" && meta["uid"] != nil
}

// name gives the object the identity that it would have in a cluster, and refuses a second object of the same one.
func (r *reader) name(o metav1.Object, at string, k kind) bool {
	field := join(at, "metadata.name")
	switch {
	case k.namespaced && o.GetNamespace() == "":
		o.SetNamespace("default")
	case !k.namespaced && o.GetNamespace() != "":
		r.fault(join(at, "metadata.namespace"), fmt.Sprintf("a %s has no namespace", k.name))
		return false
	case k.namespaced && len(validation.IsDNS1123Label(o.GetNamespace())) > 0:
		r.fault(join(at, "metadata.namespace"), fmt.Sprintf("is %s, must be at most 63 lower-case letters, digits and -, with a letter or digit at both ends", show(o.GetNamespace())))
		return false
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		prefix := k.name + "/" + o.GetNamespace() + "/" + o.GetGenerateName()
		r.generated[prefix]++
		o.SetName(fmt.Sprintf("%s%d", o.GetGenerateName(), r.generated[prefix]))
	}
	switch {
	case o.GetName() == "":
		r.fault(field, "is missing")
		return false
	case len(validation.IsDNS1123Subdomain(o.GetName())) > 0:
		r.fault(field, fmt.Sprintf("is %s, %s", show(o.GetName()), subdomain))
		return false
	}
	id := k.group + "/" + k.name + "/" + o.GetNamespace() + "/" + o.GetName()
	where := fmt.Sprintf("%s, document %d", r.doc.file, r.doc.index)
	if first, twice := r.seen[id]; twice {
		r.fault(field, fmt.Sprintf("%s %s was given before (%s)", k.name, o.GetName(), first))
		return false
	}
	r.seen[id] = where
	return true
}
