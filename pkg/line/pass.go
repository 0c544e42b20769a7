package line

import (
	"github.com/berth-dev/berth/pkg/placement"
)

// Outcome is what one pass says of one gang.
type Outcome struct {
	Entry    Entry
	Decision placement.Decision
}

// Pass offers the hardware to every waiting gang in turn. take is told of each decision that fits, before the next gang is
// tried, so that no two gangs of a pass get the same device; it charges the World that Pass was given.
func Pass(entries []Entry, held map[string]int, w placement.World, placer placement.Placer, take func(Entry, placement.Decision)) []Outcome {
	t := newTurns(entries, held)
	outcomes := make([]Outcome, 0, len(entries))
	for {
		e, ok := t.next()
		if !ok {
			return outcomes
		}
		d := placer.Place(e.Gang, w)
		if d.Fits() {
			take(e, d)
			t.held[e.Queue] += d.Shares()
		}
		outcomes = append(outcomes, Outcome{Entry: e, Decision: d})
	}
}
