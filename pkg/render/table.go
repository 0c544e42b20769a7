package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is rows of cells with a head, aligned by spaces. Control characters in cells become spaces, in place.
func Table(head []string, rows [][]string) string {
	width := make([]int, len(head))
	for _, row := range rows {
		for i := range row {
			row[i] = onOneLine(row[i])
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{head}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// onOneLine keeps a cell from ending its line and from talking to the terminal: taints and attributes may hold anything.
func onOneLine(cell string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, cell)
}

// Text is the report as a table, wide with scores and what a choice costs.
func (r FitReport) Text(wide bool) string {
	if len(r.Workloads) == 0 {
		return "no gang in the input\n"
	}
	head := []string{"NAMESPACE", "NAME", "KIND", "STATE", "REASON", "MESSAGE"}
	if wide {
		head = []string{"NAMESPACE", "NAME", "KIND", "STATE", "REASON", "PODS", "PROVED", "SCORE", "DESTROYS", "RUNNERS-UP", "MESSAGE"}
	}
	var rows [][]string
	for _, w := range r.Workloads {
		row := []string{w.Namespace, w.Name, w.Kind, string(w.State), dash(w.Reason)}
		if wide {
			pods := "-" // Nobody has a place.
			if n := w.pods(); n > 0 {
				pods = fmt.Sprint(n)
			}
			score := "-"
			if w.State == Fits {
				score = fmt.Sprintf("%.4g", w.Score)
			}
			row = append(row, pods, fmt.Sprint(w.Proved), score, destroys(w.Destroys), runnersUp(w.RunnersUp))
		}
		rows = append(rows, append(row, w.Message))
	}
	return Table(head, rows)
}

func (w Workload) pods() int {
	n := 0
	for _, ps := range w.PodSets {
		n += ps.Count
	}
	return n
}

func destroys(d map[string]int) string {
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(d)) {
		parts = append(parts, fmt.Sprintf("%d %s", d[class], class))
	}
	return dash(strings.Join(parts, ", "))
}

func runnersUp(all []RunnerUp) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, Some(r.Devices))
	}
	return dash(strings.Join(parts, "; "))
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
