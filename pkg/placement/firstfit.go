package placement

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/reason"
)

// DefaultBudget is how many devices FirstFit tries at most before it gives up on a combination.
const DefaultBudget = 50_000

// FirstFit takes the first devices by pool and name that serve the gang.
type FirstFit struct {
	// Budget is how many devices are tried at most; 0 means DefaultBudget.
	Budget int
}

var _ Placer = FirstFit{}

// Place implements Placer.
func (f FirstFit) Place(g gang.Gang, w World) Decision {
	plans, refusal := plansFor(g, w)
	if refusal != nil {
		return *refusal
	}
	return newSearch(w, plans, f.Budget).run(g)
}

// plansFor is what every pod set needs, or the decision that refuses the gang whatever is taken.
func plansFor(g gang.Gang, w World) ([]*plan, *Decision) {
	plans := make([]*plan, 0, len(g.PodSets))
	for i := range g.PodSets {
		p, refusal := planFor(&g.PodSets[i], w.Inventory)
		if refusal != nil {
			d := refused(g, i, refusal, true)
			return nil, &d
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// run searches for the first devices, in the order of the search, that serve the gang.
func (s *search) run(g gang.Gang) Decision {
	for i, p := range s.plans {
		if refusal := s.prepare(p); refusal != nil {
			return refused(g, i, refusal, true)
		}
	}
	// Not before it is known that the devices suffice: a Job may ask for two thousand million pods.
	for _, p := range s.plans {
		s.addSlots(p)
	}
	proved := true
	if !s.fill(0) {
		proved = !s.exhausted
		if !s.spread() {
			if len(s.plans) == 1 {
				return refused(g, 0, s.notTogether(), proved && !s.exhausted)
			}
			return Decision{Refusal: s.notTogether(), Proved: proved && !s.exhausted}
		}
	}
	return Decision{PodSets: s.decision(), Proved: proved}
}

// spread searches again, with all that only prefer one domain relaxed. It is false at once when nothing was left to relax.
func (s *search) spread() bool {
	before := len(s.relaxed)
	for _, p := range s.plans {
		s.relax(p)
	}
	if len(s.relaxed) == before {
		return false
	}
	s.budget, s.exhausted = s.whole, false
	return s.fill(0)
}

// refused says which pod set cannot be placed when there are several.
func refused(g gang.Gang, i int, r *reason.Refusal, proved bool) Decision {
	if len(g.PodSets) > 1 {
		named := *r
		named.Message = clamp("pod set " + g.PodSets[i].Name + ": " + r.Message)
		r = &named
	}
	return Decision{Refusal: r, Proved: proved}
}

func refuse(code reason.Code, format string, args ...any) *reason.Refusal {
	return &reason.Refusal{Code: code, Message: clamp(fmt.Sprintf(format, args...))}
}

// maxMessage keeps messages below the limit of condition and check messages, with room for what others put around it.
const maxMessage = 1000

func clamp(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
