package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Slice says in one sentence what a gang has: "tpu-4x4-2 (pod-a) on node-2, node-3, node-6, node-7". Devices of several
// pools are told as pool/device, and pods beside each other on one host are counted. Where there is an
// interconnect it says in which domain they stand.
func Slice(sets []PodSet) string {
	var parts []string
	for _, ps := range sets {
		part := devicesOf(ps) + " on " + Some(counted(ps.Hosts))
		switch {
		case ps.Across:
			part += " across " + Some(ps.Domains)
		case len(ps.Domains) > 0:
			part += " in " + Some(ps.Domains)
		}
		if len(sets) > 1 {
			part = ps.Name + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func devicesOf(ps PodSet) string {
	var devices, long, pools []string
	for _, c := range ps.Claims {
		for _, d := range c.Devices {
			devices, long = append(devices, partly(d, d.Device)), append(long, partly(d, d.Pool+"/"+d.Device))
			pools = append(pools, d.Pool)
		}
	}
	slices.Sort(pools)
	if pools = slices.Compact(pools); len(pools) > 1 {
		return Some(alike(long))
	}
	return fmt.Sprintf("%s (%s)", Some(alike(devices)), Some(pools))
}

// alike says once how often the same follows itself, as equal shares of one device do: "2 times 40 bandwidth of nic-0".
func alike(texts []string) []string {
	var out []string
	for i := 0; i < len(texts); {
		n := i
		for n < len(texts) && texts[n] == texts[i] {
			n++
		}
		text := texts[i]
		if n-i > 1 {
			text = fmt.Sprintf("%d times %s", n-i, text)
		}
		out = append(out, text)
		i = n
	}
	return out
}

// partly says how much of a shared device it is: "40 bandwidth of nic-0".
func partly(d Device, name string) string {
	var amounts []string
	for _, capacity := range slices.Sorted(maps.Keys(d.Capacity)) {
		amounts = append(amounts, d.Capacity[capacity]+" "+capacity)
	}
	if len(amounts) == 0 {
		return name
	}
	return strings.Join(amounts, " and ") + " of " + name
}

// counted says of hosts that follow each other how often: "n1 (3 pods), n2".
func counted(hosts []string) []string {
	var out []string
	for i := 0; i < len(hosts); {
		n := i
		for n < len(hosts) && hosts[n] == hosts[i] {
			n++
		}
		text := hosts[i]
		if n-i > 1 {
			text += " (" + count(n-i, "pod") + ")"
		}
		out = append(out, text)
		i = n
	}
	return out
}

// Some joins up to 16 names and counts the rest.
func Some(names []string) string {
	const most = 16
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Sentence is one line about a gang.
func (w Workload) Sentence() string {
	name := w.Kind + " " + w.Namespace + "/" + w.Name
	switch w.State {
	case Reserved:
		return name + " has its slice: " + w.Message
	case Fits:
		return name + " fits: " + w.Message
	case Refused:
		return fmt.Sprintf("%s is refused (%s): %s", name, w.Reason, w.Message)
	case Ignored:
		return name + " is ignored: " + w.Message
	default:
		unsure := ""
		if !w.Proved {
			unsure = " (the search was cut short: a place may exist all the same)"
		}
		return fmt.Sprintf("%s waits (%s): %s%s", name, w.Reason, w.Message, unsure)
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
