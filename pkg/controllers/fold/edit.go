package fold

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Kueue's objects are changed as they came, so that what this version of Kueue's types does not know stays.

// entry is one number of one resource of one flavor.
type entry struct {
	flavor, resource string
	want             int
}

func (e entry) quota() map[string]any {
	return map[string]any{"name": e.resource, "nominalQuota": strconv.Itoa(e.want)}
}

// set changes the nominalQuota and nothing else. It returns false when there is no such entry.
func (e entry) set(groups []any) bool {
	for _, group := range groups {
		for _, flavor := range children(group, "flavors") {
			if !named(flavor, e.flavor) {
				continue
			}
			for _, resource := range children(flavor, "resources") {
				if named(resource, e.resource) {
					resource.(map[string]any)["nominalQuota"] = strconv.Itoa(e.want)
					return true
				}
			}
		}
	}
	return false
}

// add adds the entry: to the flavor's own group, if there is one for this resource alone, else as a group of its own. Kueue
// wants each flavor of a group to list the same resources, so it fits in no other.
func (e entry) add(groups []any) []any {
	flavor := map[string]any{"name": e.flavor, "resources": []any{e.quota()}}
	for _, group := range groups {
		g, is := group.(map[string]any)
		covered, _, err := unstructured.NestedStringSlice(g, "coveredResources")
		if is && err == nil && slices.Equal(covered, []string{e.resource}) {
			g["flavors"] = append(children(group, "flavors"), flavor)
			return groups
		}
	}
	return append(groups, map[string]any{"coveredResources": []any{e.resource}, "flavors": []any{flavor}})
}

// edited is a copy of a Cohort or ClusterQueue with the number in it. What is not Berth's gets no entry that it lacks.
func (e entry) edited(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	groups, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "resourceGroups")
	list, is := groups.([]any)
	if err != nil || (groups != nil && !is) {
		return nil, fmt.Errorf("%s %s has no list of resourceGroups", object.GetKind(), object.GetName())
	}
	if e.set(list) {
		return object, nil
	}
	if object.GetLabels()[berth.LabelFold] == "" {
		return nil, fmt.Errorf("%s %s has no quota for %s of flavor %s", object.GetKind(), object.GetName(), e.resource, e.flavor)
	}
	return object, unstructured.SetNestedSlice(object.Object, e.add(list), "spec", "resourceGroups")
}

// cohort is a new Cohort with this entry alone.
func (e entry) cohort(name, fold string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kindOf(berth.FoldCohort))
	object.SetName(name)
	object.SetLabels(map[string]string{berth.LabelFold: fold})
	object.Object["spec"] = map[string]any{"resourceGroups": e.add(nil)}
	return object
}

func children(of any, field string) []any {
	m, _ := of.(map[string]any)
	list, _ := m[field].([]any)
	return list
}

func named(object any, name string) bool {
	m, _ := object.(map[string]any)
	return m["name"] == name
}
