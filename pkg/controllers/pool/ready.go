package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// readiness is about the DRA pools that the AcceleratorPool manages. What another one manages, and hosts that are out of
// use, are told beside it: neither makes a pool that is left less complete.
func readiness(s berth.AcceleratorPoolStatus, overlaps []dra.Overlap, unusable string) (bool, string, string) {
	var notes []string
	for _, o := range overlaps {
		notes = append(notes, o.String())
	}
	if s.Pools.Total == 0 && len(overlaps) > 0 {
		return false, "Overlap", "nothing is left for this one: " + strings.Join(notes, "; ")
	}
	if s.Pools.Total == 0 {
		return false, "NoPools", "no ResourceSlice of the driver matches: is the driver running, and is its name spelled the same?"
	}
	if unusable != "" {
		notes = slices.Insert(notes, 0, unusable)
	}
	why, message := "Complete", counted(s.Pools.Total, "pool is complete and valid", "pools are complete and valid")
	broken := s.Pools.Total - s.Pools.Usable
	if broken > 0 {
		worst := s.WorstPools[0]
		why, message = worst.Reason, fmt.Sprintf("%d of %s cannot be used: %s", broken, counted(s.Pools.Total, "pool", "pools"), worst.Message)
	}
	return broken == 0, why, strings.Join(append([]string{message}, notes...), "; ")
}

// unusableHosts says how many of the hosts take no pods, and why: "1 of 4 hosts is not usable: 1 HostMissing". It is empty
// when all do.
func unusableHosts(v *view, mine func(inventory.PoolID) bool) string {
	hosts := map[string]bool{}
	for _, pool := range v.world.Inventory.Pools() {
		if !mine(pool.ID) {
			continue
		}
		for _, d := range pool.Devices {
			for _, h := range d.Hosts {
				hosts[h] = true
			}
		}
	}
	reasons := map[reason.Code]int{}
	out := 0
	for name := range hosts {
		h, known := v.world.Inventory.Host(name)
		switch {
		case !known:
			reasons[reason.HostMissing]++
		case h.Blocked != nil:
			reasons[h.Blocked.Code]++
		default:
			continue
		}
		out++
	}
	if out == 0 {
		return ""
	}
	codes := make([]reason.Code, 0, len(reasons))
	for code := range reasons {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b reason.Code) int { return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b)) })
	counts := make([]string, 0, len(codes))
	for _, code := range codes {
		counts = append(counts, fmt.Sprintf("%d %s", reasons[code], code))
	}
	which := "no host is usable"
	if out < len(hosts) {
		is := "are"
		if out == 1 {
			is = "is"
		}
		which = fmt.Sprintf("%d of %d hosts %s not usable", out, len(hosts), is)
	}
	return which + ": " + strings.Join(counts, ", ")
}

func counted(n int32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
