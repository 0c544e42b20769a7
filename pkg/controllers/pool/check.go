package pool

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// writeCheck keeps the condition Active of one AdmissionCheck. It is False only for missing parameters and for policies
// that have been failing for a while: a check that is not active makes its ClusterQueues inactive, which stops every
// Workload in them.
func (r *reconciler) writeCheck(ctx context.Context, ac *kueue.AdmissionCheck, v *view) error {
	want := activeCondition(ac, v)
	have := apimeta.FindStatusCondition(ac.Status.Conditions, kueue.AdmissionCheckActive)
	if want == nil || (have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message) {
		return nil
	}
	changed := ac.DeepCopy()
	apimeta.SetStatusCondition(&changed.Status.Conditions, *want)
	if err := r.Client.Status().Update(ctx, changed); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing AdmissionCheck %s: %w", ac.Name, err)
	}
	return nil
}

// activeCondition is what Active should say; nil when it is too early to change it.
func activeCondition(ac *kueue.AdmissionCheck, v *view) *metav1.Condition {
	c := &metav1.Condition{
		Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active",
		Message: "the admission policies are in force", ObservedGeneration: ac.Generation, LastTransitionTime: metav1.NewTime(v.now),
	}
	if why, missing := missingParameters(ac, v); missing {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "BadParameters", why
		return c
	}
	if err := v.report.PoliciesErr(); err != nil {
		if apimeta.IsStatusConditionTrue(ac.Status.Conditions, kueue.AdmissionCheckActive) && v.now.Sub(v.failingSince) < debounce {
			return nil
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "PoliciesNotInForce", firstLine(err)
	}
	return c
}

func missingParameters(ac *kueue.AdmissionCheck, v *view) (string, bool) {
	ref := ac.Spec.Parameters
	if ref == nil {
		return "", false
	}
	if ref.APIGroup != berth.GroupVersion.Group || ref.Kind != "GangReservationConfig" {
		return fmt.Sprintf("spec.parameters names a %s.%s: it must be a GangReservationConfig.%s", ref.Kind, ref.APIGroup, berth.GroupVersion.Group), true
	}
	for _, config := range v.snapshot.Configs {
		if config.Name == ref.Name {
			return "", false
		}
	}
	return fmt.Sprintf("GangReservationConfig %s does not exist", ref.Name), true
}
