package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// kindOf reads a kind of gang from a flag.
func kindOf(text string) (traffic.Kind, error) {
	k := traffic.Kind{Share: 1}
	for part := range strings.SplitSeq(text, ",") {
		key, value, given := strings.Cut(part, "=")
		if !given {
			return k, fmt.Errorf("%q is not key=value", part)
		}
		var err error
		switch key {
		case "class":
			k.Class = value
		case "hosts":
			k.Hosts, err = strconv.Atoi(value)
		case "share":
			k.Share, err = strconv.ParseFloat(value, 64)
		case "limit":
			k.Limit, err = strconv.ParseFloat(value, 64)
		case "queue":
			k.Queue = value
		case "priority":
			var n int64
			n, err = strconv.ParseInt(value, 10, 32)
			k.Priority = int32(n)
		case "duration":
			k.Durations, err = durationsOf(value)
		default:
			return k, fmt.Errorf("there is no %s", key)
		}
		if err != nil {
			return k, fmt.Errorf("%s: %w", key, err)
		}
	}
	return k, nil
}

func durationsOf(text string) (traffic.Durations, error) {
	parts := strings.Split(text, ":")
	d := traffic.Durations{Kind: parts[0]}
	var err error
	if len(parts) > 1 {
		d.Mean, err = traffic.Hours(parts[1])
	}
	if len(parts) > 2 && err == nil {
		var x float64
		x, err = strconv.ParseFloat(parts[2], 64)
		if d.Kind == traffic.Pareto {
			d.Alpha = x
		} else {
			d.Sigma = x
		}
	}
	if len(parts) > 3 {
		err = fmt.Errorf("%q has more than a kind, a mean and one number", text)
	}
	return d, err
}
