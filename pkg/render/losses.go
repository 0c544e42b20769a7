package render

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/reason"
)

// Losses says of each host, device, pool or class that is lost to a fold why it is: "node-3 is not Ready (HostUnusable)".
func Losses(losses []reason.Evidence) []string {
	out := make([]string, 0, len(losses))
	for _, e := range losses {
		detail := e.Detail
		switch {
		case e.Kind == reason.KindDevice:
			detail = "is tainted " + detail
		case e.Kind == reason.KindPool:
			detail = "cannot be used: " + detail
		case e.Kind == reason.KindClass:
			detail = "selects no device"
		case e.Code == reason.HostMissing:
			detail = "does not exist"
		case e.Code == reason.Quarantined:
			detail = "may still run a pod that nobody can see"
		}
		name := e.Name
		if e.Kind != reason.KindHost {
			name = string(e.Kind) + " " + name
		}
		out = append(out, fmt.Sprintf("%s %s (%s)", name, detail, e.Code))
	}
	return out
}
