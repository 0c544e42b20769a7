package line

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/gang"
)

// needs tells gangs apart by what they ask for: gangs of equal need get equal answers.
type needs struct {
	// hosts are digests of Ineligible maps by their address: gangs share them, and they are long.
	hosts map[uintptr]string
}

// of is equal for gangs that differ in nothing but their names.
func (n *needs) of(g gang.Gang) string {
	var b strings.Builder
	for i := range g.PodSets {
		ps := &g.PodSets[i]
		fmt.Fprintf(&b, "%q %d %d", ps.Name, ps.Count, ps.Slices)
		for _, c := range ps.Claims {
			fmt.Fprintf(&b, " claim %q", c.PodClaim)
			for _, r := range c.Requests {
				fmt.Fprintf(&b, " %q %q %d %#v", r.Name, r.Class, r.Count, r.Tolerations)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ps.Requests)) {
			fmt.Fprintf(&b, " %q %d", name, ps.Requests[name])
		}
		b.WriteString(" " + n.ineligible(ps.Ineligible) + "\n")
	}
	return b.String()
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
