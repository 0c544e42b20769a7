package line

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Slice names the devices of a target: <pool>/<device>, up to three of them.
func (t *Target) Slice() string {
	var devices []string
	for _, ps := range t.Decision.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for _, d := range in.Devices {
					devices = append(devices, d.Pool.Name+"/"+d.Name)
				}
			}
		}
	}
	slices.SortFunc(devices, inventory.Natural)
	return some(devices, 3)
}

// String says what the target waits for: one sentence that stays the same while the holders do.
func (t *Target) String() string {
	switch {
	case len(t.Holders) == 0:
		return fmt.Sprintf("waits for %s", t.Slice())
	case t.Open:
		return fmt.Sprintf("waits for %s, which is kept for it once only gangs are in the way: %s", t.Slice(), some(t.Holders, 5))
	default:
		end := "end"
		if len(t.Holders) == 1 {
			end = "ends"
		}
		return fmt.Sprintf("waits for %s: drains when %s %s", t.Slice(), some(t.Holders, 5), end)
	}
}

// some lists the first few of the names.
func some(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
