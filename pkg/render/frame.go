package render

import (
	"strings"
	"unicode/utf8"
)

// cell is one host of a grid.
type cell struct {
	name, mark string
	// paint colours the cell; nil leaves it as it is.
	paint func(string) string
}

// frame draws cells row by row. Marks are at least so many characters wide.
func frame(b *strings.Builder, cells []cell, columns, mark int) {
	name, widest := widths(cells)
	mark = max(mark, widest)
	columns = max(1, min(columns, len(cells)))
	edge := strings.Repeat("+"+strings.Repeat("-", name+mark+3), columns) + "+\n"
	b.WriteString(edge)
	for i, c := range cells {
		text := " " + pad(c.name, name) + " " + padLeft(c.mark, mark) + " "
		if c.paint != nil {
			text = c.paint(text)
		}
		b.WriteString("|" + text)
		if (i+1)%columns == 0 || i == len(cells)-1 {
			b.WriteString("|\n")
		}
	}
	b.WriteString(edge)
}

// widths of the widest name and mark, in characters.
func widths(cells []cell) (name, mark int) {
	for _, c := range cells {
		name, mark = max(name, utf8.RuneCountInString(c.name)), max(mark, utf8.RuneCountInString(c.mark))
	}
	return name, mark
}

func pad(text string, n int) string { return text + spaces(text, n) }

func padLeft(text string, n int) string { return spaces(text, n) + text }

// spaces make text n characters wide.
func spaces(text string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}
