package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// KeyFence is the key of the fence's device taint, and of the label by which an AcceleratorPool's rules are listed. Berth
// ignores the taint when it looks at devices; claims with adminAccess may tolerate it.
const KeyFence = "berth.dev/fence"

// FenceLabelValue is the value of the label KeyFence, and of the taint, for an AcceleratorPool: its name, or what fits of
// it and a hash.
func FenceLabelValue(acceleratorPool string) string {
	const most = 63
	if len(acceleratorPool) <= most {
		return acceleratorPool
	}
	return strings.TrimRight(acceleratorPool[:most-11], "-.") + "-" + hash(acceleratorPool)
}

// FenceRules returns the DeviceTaintRules that keep kube-scheduler from trying the pool's devices: one for the driver
// without a poolSelector, otherwise one for each DRA pool. A rule cannot hold a prefix, so draPools are the names of the
// driver's DRA pools there are now; those that the selector selects get a rule. Exact names get one whether the pool
// exists or not, so that it is fenced from its first moment.
//
// There are none for fence Observe. The rules spare vain attempts and are no fence by themselves: a scheduler's decision
// made before a taint is still written after it.
func FenceRules(pool *v1alpha1.AcceleratorPool, draPools []string) []*resourcev1.DeviceTaintRule {
	if pool.Spec.Fence == v1alpha1.FenceObserve {
		return nil
	}
	if pool.Spec.PoolSelector == nil {
		return []*resourcev1.DeviceTaintRule{fenceRule(pool, nil)}
	}
	names := slices.Clone(pool.Spec.PoolSelector.Names)
	for _, name := range draPools {
		if slices.ContainsFunc(pool.Spec.PoolSelector.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var rules []*resourcev1.DeviceTaintRule
	for _, name := range slices.Compact(names) {
		rules = append(rules, fenceRule(pool, ptr.To(name)))
	}
	return rules
}

func fenceRule(pool *v1alpha1.AcceleratorPool, draPool *string) *resourcev1.DeviceTaintRule {
	rule := &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "berth-fence-" + hash(pool.Name, pool.Spec.Driver, ptr.Deref(draPool, "")),
			Labels: map[string]string{KeyFence: FenceLabelValue(pool.Name)},
		},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(pool.Spec.Driver), Pool: draPool},
			Taint: resourcev1.DeviceTaint{
				Key: KeyFence, Value: FenceLabelValue(pool.Name), Effect: resourcev1.DeviceTaintEffectNoSchedule,
			},
		},
	}
	if pool.UID != "" {
		// So that the rules go with the AcceleratorPool even when Berth is not there to remove them.
		rule.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "AcceleratorPool", Name: pool.Name, UID: pool.UID,
		}}
	}
	return rule
}

// hash is 10 hexadecimal digits over parts, none of which can hold a NUL.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:10]
}
