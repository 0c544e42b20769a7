package line

import (
	"cmp"
	"time"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
)

// drain is how the devices of a target come to be free.
type drain struct {
	// holders are in the way, the first to go first.
	holders []string
	// foreign of them are not gangs. unknown are gangs whose end nobody knows, overdue those of them that outlived a known
	// one. firm are all that cannot be recalled.
	foreign, unknown, overdue, firm int
	// due is the latest of the known ends, and zero when some end is unknown.
	due time.Time
	// latest is the latest of the known ends, whatever else.
	latest time.Time
}

// sure reports whether the drain will come to its end by what is known.
func (d drain) sure() bool { return d.foreign == 0 && d.overdue == 0 }

// compare puts the drain first that ends first: an unknown end comes after all known ones, and fewer unknown ends are
// better than more, as the last of them decides.
func (d drain) compare(o drain) int {
	return cmp.Or(
		cmp.Compare(d.foreign, o.foreign),
		cmp.Compare(d.unknown, o.unknown),
		d.latest.Compare(o.latest),
		cmp.Compare(len(d.holders), len(o.holders)),
	)
}

// recallable reports whether the holder may be recalled for the gang.
func recallable(r *Running, e Entry) bool { return r.Lent && e.Lends && r.Priority < e.Priority }

// ending classes of a holder, in the order in which holders are expected to go.
const (
	recalled = iota
	known
	unknown
	foreign
)

// ending is how and when a holder goes, as far as the gang is concerned.
func (p *pass) ending(holder string, e Entry) (class int, at time.Time, overdue bool) {
	r := p.running[holder]
	switch {
	case r == nil:
		return foreign, time.Time{}, false
	case recallable(r, e):
		return recalled, time.Time{}, false
	case r.Ends.IsZero():
		return unknown, r.Since, false
	case r.Ends.Add(Overdue).Before(p.Now):
		return unknown, r.Since, true
	default:
		return known, r.Ends, false
	}
}

// leaving orders holders by who goes first; of those whose end nobody knows, who has run for longest.
func (p *pass) leaving(e Entry) func(a, b string) int {
	return func(a, b string) int {
		classA, atA, _ := p.ending(a, e)
		classB, atB, _ := p.ending(b, e)
		return cmp.Or(cmp.Compare(classA, classB), atA.Compare(atB), inventory.Natural(a, b), cmp.Compare(a, b))
	}
}

// drainOf says who has to go before the gang can have what was decided. It is false when that is not enough.
func (p *pass) drainOf(e Entry, d placement.Decision) (drain, bool) {
	w, published := want(e, d, p.World.Inventory)
	if !published {
		return drain{}, false
	}
	holders, enough := p.World.Ledger.InTheWay(w, p.holderOf, p.leaving(e))
	if !enough {
		return drain{}, false
	}
	out := drain{holders: holders}
	for _, h := range holders {
		class, at, overdue := p.ending(h, e)
		switch class {
		case foreign:
			out.foreign++
		case unknown:
			out.unknown++
		case known:
			if at.After(out.latest) {
				out.latest = at
			}
		}
		if class != recalled {
			out.firm++
		}
		if overdue {
			out.overdue++
		}
	}
	if out.foreign == 0 && out.unknown == 0 {
		out.due = out.latest
		if out.firm == 0 {
			out.due = p.Now
		}
	}
	return out, true
}
