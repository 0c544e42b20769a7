package pool

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// taint makes the DeviceTaintRules of all fences what they should be. They spare kube-scheduler vain attempts; the fence
// itself is the policy.
func (r *reconciler) taint(ctx context.Context, s *snapshot.Snapshot) error {
	if !r.TaintRules {
		return nil
	}
	want := map[string]*resourcev1.DeviceTaintRule{}
	for _, p := range s.AcceleratorPools {
		if p.DeletionTimestamp != nil {
			continue
		}
		for _, rule := range policy.FenceRules(p, draPools(s, p.Spec.Driver)) {
			want[rule.Name] = rule
		}
	}
	for _, have := range s.DeviceTaintRules {
		rule, wanted := want[have.Name]
		// Without the label it would count as a defect of the hardware, so one of ours that has lost it gets it back.
		if have.Labels[policy.KeyFence] == "" && !wanted {
			continue
		}
		delete(want, have.Name)
		if wanted && have.Labels[policy.KeyFence] == rule.Labels[policy.KeyFence] && same(rule.Spec, have.Spec) {
			continue
		}
		if !wanted {
			err := r.Client.Delete(ctx, have, client.Preconditions{UID: ptr.To(have.UID)})
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("deleting DeviceTaintRule %s: %w", have.Name, err)
			}
			continue
		}
		changed := have.DeepCopy()
		changed.Spec = rule.Spec
		if changed.Labels == nil {
			changed.Labels = map[string]string{}
		}
		maps.Copy(changed.Labels, rule.Labels)
		if err := r.Client.Update(ctx, changed); err != nil {
			return fmt.Errorf("updating DeviceTaintRule %s: %w", have.Name, err)
		}
	}
	for _, rule := range want {
		if err := r.Client.Create(ctx, rule); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating DeviceTaintRule %s: %w", rule.Name, err)
		}
	}
	return nil
}

// same reports whether a rule says what it should. The API server notes the time at which a taint was added.
func same(want, have resourcev1.DeviceTaintRuleSpec) bool {
	want.Taint.TimeAdded = have.Taint.TimeAdded
	return equality.Semantic.DeepEqual(want, have)
}

// draPools are the names of the DRA pools that a driver publishes.
func draPools(s *snapshot.Snapshot, driver string) []string {
	var names []string
	for _, slice := range s.ResourceSlices {
		if slice.Spec.Driver == driver {
			names = append(names, slice.Spec.Pool.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
