// Package stat summarises measurements that may be cut off at a deadline.
//
// It takes the position that a summary must not know more than the sample: a
// provider that never answered is "later than the deadline", not the deadline
// and not a missing value; a quantile that falls among such values is reported
// as "at least x"; and an interval that the sample size does not support is
// refused with the size that would.
//
// Everything here is pure: no input or output, no clock, and random numbers only
// from a seed.
package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Value is a measurement, or a bound of one.
type Value struct {
	X float64 `json:"x"`
	// Censored means right-censored: all that is known is that the value is at
	// least X.
	Censored bool `json:"censored,omitempty"`
}

// String prints the value in the shortest exact form, with ≥ before a bound.
func (v Value) String() string {
	if v.Censored {
		return fmt.Sprintf("≥%v", v.X)
	}
	return fmt.Sprint(v.X)
}

// Exact returns values that are known exactly.
func Exact(xs ...float64) []Value {
	out := make([]Value, len(xs))
	for i, x := range xs {
		out[i].X = x
	}
	return out
}

// ErrEmpty is returned for a sample without values.
var ErrEmpty = errors.New("empty sample")

// Quantile returns the p-quantile of the sample, p from 0 to 1, by linear
// interpolation between order statistics at rank 1 + (n-1)p: type 7 of Hyndman
// and Fan (1996, The American Statistician 50:4), the default of R and NumPy.
//
// The result is exact if no possible true value of the censored ones could
// change it. Otherwise it is censored, at the quantile of the sample in which
// each censored value is its bound.
//
// The sample is not changed. Errors: [ErrEmpty], p out of range, and values that
// are not finite.
func Quantile(sample []Value, p float64) (Value, error) {
	if !(p >= 0 && p <= 1) {
		return Value{}, fmt.Errorf("quantile %v is not between 0 and 1", p)
	}
	o, err := newOrder(sample)
	if err != nil {
		return Value{}, err
	}
	return o.bounds(func(sorted []float64) float64 { return type7(sorted, p) }), nil
}

// Mean returns the arithmetic mean. With any censored value the result is
// censored, at the mean of the bounds. Errors: [ErrEmpty] and values that are
// not finite.
func Mean(sample []Value) (Value, error) {
	o, err := newOrder(sample)
	if err != nil {
		return Value{}, err
	}
	return o.bounds(mean), nil
}

// order holds a sample sorted twice: with the least and with the greatest values
// that its censored members can have.
type order struct{ least, greatest []float64 }

func newOrder(sample []Value) (order, error) {
	if len(sample) == 0 {
		return order{}, ErrEmpty
	}
	var o order
	for i, v := range sample {
		if math.IsNaN(v.X) || math.IsInf(v.X, 0) {
			return order{}, fmt.Errorf("value %d of the sample is %v, want a finite number", i, v.X)
		}
		o.least = append(o.least, v.X)
		if v.Censored {
			v.X = math.Inf(1)
		}
		o.greatest = append(o.greatest, v.X)
	}
	slices.Sort(o.least)
	slices.Sort(o.greatest)
	return o, nil
}

// bounds evaluates a statistic that never falls when a value rises.
func (o order) bounds(f func(sorted []float64) float64) Value {
	low, high := f(o.least), f(o.greatest)
	return Value{X: low, Censored: low != high}
}

func type7(sorted []float64, p float64) float64 {
	rank := float64(len(sorted)-1) * p
	i := int(rank)
	part := rank - float64(i)
	if part == 0 { // also keeps 0 × Inf out
		return sorted[i]
	}
	a, b := sorted[i], sorted[i+1]
	if a == b {
		return a // without a rounding error
	}
	// The conversions keep the compiler from fusing, which some processors
	// offer and which rounds otherwise.
	return float64(a*(1-part)) + float64(b*part)
}

// mean expects ascending order, which makes the sum independent of the order of
// the sample.
func mean(sorted []float64) float64 {
	sum := 0.0
	for _, x := range sorted {
		sum += x
	}
	return sum / float64(len(sorted))
}
