package grid

import (
	"fmt"
	"strings"
)

// NoPod is the Rank of a share on which no pod runs.
const NoPod = -1

// Job is a line below the grid: a Job, or whoever else may hold hosts.
type Job struct {
	// Letter marks its hosts in the grid.
	Letter string
	Name   string
	// Wants is what it asks for, Story what it does or waits for.
	Wants, Story string
}

// Share is what one Job has of one host.
type Share struct {
	// Job is an index in Picture.Jobs.
	Job int
	// Rank of the pod that runs there, or NoPod.
	Rank int
	// Held is whether a claim of the Job holds the host. A pod can only run without one if something is wrong.
	Held bool
}

// Host is one cell.
type Host struct {
	Name string
	// Shares are none where the host is free. Several are an overdraw.
	Shares []Share
}

// Picture is who holds what at one moment.
type Picture struct {
	// Columns of the grid; the hosts fill it row by row.
	Columns int
	Hosts   []Host
	Jobs    []Job
}

// Legend explains the cells.
const Legend = `. free   a- held for Job a   a0 held, and rank 0 of Job a runs there   ! held twice   ? runs without a hold`

// Text draws the picture, one line per row of hosts and one per Job. Colour adds terminal colours and no information.
func (p Picture) Text(colour bool) string {
	paint := func(_ int, text string) string { return text }
	if colour {
		paint = coloured
	}
	name, mark := 0, len("b15") // pictures of one story should be of one size
	for _, h := range p.Hosts {
		name, mark = max(name, len(h.Name)), max(mark, len(p.mark(h)))
	}
	var b strings.Builder
	columns := max(1, min(p.Columns, len(p.Hosts)))
	edge := strings.Repeat("+"+strings.Repeat("-", name+mark+3), columns) + "+\n"
	b.WriteString(edge)
	for i, h := range p.Hosts {
		text := fmt.Sprintf(" %-*s %*s ", name, h.Name, mark, p.mark(h))
		if len(h.Shares) > 0 {
			text = paint(h.Shares[0].Job, text)
		}
		b.WriteString("|" + text)
		if (i+1)%columns == 0 || i == len(p.Hosts)-1 {
			b.WriteString("|\n")
		}
	}
	b.WriteString(edge)

	job, wants := 0, 0
	for _, j := range p.Jobs {
		job, wants = max(job, len(j.Name)), max(wants, len(j.Wants))
	}
	for i, j := range p.Jobs {
		b.WriteString(paint(i, j.Letter) + fmt.Sprintf("  %-*s  %-*s  %s\n", job, j.Name, wants, j.Wants, j.Story))
	}
	return b.String()
}

// mark is who has a host, in a few characters.
func (p Picture) mark(h Host) string {
	if len(h.Shares) == 0 {
		return "."
	}
	var marks []string
	held := 0
	for _, s := range h.Shares {
		text := p.Jobs[s.Job].Letter
		if s.Rank == NoPod {
			text += "-"
		} else {
			text += fmt.Sprint(s.Rank)
		}
		if s.Held {
			held++
		} else {
			text += "?"
		}
		marks = append(marks, text)
	}
	text := strings.Join(marks, "+")
	if held > 1 {
		text += "!"
	}
	return text
}

// coloured uses the colours that can be read on black and on white: green, magenta, cyan.
func coloured(job int, text string) string {
	return fmt.Sprintf("\x1b[1;%dm%s\x1b[0m", []int{32, 35, 36}[job%3], text)
}
