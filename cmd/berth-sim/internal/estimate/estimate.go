// Package estimate says how sure a mean over independent runs is.
package estimate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean with its 95 % confidence interval, by Student's t over independent runs.
type Interval struct {
	Mean float64 `json:"mean"`
	// Half is half the width of the interval; NaN is never stored: it is 0 when there is only one run.
	Half float64 `json:"half"`
	// Runs is how many values it is over.
	Runs int `json:"runs"`
}

// Of the values of independent runs; the zero Interval of none.
func Of(values []float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	out := Interval{Mean: mean, Runs: n}
	if n > 1 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
		out.Half = t * deviation / math.Sqrt(float64(n))
	}
	return out
}

// Paired is a − b over runs of equal seeds: what seeds have in common drops out.
func Paired(a, b []float64) Interval {
	n := min(len(a), len(b))
	difference := make([]float64, n)
	for i := range n {
		difference[i] = a[i] - b[i]
	}
	return Of(difference)
}

// Below reports whether the interval lies below zero as a whole, Above whether above it.
func (i Interval) Below() bool { return i.Mean+i.Half < 0 }

// Above reports whether the interval lies above zero as a whole.
func (i Interval) Above() bool { return i.Mean-i.Half > 0 }
