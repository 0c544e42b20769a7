package kueue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/reason"
)

// wantedSlices is how many slices the pod set asks for; zero when it says nothing.
func wantedSlices(ps *kueue.PodSet) (int, *reason.Refusal) {
	value, asked := ps.Template.Annotations[berth.AnnotationSlices]
	if !asked {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, &reason.Refusal{Code: reason.NotDivisible, Message: fmt.Sprintf(
			"annotation %s is %q: it must be a whole number of slices, 1 or more", berth.AnnotationSlices, value)}
	}
	return n, nil
}

// wantedInterconnect is what the pod set says about it; nothing is a preference.
func wantedInterconnect(ps *kueue.PodSet) (gang.Interconnect, *reason.Refusal) {
	value, asked := ps.Template.Annotations[berth.AnnotationInterconnect]
	switch {
	case !asked || value == berth.InterconnectPreferred:
		return gang.Preferred, nil
	case value == berth.InterconnectRequired:
		return gang.Required, nil
	}
	return gang.Preferred, &reason.Refusal{Code: reason.Unsupported, Message: fmt.Sprintf(
		"annotation %s is %q: it must be %s or %s", berth.AnnotationInterconnect, value, berth.InterconnectRequired, berth.InterconnectPreferred)}
}

// reservedKeys refuses a template that was copied from a running Job: its keys would send the pods to another gang's
// claims, and Kueue fails a Workload whose keys differ from the ones that the check sets.
func reservedKeys(ps *kueue.PodSet) *reason.Refusal {
	var found []string
	for key := range ps.Template.Labels {
		if key == berth.LabelReservation {
			found = append(found, "label "+key)
		}
	}
	for key := range ps.Template.Annotations {
		switch key {
		case berth.AnnotationContract, berth.AnnotationHosts, berth.AnnotationPodsPerJob:
			found = append(found, "annotation "+key)
		default:
			if strings.HasPrefix(key, berth.AnnotationClaimPrefix) {
				found = append(found, "annotation "+key)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return &reason.Refusal{Code: reason.ReservedKeys, Message: fmt.Sprintf(
		"the pod template of pod set %s carries keys that only Berth sets: remove %s", ps.Name, strings.Join(found, ", "))}
}
