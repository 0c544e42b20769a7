package line

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/pkg/gang"
)

// needs tells gangs apart by what they ask for: gangs of equal need get equal answers.
type needs struct {
	// hosts are digests of Ineligible maps by their address: gangs share them, and they are long.
	hosts map[uintptr]string
	// buffer and names are scratch.
	buffer []byte
	names  []string
}

// of is equal for gangs that differ in nothing but their names.
func (n *needs) of(g gang.Gang) string {
	b := n.buffer[:0]
	number := func(i int64) { b = append(strconv.AppendInt(append(b, ' '), i, 10), ' ') }
	for i := range g.PodSets {
		ps := &g.PodSets[i]
		b = strconv.AppendQuote(b, ps.Name)
		number(int64(ps.Count))
		number(int64(ps.Slices))
		b = strconv.AppendQuote(b, string(ps.Interconnect))
		for _, c := range ps.Claims {
			b = strconv.AppendQuote(append(b, "claim "...), c.PodClaim)
			for _, r := range c.Requests {
				b = strconv.AppendQuote(b, r.Name)
				b = strconv.AppendQuote(b, r.Class)
				number(int64(r.Count))
				for _, a := range r.Capacity {
					b = strconv.AppendQuote(b, a.Name)
					number(a.Milli)
				}
				if len(r.Tolerations) > 0 {
					b = fmt.Appendf(b, "%#v", r.Tolerations)
				}
			}
		}
		n.names = n.names[:0]
		for name := range ps.Requests {
			n.names = append(n.names, name)
		}
		slices.Sort(n.names)
		b = append(b, "pod "...) // What the pods ask for reads like the capacities of the last request.
		for _, name := range n.names {
			b = strconv.AppendQuote(b, name)
			number(ps.Requests[name])
		}
		b = append(append(b, n.ineligible(ps.Ineligible)...), '\n')
	}
	n.buffer = b
	return string(b)
}

func (n *needs) ineligible(hosts map[string]string) string {
	if len(hosts) == 0 {
		return ""
	}
	at := reflect.ValueOf(hosts).Pointer()
	if digest, known := n.hosts[at]; known {
		return digest
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		fmt.Fprintf(h, "%q %q\n", name, hosts[name])
	}
	digest := fmt.Sprintf("%x", h.Sum(nil))
	n.hosts[at] = digest
	return digest
}
