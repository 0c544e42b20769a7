package line

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// unmanaged lets a gang go that asks for nothing of Berth's, unless it has waited for managed devices: then their
// AcceleratorPool was deleted, perhaps to be replaced in a second, and a whole line of gangs would start unguarded.
func (v *view) unmanaged(wl *kueue.Workload, check *kueue.AdmissionCheckState, s *steps) *reason.Refusal {
	said := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	if said != nil && provesManaged(said.Reason) {
		return &reason.Refusal{Code: reason.PoolMissing, Message: fmt.Sprintf(
			"the gang waited for %s, which no AcceleratorPool matches any more: create the AcceleratorPool again; "+
				"to run the gang without Berth submit it again or take the check off its ClusterQueue", strings.Join(v.classes(wl), ", "))}
	}
	a := adaptkueue.Answer{Check: check.Name, State: kueue.CheckStateReady, Message: "the gang asks for no device that Berth manages"}
	if said != nil {
		// What stands there speaks of something that the gang no longer waits for.
		a.Reason = adaptkueue.ReasonIgnored
	}
	v.answer(wl, a, s)
	return nil
}

// provesManaged reports whether a reason of GangReserved is given only to gangs that ask for managed devices. A template
// that does not exist, or a class without devices, may turn out to be none of Berth's business.
func provesManaged(why string) bool {
	switch why {
	case string(reason.ClaimMissing), string(reason.ShapeUnknown), adaptkueue.ReasonIgnored:
		return false
	default:
		return true
	}
}

// classes are the DeviceClasses that the pods of a Workload ask for, each once and in order.
func (v *view) classes(wl *kueue.Workload) []string {
	var names []string
	for _, ps := range wl.Spec.PodSets {
		for _, entry := range ps.Template.Spec.ResourceClaims {
			if entry.ResourceClaimTemplateName == nil {
				continue
			}
			t := v.lookup.Template(wl.Namespace, *entry.ResourceClaimTemplateName)
			if t == nil {
				continue
			}
			for _, r := range t.Spec.Spec.Devices.Requests {
				if r.Exactly != nil {
					names = append(names, r.Exactly.DeviceClassName)
				}
				for _, sub := range r.FirstAvailable {
					names = append(names, sub.DeviceClassName)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
