package files

import (
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with the input.
type Fault struct {
	// File is the path as it was given, or "-".
	File string
	// Document counts the documents of the file from 1; 0 when the fault is the file's.
	Document int
	// Field is a path such as items[2].spec.devices[0].name; empty when the fault is the document's.
	Field string
	// Message is a clause.
	Message string
}

// Error is file: document: field: message, without the parts that are not known.
func (f Fault) Error() string {
	parts := []string{f.File}
	if f.Document > 0 {
		parts = append(parts, fmt.Sprintf("document %d", f.Document))
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// Faults are all faults of the input, in file order.
type Faults []Fault

// Error is one fault a line.
func (f Faults) Error() string {
	lines := make([]string, 0, len(f))
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}
