package render

import (
	"fmt"
	"strings"
)

// CapacityReport counts the hardware.
type CapacityReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Classes that select managed devices, largest first.
	Classes []ClassCapacity `json:"classes"`
	// Folds are the CapacityFolds of the input.
	Folds []FoldCapacity `json:"folds"`
	Hosts HostCapacity   `json:"hosts"`
	Pools []PoolCapacity `json:"pools"`
	// Warnings and Errors are as in FitReport.
	Warnings []string `json:"warnings"`
	Errors   []string `json:"errors"`
}

// ClassCapacity counts the devices of one shape. Only pools that are complete and valid count.
type ClassCapacity struct {
	DeviceClass string `json:"deviceClass"`
	// Hosts that one device spans; where devices of the class differ, the largest number. Shares then count the hosts of
	// each device.
	Hosts int `json:"hosts"`
	// Devices that are published and can be reserved at all.
	Devices int `json:"devices"`
	// Usable devices: not tainted, every host there, Ready and schedulable, none quarantined.
	Usable int `json:"usable"`
	// Free devices: usable, and nothing of them is held. They may overlap.
	Free int `json:"free"`
	// DisjointFree is how many of the free ones can be allocated at once.
	DisjointFree int `json:"disjointFree"`
	// Shares is Hosts × the largest number of usable devices that could be allocated at once if nothing were held.
	Shares int `json:"shares"`
	// FreeShares is Hosts × DisjointFree.
	FreeShares int `json:"freeShares"`
	// Proved is false when DisjointFree or Shares may be too small because the search for them was cut short.
	Proved bool `json:"proved"`
}

// HostCapacity counts the hosts that devices of managed pools stand on.
type HostCapacity struct {
	Total int `json:"total"`
	// Usable hosts exist, are Ready and schedulable.
	Usable int `json:"usable"`
	// Free hosts are usable, and no device on them is held.
	Free int `json:"free"`
	// Stranded hosts are free but in no free device of several hosts; in pools without such devices, in no free device.
	Stranded int `json:"stranded"`
}

// PoolCapacity is one DRA pool.
type PoolCapacity struct {
	Driver     string `json:"driver"`
	Pool       string `json:"pool"`
	Generation int64  `json:"generation"`
	// Complete: every ResourceSlice of the generation is there.
	Complete bool `json:"complete"`
	// Valid: no rule of the resource API is broken, as far as the slices that are there tell.
	Valid bool `json:"valid"`
	// Reason is why nothing of the pool is given out, a code of docs/reasons.md; else empty.
	Reason string `json:"reason"`
	// Message is the sentence for Reason.
	Message string `json:"message"`
}

// NewCapacityReport has no list that is nil.
func NewCapacityReport(warnings, errors []string) CapacityReport {
	return CapacityReport{
		APIVersion: APIVersion, Kind: "CapacityReport", Classes: []ClassCapacity{}, Folds: []FoldCapacity{}, Pools: []PoolCapacity{},
		Warnings: full(warnings), Errors: full(errors),
	}
}

// atLeast is a number that may be too small unless it is proved.
func atLeast(n int, proved bool) string {
	if proved {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf(">=%d", n)
}

// Text is the report as tables.
func (r CapacityReport) Text(wide bool) string {
	var b strings.Builder
	head := []string{"CLASS", "HOSTS", "DEVICES", "USABLE", "FREE", "FREE-AT-ONCE", "SHARES", "FREE-SHARES"}
	if wide {
		head = append(head, "PROVED")
	}
	var rows [][]string
	for _, c := range r.Classes {
		row := []string{c.DeviceClass}
		for _, n := range []int{c.Hosts, c.Devices, c.Usable, c.Free} {
			row = append(row, fmt.Sprint(n))
		}
		for _, n := range []int{c.DisjointFree, c.Shares, c.FreeShares} {
			row = append(row, atLeast(n, c.Proved))
		}
		if wide {
			row = append(row, fmt.Sprint(c.Proved))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		b.WriteString("no DeviceClass selects a managed device\n")
	} else {
		b.WriteString(Table(head, rows))
	}
	fmt.Fprintf(&b, "\n%s, %d usable, %d free, %d stranded\n", count(r.Hosts.Total, "host"), r.Hosts.Usable, r.Hosts.Free, r.Hosts.Stranded)
	rows = nil
	for _, p := range r.Pools {
		if wide || p.Reason != "" {
			rows = append(rows, []string{p.Driver, p.Pool, fmt.Sprint(p.Generation), fmt.Sprint(p.Complete), fmt.Sprint(p.Valid), dash(p.Reason), dash(p.Message)})
		}
	}
	if len(rows) > 0 {
		b.WriteString("\n" + Table([]string{"DRIVER", "POOL", "GENERATION", "COMPLETE", "VALID", "REASON", "MESSAGE"}, rows))
	}
	if folds := r.folds(wide); folds != "" {
		b.WriteString("\n" + folds)
	}
	return b.String()
}
