package stat

import (
	"fmt"
	"math"
)

// An Interval is a confidence interval. Without enough data there is none: see
// [Interval.OK] and Warnings.
type Interval struct {
	Lo, Hi Value // NaN if there is no interval
	// Level is the confidence, from 0 to 1: for [QuantileInterval] the one
	// actually achieved, which is at least the one asked for; for
	// [RatioInterval] the nominal one; 0 if there is no interval.
	Level    float64
	N        int // independent observations: values, or clusters
	Warnings []Warning
}

// OK reports whether there is an interval.
func (iv Interval) OK() bool { return iv.Level > 0 }

// Code names a kind of warning. The text is fit for people.
type Code string

// The kinds of warning.
const (
	// TooSmall: the sample is smaller than the method needs. Need says how
	// many observations would do.
	TooSmall Code = "n too small"
	// NoBase: in some bootstrap draws the ratio had no denominator. They were
	// left out.
	NoBase Code = "draws without denominator"
)

// A Warning limits what an interval may be used for. It belongs beside the
// interval wherever that is shown.
type Warning struct {
	Code Code `json:"code"`
	Need int  `json:"need,omitempty"` // for TooSmall: enough observations
}

func (w Warning) String() string {
	if w.Need > 0 {
		return fmt.Sprintf("%s (need %d)", w.Code, w.Need)
	}
	return string(w.Code)
}

// refuse returns the interval that does not exist.
func refuse(n int, w Warning) Interval {
	none := Value{X: math.NaN()}
	return Interval{Lo: none, Hi: none, N: n, Warnings: []Warning{w}}
}

// MinN returns the smallest sample for which [QuantileInterval] gives an
// interval. At level 0.95 that is 6 for the median, 36 for p = 0.9, 72 for 0.95,
// 368 for 0.99 and 3688 for 0.999. p and level lie strictly between 0 and 1.
func MinN(p, level float64) int {
	tail := (1 - level) / 2
	// All n values on one side of the quantile must be unlikely enough.
	side := max(p, 1-p)
	n := max(1, int(math.Log(tail)/math.Log(side))-1)
	for math.Pow(side, float64(n)) > tail {
		n++
	}
	return n
}

// QuantileInterval returns a distribution-free confidence interval for the
// p-quantile: two order statistics x(l) and x(u) such that, of n independent
// values, the chance that fewer than l or at least u lie below the quantile is at
// most (1-level)/2 each (David and Nagaraja, Order Statistics, 3rd ed., §7.1).
// The level achieved is the binomial probability of l to u-1.
//
// It is refused below [MinN]. A bound that falls among censored values is
// censored. It holds for independent values; where several come from one
// recording or one hour, they are not, and the interval is too narrow.
//
// The time is proportional to n log n. Errors: as [Quantile], and p or level not
// strictly between 0 and 1.
func QuantileInterval(sample []Value, p, level float64) (Interval, error) {
	if !(p > 0 && p < 1) {
		return Interval{}, fmt.Errorf("quantile %v is not strictly between 0 and 1", p)
	}
	if err := checkLevel(level); err != nil {
		return Interval{}, err
	}
	o, err := newOrder(sample)
	if err != nil {
		return Interval{}, err
	}
	n := len(sample)
	if need := MinN(p, level); n < need {
		return refuse(n, Warning{Code: TooSmall, Need: need}), nil
	}

	tail := (1 - level) / 2
	l, below := 0, 0.0 // below = P(B < l)
	for {
		next := below + binomial(n, l, p)
		if next > tail {
			break
		}
		below = next
		l++
	}
	u, above := n+1, 0.0 // above = P(B >= u)
	for {
		next := above + binomial(n, u-1, p)
		if next > tail {
			break
		}
		above = next
		u--
	}
	if l < 1 || u > n { // rounding at exactly MinN
		return refuse(n, Warning{Code: TooSmall, Need: n + 1}), nil
	}
	at := func(rank int) Value {
		return o.bounds(func(sorted []float64) float64 { return sorted[rank-1] })
	}
	return Interval{Lo: at(l), Hi: at(u), Level: 1 - below - above, N: n}, nil
}

// binomial returns the probability of k successes in n trials.
func binomial(n, k int, p float64) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func checkLevel(level float64) error {
	if !(level > 0 && level < 1) {
		return fmt.Errorf("confidence level %v is not strictly between 0 and 1", level)
	}
	return nil
}
