package faults

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Verbs of a Site. A server-side apply is its own verb, because it creates as well as patches.
const (
	VerbCreate           = "create"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbApply            = "apply"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
)

// Site is one write of a run, by its class and its number within the class. Numbers within a class are stable from run
// to run even where writes of different objects happen in parallel; which object the k-th is may then differ.
type Site struct {
	// Verb is one of the Verb constants.
	Verb string
	// Resource is the plural in lower case; Subresource is empty for the object itself.
	Resource, Subresource string
	// N counts the writes of this class from 1.
	N int
}

// Class returns the site without its number: "update resourceclaims/status".
func (s Site) Class() string {
	if s.Subresource == "" {
		return s.Verb + " " + s.Resource
	}
	return s.Verb + " " + s.Resource + "/" + s.Subresource
}

// String returns the form that ParseSite reads: "update resourceclaims/status#1".
func (s Site) String() string { return s.Class() + "#" + strconv.Itoa(s.N) }

// ParseSite reads "<verb> <resource>[/<subresource>][#<n>]"; without a number it is the first.
func ParseSite(text string) (Site, error) {
	class, number, numbered := strings.Cut(text, "#")
	verb, what, ok := strings.Cut(class, " ")
	if !ok || what == "" {
		return Site{}, fmt.Errorf("site %q is not of the form \"verb resource/subresource#n\"", text)
	}
	site := Site{Verb: verb, N: 1}
	site.Resource, site.Subresource, _ = strings.Cut(what, "/")
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return Site{}, fmt.Errorf("site %q: the number must be 1 or more", text)
		}
		site.N = n
	}
	switch verb {
	case VerbCreate, VerbUpdate, VerbPatch, VerbApply, VerbDelete, VerbDeleteCollection:
		return site, nil
	}
	return Site{}, fmt.Errorf("site %q: unknown verb %q", text, verb)
}

// At is ParseSite for constants: it panics on a text that is no site.
func At(text string) Site {
	site, err := ParseSite(text)
	if err != nil {
		panic(err)
	}
	return site
}

// resourceOf names the resource of obj. Where the mapper does not know the kind, the plural is guessed: a label that
// is the same in every run is worth more here than an error.
func resourceOf(c client.Client, obj runtime.Object) string {
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return strings.ToLower(fmt.Sprintf("%T", obj))
	}
	return pluralOf(c, kind)
}

func pluralOf(c client.Client, kind schema.GroupVersionKind) string {
	if mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		return mapping.Resource.Resource
	}
	guess, _ := meta.UnsafeGuessKindToResource(kind)
	return guess.Resource
}

// appliedResourceOf names the resource of an apply configuration, which is no runtime.Object but carries its kind.
func appliedResourceOf(c client.Client, applied runtime.ApplyConfiguration) string {
	if object, ok := applied.(interface {
		GroupVersionKind() schema.GroupVersionKind
	}); ok {
		return pluralOf(c, object.GroupVersionKind())
	}
	typed, ok := applied.(interface {
		GetKind() *string
		GetAPIVersion() *string
	})
	if ok && typed.GetKind() != nil && typed.GetAPIVersion() != nil {
		return pluralOf(c, schema.FromAPIVersionAndKind(*typed.GetAPIVersion(), *typed.GetKind()))
	}
	return strings.ToLower(fmt.Sprintf("%T", applied))
}

// appliedNamespaceOf returns the namespace of an apply configuration; empty if it has none.
func appliedNamespaceOf(applied runtime.ApplyConfiguration) string {
	switch object := applied.(type) {
	case interface{ GetNamespace() string }:
		return object.GetNamespace()
	case interface{ GetNamespace() *string }:
		if namespace := object.GetNamespace(); namespace != nil {
			return *namespace
		}
	}
	return ""
}
