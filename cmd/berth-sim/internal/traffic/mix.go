package traffic

import "math/rand/v2"

// Gang is one request for a whole slice.
type Gang struct {
	Class string
	// Hosts of the slice, one pod each.
	Hosts    int
	Arrival  float64
	Duration float64
	// Priority as in Kueue: higher goes first.
	Priority int32
	// Queue is the ClusterQueue that it stands in.
	Queue string
	// Limit is the running time that the gang declares, in hours, never below Duration; 0 when it declares none.
	Limit float64
}

// Kind is one kind of gang of a mix.
type Kind struct {
	Class string
	Hosts int
	// Share of the gangs; shares of a mix need not add up to 1.
	Share     float64
	Durations Durations
	Priority  int32
	Queue     string
	// Limit is how many times its running time a gang declares as its limit, at least 1; 0 when it declares none.
	Limit float64
}

// Mix is a Poisson stream of gangs of several kinds.
type Mix struct {
	Kinds []Kind
	// Rate is how many gangs come per hour.
	Rate float64
}

// Work is the host-hours that one gang of the mix takes on average.
func (m Mix) Work() float64 {
	work, shares := 0.0, 0.0
	for _, k := range m.Kinds {
		work += k.Share * float64(k.Hosts) * k.Durations.Mean
		shares += k.Share
	}
	return work / shares
}

// ForLoad is the mix at the rate at which it offers load host-hours per hour and host.
func (m Mix) ForLoad(load float64, hosts int) Mix {
	m.Rate = load * float64(hosts) / m.Work()
	return m
}

// RateOf is how many gangs of the kind come per hour.
func (m Mix) RateOf(kind int) float64 {
	shares := 0.0
	for _, k := range m.Kinds {
		shares += k.Share
	}
	return m.Rate * m.Kinds[kind].Share / shares
}

// Demand is the offered hosts by class: what a controller that saw the stream for ever would know of it.
func (m Mix) Demand() map[string]float64 {
	out := map[string]float64{}
	for i, k := range m.Kinds {
		out[k.Class] += m.RateOf(i) * k.Durations.Mean
	}
	return out
}

// Draw lists the gangs that come before the end. Equal seeds give equal gangs, and a longer stream begins with the shorter
// one: gaps, kinds and durations come from generators of their own.
func (m Mix) Draw(seed uint64, end float64) []Gang {
	gaps, kinds, durations := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
	shares := 0.0
	for _, k := range m.Kinds {
		shares += k.Share
	}
	var out []Gang
	for at := gaps.ExpFloat64() / m.Rate; at < end; at += gaps.ExpFloat64() / m.Rate {
		k := m.pick(kinds.Float64() * shares)
		g := Gang{Class: k.Class, Hosts: k.Hosts, Arrival: at, Duration: k.Durations.Draw(durations), Priority: k.Priority, Queue: k.Queue}
		g.Limit = g.Duration * k.Limit
		out = append(out, g)
	}
	return out
}

func (m Mix) pick(x float64) Kind {
	for _, k := range m.Kinds {
		if x -= k.Share; x < 0 {
			return k
		}
	}
	return m.Kinds[len(m.Kinds)-1]
}
