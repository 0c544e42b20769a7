package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is text in rows and columns. The first column is text, the others are numbers.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Text writes the table for a terminal: numbers stand right.
func (t Table) Text(w io.Writer) {
	widths := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if t.Title != "" {
		fmt.Fprintln(w, t.Title)
	}
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line = cell + pad
			} else {
				line += "   " + pad + cell
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w)
}

// Markdown writes the table for a document.
func (t Table) Markdown(w io.Writer) {
	if t.Title != "" {
		fmt.Fprintf(w, "%s\n\n", t.Title)
	}
	fmt.Fprintf(w, "| %s |\n|", strings.Join(t.Columns, " | "))
	for i := range t.Columns {
		if i == 0 {
			fmt.Fprint(w, "---|")
		} else {
			fmt.Fprint(w, "---:|")
		}
	}
	fmt.Fprintln(w)
	for _, row := range t.Rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
}
