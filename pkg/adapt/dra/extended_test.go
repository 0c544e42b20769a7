package dra

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/ledger"
)

// What a DeviceClass serves is no matter of the hosts, unless they have it from a device plugin.
func TestExtendedResourcesOfDeviceClasses(t *testing.T) {
	const vf, plugin, devices = "nic.example.com/vf", "node-0-a", "node-0-b"
	s := racks(1)
	s.Nodes[0].Status.Allocatable[corev1.ResourceName(vf)] = resource.MustParse("2")
	asks := map[string]int64{vf: 1000, "cpu": 1000}
	check := func(host string, requests map[string]int64, room int, overcommitted bool) {
		t.Helper()
		l := ledger.New(NewCache().Read(s).Inventory)
		l.Use(host, "x/other", map[string]int64{vf: 1000})
		if got := l.Room(host, requests); got != room {
			t.Errorf("room on %s is %d, not %d", host, got, room)
		}
		if got := l.Overcommitted(host, requests); got != overcommitted {
			t.Errorf("overcommitted on %s: %v", host, got)
		}
	}
	check(plugin, asks, 1, false)
	check(devices, asks, 0, true)
	s.DeviceClasses[1].Spec.ExtendedResourceName = ptr.To(vf)
	check(plugin, asks, 1, false)
	check(devices, asks, 32, false)
	check(devices, map[string]int64{"nic.example.com/pf": 1000}, 0, false)
}
