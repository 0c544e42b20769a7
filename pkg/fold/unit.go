package fold

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// A share is a part of a host: the whole of it where a device that stands on the host leaves room for no other of its kind, a
// quarter where four fit. Kueue adds shares up whatever class they are of, so on one host each must be the same part. How many
// devices of a kind fit beside each other on a host is a property of the counters alone; amounts cannot be compared instead,
// because drivers count larger devices in other counters than smaller ones.

type unitKey struct {
	plan *inventory.Plan
	// of stands for the devices and their classes.
	of uint64
}

// unit is what shares of some devices of a pool are: part is a class of which several devices fit on a host, whole one whose
// devices take several hosts, and problem says where shares differ. Empty and nil when there is none.
type unit struct {
	part, whole string
	problem     *reason.Refusal
}

// kind are devices that stand on equally many hosts and consume the same amounts.
type kind struct {
	hosts   int
	amounts string
}

var seed = maphash.MakeSeed()

// unitOf says where shares of the fold are not the same amount of hardware; nil when all are.
func (c *Compiler) unitOf(inv *inventory.Inventory, f *Fold) *reason.Refusal {
	classes := map[int]map[int32][]string{}
	for _, name := range f.Classes {
		class := inv.Class(name)
		for _, span := range class.Spans() {
			if span.Shared {
				return &reason.Refusal{Code: reason.FoldUnitMismatch, Message: fmt.Sprintf(
					"DeviceClass %s selects devices that several pods share: how many depends on what they ask for, so they have no number of shares", name)}
			}
		}
		for pool, devices := range capacity.Members(inv, f.In, name) {
			if classes[pool] == nil {
				classes[pool] = map[int32][]string{}
			}
			for _, d := range devices {
				classes[pool][d] = append(classes[pool][d], name)
			}
		}
	}
	var parts, wholes string
	for at, p := range inv.Pools() {
		of := classes[at]
		if len(of) == 0 {
			continue
		}
		u := c.inPool(p, of)
		if u.problem != nil {
			return u.problem
		}
		parts, wholes = cmp.Or(parts, u.part), cmp.Or(wholes, u.whole)
	}
	if parts != "" && wholes != "" {
		return &reason.Refusal{Code: reason.FoldUnitMismatch, Message: fmt.Sprintf(
			"several devices of DeviceClass %s fit on one host, and DeviceClass %s takes several hosts whole: their shares are not the same amount of hardware; fold them into flavors of their own, from hosts of their own",
			parts, wholes)}
	}
	return nil
}

// inPool compares the devices of one pool, by position with their classes.
func (c *Compiler) inPool(p *inventory.Pool, of map[int32][]string) unit {
	devices := slices.Sorted(maps.Keys(of))
	sum := uint64(len(devices))
	for _, d := range devices {
		sum = sum*31 + maphash.Comparable(seed, d)
		for _, class := range of[d] {
			sum = sum*31 + maphash.Comparable(seed, class)
		}
	}
	key := unitKey{p.Plan(), sum}
	u, known := c.former[key]
	if !known {
		u = c.compare(p.Plan(), devices, of)
	}
	c.units[key] = u
	return u
}

func (c *Compiler) compare(plan *inventory.Plan, devices []int32, of map[int32][]string) unit {
	var u unit
	onHost := make([]map[kind][]int32, len(plan.Hosts()))
	for _, d := range devices {
		k := kindOf(plan, d)
		if k.hosts > 1 && u.whole == "" {
			u.whole = of[d][0]
		}
		for _, h := range plan.Under(int(d)) {
			if onHost[h] == nil {
				onHost[h] = map[kind][]int32{}
			}
			onHost[h][k] = append(onHost[h][k], d)
		}
	}
	for h, kinds := range onHost {
		most, example := 0, ""
		for _, d := range byFirst(kinds) {
			n, class := c.beside(plan, kinds[kindOf(plan, d)]), of[d][0]
			if n > 1 && u.part == "" {
				u.part = class
			}
			if most != 0 && n != most {
				u.problem = &reason.Refusal{Code: reason.FoldUnitMismatch, Message: fmt.Sprintf(
					"on host %s %s of DeviceClass %s or %d of DeviceClass %s: their shares are not the same amount of hardware",
					plan.Hosts()[h], fit(most), example, n, class)}
				return u
			}
			if most == 0 {
				most, example = n, class
			}
		}
	}
	return u
}

// byFirst are the first devices of the kinds, in order.
func byFirst(kinds map[kind][]int32) []int32 {
	out := make([]int32, 0, len(kinds))
	for _, devices := range kinds {
		out = append(out, devices[0])
	}
	slices.Sort(out)
	return out
}

func fit(n int) string {
	if n == 1 {
		return "fits one device"
	}
	return fmt.Sprintf("fit %d devices", n)
}

// beside is how many devices of one kind fit on a host that all of them stand on.
func (c *Compiler) beside(plan *inventory.Plan, devices []int32) int {
	if exclude(plan, devices) {
		return 1
	}
	n, _ := c.calculate.Beside(plan, devices)
	return n
}

// exclude reports whether some counter that all the devices consume suffices for one of them only: the usual case, and much
// quicker than a search.
func exclude(plan *inventory.Plan, devices []int32) bool {
	for _, u := range plan.Uses(int(devices[0])) {
		all := true
		for _, d := range devices[1:] {
			at := slices.IndexFunc(plan.Uses(int(d)), func(o inventory.Use) bool { return o.Counter == u.Counter })
			if at < 0 || inventory.Add(u.Milli, plan.Uses(int(d))[at].Milli) <= plan.Total(int(u.Counter)) {
				all = false
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

func kindOf(plan *inventory.Plan, device int32) kind {
	amounts := make([]int64, 0, len(plan.Uses(int(device))))
	for _, u := range plan.Uses(int(device)) {
		amounts = append(amounts, u.Milli)
	}
	slices.Sort(amounts)
	var b strings.Builder
	var buf []byte
	for _, a := range amounts {
		buf = binary.AppendVarint(buf[:0], a)
		b.Write(buf)
	}
	return kind{len(plan.Under(int(device))), b.String()}
}
