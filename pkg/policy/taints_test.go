package policy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

func TestFenceRules(t *testing.T) {
	existing := []string{"pod-b", "pod-a", "rack/1", "pod-a"}
	for _, tc := range []struct {
		name     string
		fence    v1alpha1.FenceMode
		selector *v1alpha1.PoolSelector
		want     string // the pools, * for the whole driver
	}{
		{"whole driver", v1alpha1.FenceEnforce, nil, "*"},
		{"default fence", "", nil, "*"},
		{"observe", v1alpha1.FenceObserve, nil, ""},
		{"names, whether they exist or not", "", &v1alpha1.PoolSelector{Names: []string{"pod-z", "pod-a"}}, "pod-a pod-z"},
		{"prefixes of those that exist", "", &v1alpha1.PoolSelector{Prefixes: []string{"pod-", "po"}}, "pod-a pod-b"},
		{"both", "", &v1alpha1.PoolSelector{Names: []string{"rack/1"}, Prefixes: []string{"pod-a"}}, "pod-a rack/1"},
		{"prefix without match", "", &v1alpha1.PoolSelector{Prefixes: []string{"x"}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := acceleratorPool("fleet", "tpu.example.com", tc.fence, tc.selector)
			var got, names []string
			for _, rule := range policy.FenceRules(pool, existing) {
				got = append(got, ptr.Deref(rule.Spec.DeviceSelector.Pool, "*"))
				names = append(names, rule.Name)
				if *rule.Spec.DeviceSelector.Driver != "tpu.example.com" || rule.Labels[policy.KeyFence] != "fleet" ||
					rule.Spec.Taint.Effect != resourcev1.DeviceTaintEffectNoSchedule {
					t.Errorf("%+v", rule)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
			var again []string
			for _, rule := range policy.FenceRules(pool, existing) {
				again = append(again, rule.Name)
			}
			if !slices.Equal(names, again) || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
				t.Errorf("names %v, then %v", names, again)
			}
		})
	}
}

func TestFenceRulesAreValid(t *testing.T) {
	w := fenced(t)
	pool := acceleratorPool(strings.Repeat("long-name.", 20)+"end", "tpu.example.com", "", &v1alpha1.PoolSelector{Names: []string{"rack-1/pod-a", "pod-b"}})
	must(t, w.admin.Create(t.Context(), pool))
	t.Cleanup(func() { must(t, w.admin.Delete(context.Background(), pool)) })
	for _, rule := range policy.FenceRules(pool, nil) {
		must(t, w.berth.Create(t.Context(), rule))
		t.Cleanup(func() { must(t, w.admin.Delete(context.Background(), rule)) })
	}
	var rules resourcev1.DeviceTaintRuleList
	must(t, w.berth.List(t.Context(), &rules, client.MatchingLabels{policy.KeyFence: policy.FenceLabelValue(pool.Name)}))
	if len(rules.Items) != 2 {
		t.Errorf("found %d rules by label", len(rules.Items))
	}
}
