package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// NoPod is the Rank of a share on which no pod runs.
const NoPod = -1

// Picture is who holds what at one moment, as somebody saw it who knows pods and claims: a grid of hosts, and below it a
// line for everybody who has or wants some of them. A MapReport is the same question asked of the ledger.
type Picture struct {
	// Columns of the grid; the hosts fill it row by row.
	Columns int
	Hosts   []PictureHost
	Lines   []PictureLine
}

// PictureHost is one cell.
type PictureHost struct {
	Name string
	// Shares are none where the host is free. Several are an overdraw.
	Shares []Share
}

// Share is what one line has of one host.
type Share struct {
	// Line is an index in Picture.Lines.
	Line int
	// Rank of the pod that runs there, or NoPod.
	Rank int
	// Held is whether a claim of the Job holds the host. A pod can only run without one if something is wrong.
	Held bool
}

// PictureLine is a line below the grid: a Job, or whoever else may hold hosts.
type PictureLine struct {
	// Letter marks its hosts in the grid.
	Letter string
	Name   string
	// Wants is what it asks for, Story what it does or waits for.
	Wants, Story string
}

// PictureLegend explains the cells.
const PictureLegend = `. free   a- held for Job a   a0 held, and rank 0 of Job a runs there   ! held twice   ? runs without a hold`

// Text draws the picture, one line per row of hosts and one per Job. Colour adds terminal colours and no information.
func (p Picture) Text(colour bool) string {
	paint := func(_ int, text string) string { return text }
	if colour {
		paint = coloured
	}
	cells := make([]cell, 0, len(p.Hosts))
	for _, h := range p.Hosts {
		c := cell{name: h.Name, mark: p.mark(h)}
		if len(h.Shares) > 0 {
			c.paint = func(text string) string { return paint(h.Shares[0].Line, text) }
		}
		cells = append(cells, c)
	}
	var b strings.Builder
	frame(&b, cells, p.Columns, len("b15")) // pictures of one story should be of one size

	name, wants := 0, 0
	for _, l := range p.Lines {
		name, wants = max(name, utf8.RuneCountInString(l.Name)), max(wants, utf8.RuneCountInString(l.Wants))
	}
	for i, l := range p.Lines {
		b.WriteString(paint(i, l.Letter) + "  " + pad(l.Name, name) + "  " + pad(l.Wants, wants) + "  " + l.Story + "\n")
	}
	return b.String()
}

// mark is who has a host, in a few characters.
func (p Picture) mark(h PictureHost) string {
	if len(h.Shares) == 0 {
		return "."
	}
	var marks []string
	held := 0
	for _, s := range h.Shares {
		text := p.Lines[s.Line].Letter
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
func coloured(line int, text string) string {
	return fmt.Sprintf("\x1b[1;%dm%s\x1b[0m", []int{32, 35, 36}[line%3], text)
}
