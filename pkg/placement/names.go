package placement

import (
	"strconv"
	"strings"
)

// list joins names and keeps long lists short.
func list(names []string) string { return listed(names, 0) }

// listed is list of names with others behind them, who are known by number only.
func listed(names []string, others int) string {
	more := others + max(len(names)-maxNames, 0)
	text := strings.Join(names[:min(len(names), maxNames)], ", ")
	if more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}
