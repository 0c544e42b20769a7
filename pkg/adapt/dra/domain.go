package dra

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

// domain is the domain of the interconnect that a device at a place belongs to. By is set whenever there is an
// interconnect; Value stays empty for a device that has none, also when its hosts differ.
func (t *topology) domain(by *berth.Interconnect, driver string, d *resourcev1.Device, at place) inventory.Domain {
	switch {
	case by == nil:
		return inventory.Domain{}
	case by.NodeLabel != "":
		return inventory.Domain{By: "label " + by.NodeLabel, Value: t.commonLabel(by.NodeLabel, at.hosts)}
	default:
		out := inventory.Domain{By: "attribute " + by.DeviceAttribute}
		if a, has := attributeOf(driver, d, by.DeviceAttribute); has && scalar(a) {
			out.Value = attributeText(a)
		}
		return out
	}
}

// commonLabel is the value that all hosts have, or nothing. A host without a Node has no labels.
func (t *topology) commonLabel(label string, hosts []string) string {
	common := ""
	for i, h := range hosts {
		n := t.byName[h]
		if n == nil {
			return ""
		}
		value := n.Labels[label]
		if i > 0 && value != common {
			return ""
		}
		common = value
	}
	return common
}

// attributeOf finds a qualified attribute as kube-scheduler does: a name without a domain stands in the driver's own.
func attributeOf(driver string, d *resourcev1.Device, qualified string) (resourcev1.DeviceAttribute, bool) {
	if a, has := d.Attributes[resourcev1.QualifiedName(qualified)]; has {
		return a, true
	}
	domain, name, _ := strings.Cut(qualified, "/")
	if domain != driver {
		return resourcev1.DeviceAttribute{}, false
	}
	a, has := d.Attributes[resourcev1.QualifiedName(name)]
	return a, has
}

func scalar(a resourcev1.DeviceAttribute) bool {
	return a.StringValue != nil || a.IntValue != nil || a.BoolValue != nil || a.VersionValue != nil
}
