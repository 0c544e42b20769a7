package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Legend explains the marks of a map.
const Legend = ". free   a held by holder a   ! overdrawn   ? quarantined   x unusable"

// perLine is how many hosts of a domain stand on one line.
const perLine = 8

// Text draws the map: a grid where hosts have positions, else a line for each domain; pools of one domain with one driver
// stand together.
func (r MapReport) Text(wide bool) string {
	var b strings.Builder
	driver := ""
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
		byDomain(&b, p)
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

func byDomain(b *strings.Builder, p PoolMap) {
	for i, d := range p.Domains {
		head := "pool " + p.Pool
		if len(p.Domains) > 1 {
			head += fmt.Sprintf(", domain %d", i+1)
		}
		head += ": "
		row := cells(d)
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
