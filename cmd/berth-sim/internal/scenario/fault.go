package scenario

import (
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with a scenario.
type Fault struct {
	File string
	// Line of the file; 0 when it is not known.
	Line int
	// Field is a path such as scenarios[0].kinds[2].share, or a flag.
	Field   string
	Message string
}

// Error is file:line: field: message, without the parts that are not known.
func (f Fault) Error() string {
	var parts []string
	switch {
	case f.File != "" && f.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", f.File, f.Line))
	case f.File != "":
		parts = append(parts, f.File)
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// Faults are all faults of the input.
type Faults []Fault

// Error is one fault a line.
func (f Faults) Error() string {
	lines := make([]string, 0, len(f))
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}

// source is where a scenario was read.
type source struct {
	file, at string
	// lines by path of the field.
	lines map[string]int
}

// locate completes faults below the scenario by where they stand. A field that was left out has the line of what it should
// stand in.
func (s source) locate(faults Faults) Faults {
	for i := range faults {
		f := &faults[i]
		if s.file == "" || f.File != "" {
			continue
		}
		f.File, f.Field = s.file, s.at+"."+f.Field
	}
	return s.place(faults)
}

func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
