package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Kinds of durations.
const (
	Exponential = "exponential"
	Lognormal   = "lognormal"
	Pareto      = "pareto"
	Fixed       = "fixed"
)

// Kinds in the order in which people are told of them.
var Kinds = []string{Exponential, Lognormal, Pareto, Fixed}

// Durations is a distribution of running times, all of a given mean.
type Durations struct {
	Kind string
	// Mean in hours.
	Mean float64
	// Sigma of the logarithm, for lognormal: 1 is a wide spread, 2 a very wide one.
	Sigma float64
	// Alpha is the tail index, for pareto: the chance to exceed x falls as x^-Alpha. It must be greater than 1; up to 2 the
	// variance is infinite.
	Alpha float64
}

// Check names the field that makes no sense and says why, or returns nothing.
func (d Durations) Check() (field, message string) {
	finite := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
	switch {
	case d.Kind != Exponential && d.Kind != Lognormal && d.Kind != Pareto && d.Kind != Fixed:
		return "kind", fmt.Sprintf("is %q, must be one of %s", d.Kind, strings.Join(Kinds, ", "))
	case !finite(d.Mean):
		return "mean", "must be more than nothing"
	case d.Kind == Lognormal && (!finite(d.Sigma) || d.Sigma > 5):
		return "sigma", "lognormal durations need a sigma between 0 and 5"
	case d.Kind == Pareto && (!finite(d.Alpha) || d.Alpha <= 1):
		return "alpha", "pareto durations need an alpha above 1: below it they have no mean"
	case d.Kind != Lognormal && d.Sigma != 0:
		return "sigma", "only lognormal durations have a sigma"
	case d.Kind != Pareto && d.Alpha != 0:
		return "alpha", "only pareto durations have an alpha"
	}
	return "", ""
}

// Draw one duration in hours.
func (d Durations) Draw(rng *rand.Rand) float64 {
	switch d.Kind {
	case Lognormal:
		return math.Exp(math.Log(d.Mean) - d.Sigma*d.Sigma/2 + d.Sigma*rng.NormFloat64())
	case Pareto:
		least := d.Mean * (d.Alpha - 1) / d.Alpha
		return least / math.Pow(1-rng.Float64(), 1/d.Alpha)
	case Fixed:
		return d.Mean
	}
	return d.Mean * rng.ExpFloat64()
}
