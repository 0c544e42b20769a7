package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Differ says where two ledgers of the same pools and hosts differ first, or "". It looks at everything that either could
// ever answer, not only at what the answers are made from.
func Differ(a, b *Ledger) string {
	if diff := differ("hosts", a.inv.Hosts(), b.inv.Hosts()); diff != "" {
		return diff
	}
	ids := map[inventory.PoolID]bool{}
	for _, u := range slices.Concat(a.uses(), b.uses()) {
		ids[u.id] = true
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), inventory.ComparePools) {
		if diff := differ("pool "+id.String(), a.pool(id).lines(), b.pool(id).lines()); diff != "" {
			return diff
		}
	}
	if diff := differ("fingerprints", a.prints.lines(), b.prints.lines()); diff != "" {
		return diff
	}
	if diff := differ("quarantined hosts", mapLines(a.quarantined), mapLines(b.quarantined)); diff != "" {
		return diff
	}
	for _, host := range a.inv.Hosts() {
		if diff := differRoom(host, a.roomOf(host), b.roomOf(host)); diff != "" {
			return diff
		}
	}
	for host := range a.strange {
		if diff := differRoom(host, a.strange[host], b.strange[host]); diff != "" {
			return diff
		}
	}
	return differ("hosts without a node", slices.Sorted(maps.Keys(a.strange)), slices.Sorted(maps.Keys(b.strange)))
}

func differRoom(host string, a, b *hostUse) string {
	if a.same(b) {
		return ""
	}
	return differ("host "+host, a.lines(), b.lines())
}

// same reports whether both say the same, in whatever order.
func (u *hostUse) same(o *hostUse) bool {
	if u == o {
		return true
	}
	if u == nil || o == nil || len(u.pods) != len(o.pods) || len(u.used) != len(o.used) {
		return false
	}
	for _, a := range u.used {
		if o.of(a.name) != a.milli {
			return false
		}
	}
	matched := make([]bool, len(o.pods))
	for i, s := range u.pods {
		equal := func(at int) bool {
			return !matched[at] && o.pods[at].pod == s.pod && maps.Equal(o.pods[at].requests, s.requests)
		}
		at := i // Mostly they are in the same order.
		for n := 0; n < len(o.pods) && !equal(at); n++ {
			at = n
		}
		if !equal(at) {
			return false
		}
		matched[at] = true
	}
	return true
}

func differ(what string, a, b []string) string {
	for i := range max(len(a), len(b)) {
		x, y := "nothing", "nothing"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("%s: %s, and %s", what, x, y)
		}
	}
	return ""
}

// lines is everything that is kept of the pool, each line with a name, in an order that does not depend on its history.
func (u *poolUse) lines() []string {
	if u == nil {
		return nil
	}
	var out []string
	u.all(func(h *hold) {
		var records []string
		for _, r := range h.records {
			records = append(records, fmt.Sprint(r))
		}
		slices.Sort(records)
		out = append(out, fmt.Sprint("held ", h.Device, " by ", h.of, h.Holding, h.counters, h.device, h.regular, h.unbooked, h.print, records))
	})
	slices.Sort(out)
	o := &u.occupied
	out = append(out,
		fmt.Sprint("holds ", u.held), fmt.Sprint("irregular ", o.irregular), fmt.Sprint("fingerprint ", o.print),
		fmt.Sprint("identities ", len(o.stands)))
	for i, used := range u.used {
		out = append(out, fmt.Sprint("used of counter ", i, " ", used, " by ", owners(u.onCounter[i].all()), len(u.onCounter[i].all())))
	}
	for d := range o.standing {
		out = append(out, fmt.Sprint("device ", d, " ", o.standing[d], " stand, ", o.lacking[d], " short, ", o.shut[d], " shut"))
	}
	out = append(out, fmt.Sprint("unbooked ", owners(u.unbooked.all())))
	for _, h := range u.named {
		out = append(out, fmt.Sprint("named ", h.Owner, " of ", h.Device, " for ", h.of))
	}
	return append(out, mapLines(u.quarantined)...)
}

func (u *hostUse) lines() []string {
	if u == nil {
		return nil
	}
	pods := slices.Clone(u.pods)
	slices.SortFunc(pods, func(a, b seat) int {
		return cmp.Or(strings.Compare(a.pod, b.pod), strings.Compare(fmt.Sprint(a.requests), fmt.Sprint(b.requests)))
	})
	used := slices.Clone(u.used)
	slices.SortFunc(used, func(a, b amount) int { return strings.Compare(a.name, b.name) })
	return []string{fmt.Sprint("used ", used), fmt.Sprint("pods ", pods)}
}

func (p *prints) lines() []string {
	return []string{fmt.Sprint("all ", p.total), fmt.Sprint("pages ", p.pages)}
}

func mapLines(m map[string]int) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprint(k, " ", m[k], " times"))
	}
	return out
}
