package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Legend explains the marks of a map.
const Legend = ". free   a held by holder a   ! overdrawn   ? quarantined   x unusable"

// perLine is how many hosts of a domain stand on one line.
const perLine = 8

// Text draws the map: a grid where hosts have positions; racks where pools of one host each belong to domains of an
// interconnect; else a line for each domain of a pool. What is no grid stands under its driver.
func (r MapReport) Text(wide bool) string {
	var b strings.Builder
	driver, racked := "", map[string]bool{}
	for i, p := range r.Pools {
		if p.Columns > 0 {
			if i > 0 {
				b.WriteString("\n")
			}
			hosts := 0
			for _, d := range p.Domains {
				hosts += len(d)
			}
			fmt.Fprintf(&b, "pool %s (%s): %s in rows of %d\n", p.Pool, p.Driver, count(hosts, "host"), p.Columns)
			for _, d := range p.Domains {
				frame(&b, cells(d), p.Columns, 1)
			}
			driver = ""
			continue
		}
		if p.Driver != driver {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "driver %s\n", p.Driver)
			driver = p.Driver
		}
		if !racked[driver] {
			racked[driver] = true
			r.racks(&b, driver)
		}
		if p.rack() == "" {
			byDomain(&b, p)
		}
	}
	if len(r.Pools) == 0 {
		b.WriteString("no managed hardware in the input\n")
		return b.String()
	}
	b.WriteString("\n" + Legend + "\n")
	for _, h := range r.Holders {
		fmt.Fprintf(&b, "%-2s %s: %s", h.Letter, h.Name, Some(h.Devices))
		if wide {
			fmt.Fprintf(&b, " on %s", Some(h.Hosts))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rack is the domain of the only host of a pool; empty for other pools.
func (p PoolMap) rack() string {
	if p.Columns == 0 && len(p.Domains) == 1 && len(p.Domains[0]) == 1 {
		return p.Domains[0][0].Domain
	}
	return ""
}

// racks draws the hosts of a driver's pools of one host each by the domain they belong to. A pool that is not called like
// its host is named.
func (r MapReport) racks(b *strings.Builder, driver string) {
	in := map[string][]cell{}
	for _, p := range r.Pools {
		if rack := p.rack(); p.Driver == driver && rack != "" {
			c := cells(p.Domains[0])[0]
			if p.Pool != c.name {
				c.name += " (" + p.Pool + ")"
			}
			in[rack] = append(in[rack], c)
		}
	}
	for _, rack := range slices.SortedFunc(maps.Keys(in), inventory.Natural) {
		row := in[rack]
		slices.SortStableFunc(row, func(a, b cell) int { return inventory.Natural(a.name, b.name) })
		lines(b, rack+": ", row)
	}
}

func byDomain(b *strings.Builder, p PoolMap) {
	for i, d := range p.Domains {
		head := "pool " + p.Pool
		if len(p.Domains) > 1 {
			head += fmt.Sprintf(", domain %d", i+1)
		}
		lines(b, head+": ", cells(d))
	}
}

// lines draws cells beside a head, so many on a line.
func lines(b *strings.Builder, head string, row []cell) {
	name, mark := widths(row)
	for from := 0; from < len(row); from += perLine {
		var texts []string
		for _, c := range row[from:min(from+perLine, len(row))] {
			texts = append(texts, pad(c.name, name)+" "+pad(c.mark, mark))
		}
		b.WriteString(strings.TrimRight("  "+head+strings.Join(texts, "   "), " ") + "\n")
		head = strings.Repeat(" ", utf8.RuneCountInString(head))
	}
}

// mark is the state of a host in a few characters.
func (h HostMap) mark() string {
	text := strings.Join(h.Holders, "+")
	switch h.State {
	case HostFree:
		text = "."
	case HostOverdrawn:
		text += "!"
	case HostQuarantined:
		text = "?"
	case HostUnusable:
		text = "x"
	}
	if h.Devices > 0 {
		text += fmt.Sprintf(" %d/%d free", h.Free, h.Devices)
	}
	return text
}

// cells of a domain.
func cells(hosts []HostMap) []cell {
	out := make([]cell, 0, len(hosts))
	for _, h := range hosts {
		out = append(out, cell{name: h.Name, mark: h.mark()})
	}
	return out
}
