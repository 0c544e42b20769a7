package render

import (
	"fmt"
	"strings"
)

// FoldCapacity is a CapacityFold of the input: what the hardware amounts to now, without hysteresis.
type FoldCapacity struct {
	Name     string `json:"name"`
	Flavor   string `json:"flavor"`
	Resource string `json:"resource"`
	// Mode is Physical or Live.
	Mode string `json:"mode"`
	// Shares is the number that the targets divide among them.
	Shares int `json:"shares"`
	// Published is what there would be if everything were sound.
	Published int `json:"published"`
	// Usable is a largest set of sound devices that can be held at the same time, whoever holds them, and Free the same of
	// free ones.
	Usable int `json:"usable"`
	Held   int `json:"held"`
	Free   int `json:"free"`
	// Proved is false when Usable or Free may be too small because the search for them was cut short.
	Proved bool `json:"proved"`
	// Ready is false when the fold makes no sense. Then the numbers are 0, and the controller writes none.
	Ready bool `json:"ready"`
	// Reason is why it is not Ready, or NotTiling, a code of docs/reasons.md; else empty.
	Reason string `json:"reason"`
	// Message is the sentence for Reason.
	Message string `json:"message"`
	// Tiling is true when each class alone can fill what the classes fill together.
	Tiling bool `json:"tiling"`
	// Losses are reasons why Usable is less than Published.
	Losses []string `json:"losses"`
	// Targets in the order of the fold.
	Targets []FoldQuota `json:"targets"`
}

// FoldQuota is what a target should hold.
type FoldQuota struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Quota int    `json:"quota"`
}

// folds are the tables of the folds and what is lost to them; empty without folds.
func (r CapacityReport) folds(wide bool) string {
	if len(r.Folds) == 0 {
		return ""
	}
	head := []string{"FOLD", "FLAVOR", "RESOURCE", "MODE", "SHARES", "USABLE", "HELD", "FREE", "READY", "REASON", "TARGETS", "MESSAGE"}
	if wide {
		head = []string{"FOLD", "FLAVOR", "RESOURCE", "MODE", "SHARES", "PUBLISHED", "USABLE", "HELD", "FREE", "PROVED", "READY", "TILING", "REASON", "TARGETS", "MESSAGE"}
	}
	var rows [][]string
	var lost strings.Builder
	for _, f := range r.Folds {
		var targets []string
		for _, t := range f.Targets {
			targets = append(targets, fmt.Sprintf("%s %s %d", t.Kind, t.Name, t.Quota))
		}
		row := []string{f.Name, f.Flavor, f.Resource, f.Mode, atLeast(f.Shares, f.Proved)}
		if wide {
			row = append(row, fmt.Sprint(f.Published))
		}
		row = append(row, atLeast(f.Usable, f.Proved), fmt.Sprint(f.Held), atLeast(f.Free, f.Proved))
		if wide {
			row = append(row, fmt.Sprint(f.Proved), fmt.Sprint(f.Ready), fmt.Sprint(f.Tiling))
		} else {
			row = append(row, fmt.Sprint(f.Ready))
		}
		rows = append(rows, append(row, dash(f.Reason), dash(Some(targets)), dash(f.Message)))
		if len(f.Losses) > 0 {
			fmt.Fprintf(&lost, "lost to CapacityFold %s: %s\n", f.Name, Some(f.Losses))
		}
	}
	return Table(head, rows) + lost.String()
}
