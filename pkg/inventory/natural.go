package inventory

import "strings"

// Natural compares names as people read them: runs of digits by their number, everything else byte by byte, so that
// node-2 comes before node-10. It is a total order: names that read the same, such as a1 and a01, fall back to their
// bytes. The result is negative, zero or positive.
func Natural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if digit(a[i]) && digit(b[j]) {
			x, nextI := number(a, i)
			y, nextJ := number(b, j)
			// Without leading zeros the longer number is the greater one, however long it is.
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			i, j = nextI, nextJ
			continue
		}
		if a[i] != b[j] {
			return int(a[i]) - int(b[j])
		}
		i++
		j++
	}
	if rest := (len(a) - i) - (len(b) - j); rest != 0 {
		return rest
	}
	return strings.Compare(a, b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// number returns the digits at i without leading zeros, and where they end.
func number(s string, i int) (string, int) {
	end := i
	for end < len(s) && digit(s[end]) {
		end++
	}
	return strings.TrimLeft(s[i:end], "0"), end
}

// ByRank orders hosts by Rank, then by Name, both in natural order.
func ByRank(a, b Host) int {
	if c := Natural(a.Rank, b.Rank); c != 0 {
		return c
	}
	return Natural(a.Name, b.Name)
}
