package kueue

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/reason"
)

// bind records the templates of a pod set's managed claims. A template's spec is immutable, so a gang is bound to what it
// asks for by the template's UID. Kueue says nowhere which template it charged for; but it had done so when it reserved the
// quota, and one that is younger than that is another one.
func (r *Request) bind(wl *kueue.Workload, ps *kueue.PodSet, claims []gang.Claim, in Lookup) *reason.Refusal {
	for _, entry := range ps.Template.Spec.ResourceClaims {
		managed := false
		for _, c := range claims {
			managed = managed || c.PodClaim == entry.Name
		}
		if !managed || entry.ResourceClaimTemplateName == nil {
			continue
		}
		t := in.Template(wl.Namespace, *entry.ResourceClaimTemplateName)
		if t == nil {
			continue
		}
		if younger(t, wl) {
			return &reason.Refusal{Code: reason.TemplateReplaced, Message: fmt.Sprintf(
				"ResourceClaimTemplate %s of pod claim %s was created after Kueue had charged for another one of that name", t.Name, entry.Name)}
		}
		r.Templates[PodClaim{string(ps.Name), entry.Name}] = berth.TemplateReference{Name: t.Name, UID: t.UID}
	}
	return nil
}

// younger reports whether a template was created after quota was reserved. Both times count seconds.
func younger(t *resourcev1.ResourceClaimTemplate, wl *kueue.Workload) bool {
	quota := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	return quota != nil && quota.Status == metav1.ConditionTrue && t.CreationTimestamp.After(quota.LastTransitionTime.Time)
}
