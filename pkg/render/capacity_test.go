package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCapacityText marks numbers that may be too small, tells of pools that are not in use, and says so when there is nothing.
func TestCapacityText(t *testing.T) {
	r := NewCapacityReport(nil, nil)
	r.Classes = []ClassCapacity{
		{DeviceClass: "large", Hosts: 8, Devices: 4, Usable: 3, Free: 2, DisjointFree: 1, Shares: 16, FreeShares: 8, Proved: true},
		{DeviceClass: "windows", Hosts: 2, Devices: 900, Usable: 900, Free: 800, DisjointFree: 70, Shares: 300, FreeShares: 140},
	}
	r.Pools = []PoolCapacity{
		{Driver: "d.example.com", Pool: "p", Generation: 1, Complete: true, Valid: true},
		{Driver: "d.example.com", Pool: "q", Generation: 7, Valid: true, Reason: "PoolIncomplete", Message: "1 of 2 slices"},
	}
	r.Hosts = HostCapacity{Total: 1, Usable: 1, Free: 1, Stranded: 1}
	want := `CLASS     HOSTS   DEVICES   USABLE   FREE   FREE-AT-ONCE   SHARES   FREE-SHARES
large     8       4         3        2      1              16       8
windows   2       900       900      800    >=70           >=300    >=140

1 host, 1 usable, 1 free, 1 stranded

DRIVER          POOL   GENERATION   COMPLETE   VALID   REASON           MESSAGE
d.example.com   q      7            false      true    PoolIncomplete   1 of 2 slices
`
	if diff := cmp.Diff(want, r.Text(false)); diff != "" {
		t.Error(diff)
	}
	want = "no DeviceClass selects a managed device\n\n0 hosts, 0 usable, 0 free, 0 stranded\n"
	if diff := cmp.Diff(want, NewCapacityReport(nil, nil).Text(false)); diff != "" {
		t.Error(diff)
	}
}
