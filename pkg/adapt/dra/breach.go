package dra

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// breach names a rule on where devices stand that the slice breaks; an API server enforces them, files may hold anything.
// Which of two answers counts nobody can tell, and a device without one would be left out in silence. That nothing is said
// for a whole slice is told apart in inventory.Published: a good slice becomes one where a feature gate is off.
func breach(s *resourcev1.ResourceSliceSpec) string {
	if s.Pool.Generation < 0 {
		return fmt.Sprintf("its generation is %d", s.Pool.Generation)
	}
	perDevice := ptr.Deref(s.PerDeviceNodeSelection, false)
	said := answers(s.NodeName, s.NodeSelector, s.AllNodes)
	if perDevice && said > 0 || said > 1 {
		return "it sets more than one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		switch said := answers(d.NodeName, d.NodeSelector, d.AllNodes); {
		case perDevice && said != 1:
			return fmt.Sprintf("device %s needs one of nodeName, nodeSelector and allNodes, because perDeviceNodeSelection is set", d.Name)
		case !perDevice && said > 0:
			return fmt.Sprintf("device %s says which nodes reach it although perDeviceNodeSelection is not set", d.Name)
		}
	}
	return ""
}

// answers counts how often it is said which nodes reach something.
func answers(name *string, selector *corev1.NodeSelector, all *bool) int {
	n := 0
	for _, said := range []bool{ptr.Deref(name, "") != "", selector != nil, ptr.Deref(all, false)} {
		if said {
			n++
		}
	}
	return n
}
