package render

import (
	"fmt"
	"strings"
)

// Explain tells at length what becomes of a gang.
func (w Workload) Explain(wide bool) string {
	var b strings.Builder
	b.WriteString(w.Sentence() + "\n")
	for _, e := range w.Evidence {
		fmt.Fprintf(&b, "  %s %s: %s (%s)\n", e.Kind, e.Name, e.Detail, e.Code)
	}
	for _, ps := range w.PodSets {
		fmt.Fprintf(&b, "  pod set %s: %s\n", ps.Name, count(ps.Count, "pod"))
		for rank, host := range ps.Hosts {
			if !wide && rank == perLine*2 {
				fmt.Fprintf(&b, "    and %d more\n", len(ps.Hosts)-rank)
				break
			}
			fmt.Fprintf(&b, "    rank %d on %s\n", rank, host)
		}
		for _, c := range ps.Claims {
			var devices []string
			for _, d := range c.Devices {
				devices = append(devices, d.Pool+"/"+d.Device)
			}
			fmt.Fprintf(&b, "    claim %s, instance %d: %s\n", c.PodClaim, c.Instance, Some(devices))
		}
	}
	if w.State == Fits && len(w.Destroys) > 0 {
		fmt.Fprintf(&b, "  takes from others: %s\n", destroys(w.Destroys))
	}
	for _, r := range w.RunnersUp {
		fmt.Fprintf(&b, "  next best: %s on %s (score %.4g)\n", Some(r.Devices), Some(r.Hosts), r.Score)
	}
	return b.String()
}
