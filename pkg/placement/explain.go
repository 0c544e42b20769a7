package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

const (
	maxNames    = 5
	maxEvidence = 16
)

// hopeful orders reasons by how soon they may go away by themselves. A refusal carries the first that applies, so that
// nobody reads "broken" while a wait would do.
var hopeful = []reason.Code{
	reason.NoFreeSlice, reason.HostsBusy, reason.Quarantined, reason.PoolIncomplete, reason.HostUnusable, reason.DeviceTainted,
	reason.HostMissing, reason.HostNameUnusable, reason.PoolInvalid, reason.GateOff, reason.Unsupported,
}

func hope(c reason.Code) int {
	if i := slices.Index(hopeful, c); i >= 0 {
		return i
	}
	return len(hopeful)
}

// prepare finds the options of every item of a plan and refuses when they are too few, whatever the combination.
func (s *search) prepare(p *plan) *reason.Refusal {
	for _, it := range p.items {
		o, out, held := s.narrow(p, it)
		s.options[it] = o
		if o.total < p.needed(it) {
			// Waiting for others would not help.
			if why := s.noneSoLarge(p); why != "" {
				return refuse(reason.NoFreeSlice, "%s", clamp(why))
			}
			return tooFew(it, p.needed(it), o, s.outright(p, out), held)
		}
	}
	return s.checkTogether(p)
}

// tooFew words a refusal from the reasons of every device that is out, beside the options that are left.
func tooFew(it *item, needed int, left *options, out []*blocked, held []heldBy) *reason.Refusal {
	r := &reason.Refusal{Code: reason.NoFreeSlice}
	free, total := left.total, len(left.all)+len(out)
	for _, h := range held {
		total += len(h.devices)
	}
	if total > len(left.all) || len(it.class.Withheld) > 0 {
		groups := group(out, held, it.class.Withheld)
		r.Code = groups[0].code
		if groups[0].code == reason.NoFreeSlice && len(groups) > 1 && groups[1].code == reason.HostsBusy && groups[1].n > groups[0].n {
			r.Code = reason.HostsBusy
		}
		var texts []string
		for i, g := range groups {
			texts = append(texts, g.text(total, i == 0))
			if i == 0 {
				r.Evidence = g.evidence
			} else if len(r.Evidence) < maxEvidence {
				r.Evidence = append(r.Evidence, g.evidence...)
			}
		}
		r.Evidence = r.Evidence[:min(len(r.Evidence), maxEvidence)]
		r.Message = clamp(head(it, needed, free) + ": " + strings.Join(texts, "; "))
		return r
	}
	if it.shares {
		r.Message = head(it, needed, free)
		return r
	}
	r.Message = fmt.Sprintf("%d %s are needed and only %s", needed, it.class.Name, exist(total))
	return r
}

func head(it *item, needed, free int) string {
	switch {
	case free == 0:
		return "no " + it.class.Name + " is free"
	case it.shares:
		return fmt.Sprintf("%d %s are needed and only %d %s free, counting shares", needed, it.class.Name, free, are(free))
	}
	return fmt.Sprintf("%d %s are needed and only %d %s free", needed, it.class.Name, free, are(free))
}

func exist(n int) string {
	if n == 1 {
		return "1 exists"
	}
	return fmt.Sprintf("%d exist", n)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// group is all devices that are out for the same kind of reason.
type grouped struct {
	code       reason.Code
	ineligible bool
	n          int
	first      *blocked
	// owners are distinct, the first of them in order; others is how many more there are, of whom nobody asks the names.
	// inOrder is true when they came so.
	owners   []string
	others   int
	inOrder  bool
	notes    []reason.Evidence
	pool     *inventory.Pool
	evidence []reason.Evidence
}

func group(out []*blocked, held []heldBy, withheld []*inventory.Pool) []*grouped {
	var groups []*grouped
	of := func(b *blocked) *grouped {
		i := slices.IndexFunc(groups, func(g *grouped) bool { return g.code == b.code && g.ineligible == b.ineligible })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &grouped{code: b.code, ineligible: b.ineligible, first: b})
		}
		return groups[i]
	}
	for _, b := range out {
		g := of(b)
		g.n++
		g.owners = append(g.owners, b.owners...)
		g.notes = append(g.notes, b.notes...)
		if len(g.evidence) < maxEvidence {
			g.evidence = append(g.evidence, b.evidence()...)
		}
	}
	for _, h := range held {
		g := of(&blocked{code: reason.NoFreeSlice})
		// The holders of one pool come in order and once each, so that nothing is left to do for them.
		g.inOrder = len(held) == 1 && len(g.owners) == 0
		g.hold(h)
	}
	for _, g := range groups {
		if !g.inOrder {
			g.foremost()
		}
	}
	for _, p := range withheld {
		groups = append(groups, &grouped{code: p.Problem.Code, pool: p, n: 1, evidence: slices.Clone(p.Problem.Evidence)})
	}
	slices.SortStableFunc(groups, func(a, b *grouped) int { return cmp.Compare(hope(a.code), hope(b.code)) })
	return groups
}

func (g *grouped) text(total int, first bool) string {
	if g.pool != nil {
		return g.pool.Problem.Message
	}
	n := fmt.Sprint(g.n)
	if first {
		n = fmt.Sprintf("%d of %d", g.n, total)
	}
	has := "has"
	if g.n > 1 {
		has = "have"
	}
	switch {
	case g.ineligible:
		return fmt.Sprintf("%s %s on hosts that the pods may not use: %s", n, are(g.n), notesText(g.notes))
	case g.code == reason.NoFreeSlice && len(g.owners) == 0:
		return fmt.Sprintf("%s %s taken by the gang itself", n, are(g.n))
	case g.code == reason.NoFreeSlice:
		return fmt.Sprintf("%s %s held by %s", n, are(g.n), listed(g.owners, g.others))
	case g.code == reason.HostsBusy:
		return fmt.Sprintf("%s %s no room: %s", n, has, shortsText(g.first.shorts))
	case g.code == reason.DeviceTainted:
		return fmt.Sprintf("%s %s tainted: %s", n, are(g.n), notesText(g.notes))
	case g.code == reason.ShapeUnknown:
		return fmt.Sprintf("%s %s too small: %s", n, are(g.n), notesText(g.notes))
	case g.code == reason.Unsupported:
		return fmt.Sprintf("%s cannot be reserved: %s", n, notesText(g.notes))
	default:
		return fmt.Sprintf("%s %s out of use: %s", n, are(g.n), notesText(g.notes))
	}
}

// text is the reason of one device in a clause.
func (b *blocked) text() string {
	switch {
	case len(b.shorts) > 0:
		return shortsText(b.shorts)
	case len(b.owners) > 0:
		return "held by " + list(b.owners)
	case len(b.notes) == 0:
		return "taken"
	}
	return notesText(b.notes)
}

func (b *blocked) evidence() []reason.Evidence {
	switch {
	case len(b.shorts) > 0:
		var out []reason.Evidence
		for _, s := range b.shorts {
			out = append(out, reason.Evidence{Kind: reason.KindHost, Name: s.Host, Code: reason.HostsBusy, Detail: needsText(s)})
			for _, pod := range s.Pods[:min(len(s.Pods), maxNames)] {
				out = append(out, reason.Evidence{Kind: reason.KindPod, Name: pod, Code: reason.HostsBusy, Detail: "on host " + s.Host})
			}
		}
		return out
	case len(b.owners) > 0:
		return holding(nil, b.device, b.owners)
	default:
		return b.notes
	}
}

// notesText tells notes by name, and once what is the same of several hosts.
func notesText(notes []reason.Evidence) string {
	notes = slices.Clone(notes)
	slices.SortFunc(notes, func(a, b reason.Evidence) int {
		return cmp.Or(inventory.Natural(a.Name, b.Name), cmp.Compare(a.Detail, b.Detail))
	})
	notes = slices.CompactFunc(notes, func(a, b reason.Evidence) bool { return a.Name == b.Name && a.Detail == b.Detail })
	hosts := map[string][]string{}
	for _, n := range notes {
		if n.Kind == reason.KindHost {
			hosts[n.Detail] = append(hosts[n.Detail], n.Name)
		}
	}
	var texts []string
	for _, n := range notes {
		alike := hosts[n.Detail]
		switch {
		case n.Kind != reason.KindHost:
			texts = append(texts, n.Name+" "+n.Detail)
		case len(alike) == 1:
			texts = append(texts, "host "+n.Name+" "+n.Detail)
		case alike[0] == n.Name:
			texts = append(texts, fmt.Sprintf("hosts %s (each %s)", list(alike), n.Detail))
		}
	}
	return list(texts)
}

// lacking is a host without room.
func lacking(short *ledger.Shortage) *blocked { return &blocked{shorts: []*ledger.Shortage{short}} }

// shortsText tells what the first hosts lack, and which others lack room.
func shortsText(shorts []*ledger.Shortage) string {
	const most = 3
	var texts, more []string
	for i, s := range shorts {
		if i < most {
			texts = append(texts, shortText(s))
		} else {
			more = append(more, s.Host)
		}
	}
	if len(more) > 0 {
		texts = append(texts, "too little room also on "+list(more))
	}
	return strings.Join(texts, ", ")
}

func shortText(s *ledger.Shortage) string {
	text := "host " + s.Host + " " + needsText(s)
	switch {
	case len(s.Pods) == 1:
		text += " (pod " + s.Pods[0] + ")"
	case len(s.Pods) > 1:
		text += " (pods " + list(s.Pods) + ")"
	}
	return text
}

func needsText(s *ledger.Shortage) string {
	return "needs " + amount(s.Resource, s.Needs) + " " + s.Resource + ", has " + amount(s.Resource, s.Has)
}

// withheld is the refusal of a class whose fitting devices are, or may be, all in pools with a problem.
func withheld(c *inventory.Class) *reason.Refusal {
	if len(c.Withheld) == 0 {
		return refuse(reason.ShapeUnknown, "DeviceClass %s selects no device that is published now", c.Name)
	}
	groups := group(nil, nil, c.Withheld)
	what := "no " + c.Name + " can be given out"
	if c.State == inventory.ClassEmpty {
		what = "no " + c.Name + " is published"
	}
	r := refuse(groups[0].code, "%s: %s", what, groups[0].pool.Problem.Message)
	for _, g := range groups {
		r.Evidence = append(r.Evidence, g.evidence...)
	}
	r.Evidence = r.Evidence[:min(len(r.Evidence), maxEvidence)]
	return r
}
