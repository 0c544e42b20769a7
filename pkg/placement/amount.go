package placement

import (
	"strconv"
	"strings"
)

// amount writes thousandths of a resource's unit as people write them in pods: bytes with binary suffixes where they
// come out even, or with one decimal; cpu in cores or millicores.
func amount(resource string, milli int64) string {
	bytes := resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-")
	switch {
	case milli%1000 != 0 && !bytes:
		return strconv.FormatInt(milli, 10) + "m"
	case !bytes:
		return strconv.FormatInt(milli/1000, 10)
	}
	value := milli / 1000
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"Ti", 40}, {"Gi", 30}, {"Mi", 20}, {"Ki", 10}} {
		if unit := int64(1) << u.shift; value >= unit {
			if value%unit == 0 {
				return strconv.FormatInt(value/unit, 10) + u.suffix
			}
			return strconv.FormatFloat(float64(value)/float64(unit), 'f', 1, 64) + u.suffix
		}
	}
	return strconv.FormatInt(value, 10)
}
