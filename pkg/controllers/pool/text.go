package pool

import (
	"fmt"
	"strings"
)

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// firstLine keeps a joined error readable in a condition.
func firstLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, strings.Count(rest, "\n")+1)
}

// some joins up to five names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
