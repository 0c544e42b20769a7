package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/reason"
)

// TestFoldsText marks numbers that may be too small, and tells who gets what and what is lost.
func TestFoldsText(t *testing.T) {
	r := NewCapacityReport(nil, nil)
	r.Folds = []FoldCapacity{
		{
			Name: "tpu", Flavor: "tpu-v5e", Resource: "berth.dev/shares", Mode: "Live", Shares: 12, Published: 16, Usable: 15, Held: 4, Free: 8, Ready: true,
			Reason: "NotTiling", Message: "large fills 8 of 16 shares of pool a",
			Targets: []FoldQuota{{"Cohort", "a", 9}, {"ClusterQueue", "b", 3}},
			Losses: Losses([]reason.Evidence{
				{Kind: reason.KindHost, Name: "n1", Code: reason.HostUnusable, Detail: "is not Ready"},
				{Kind: reason.KindHost, Name: "n2", Code: reason.HostMissing},
				{Kind: reason.KindHost, Name: "n3", Code: reason.Quarantined},
				{Kind: reason.KindDevice, Name: "p/d", Code: reason.DeviceTainted, Detail: "repair:NoSchedule"},
				{Kind: reason.KindPool, Name: "q", Code: reason.PoolInvalid, Detail: "it breaks a rule"},
				{Kind: reason.KindClass, Name: "c", Code: reason.ShapeUnknown},
			}),
		},
		{Name: "gpu", Flavor: "gpu", Resource: "pods", Mode: "Physical", Proved: true, Reason: "ShapeUnknown", Message: "there is no DeviceClass gpu"},
	}
	_, text, _ := strings.Cut(r.Text(false), "stranded\n\n")
	want := `FOLD   FLAVOR    RESOURCE           MODE       SHARES   USABLE   HELD   FREE   READY   REASON         TARGETS                        MESSAGE
tpu    tpu-v5e   berth.dev/shares   Live       >=12     >=15     4      >=8    true    NotTiling      Cohort a 9, ClusterQueue b 3   large fills 8 of 16 shares of pool a
gpu    gpu       pods               Physical   0        0        0      0      false   ShapeUnknown   -                              there is no DeviceClass gpu
lost to CapacityFold tpu: n1 is not Ready (HostUnusable), n2 does not exist (HostMissing), n3 may still run a pod that nobody can see (Quarantined), device p/d is tainted repair:NoSchedule (DeviceTainted), pool q cannot be used: it breaks a rule (PoolInvalid), class c selects no device (ShapeUnknown)
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}
