package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// maxDelay caps what a heavy tail can draw, and what may be asked for.
const maxDelay = time.Minute

// Delay is a duration with an optional spread. The zero Delay is no delay.
type Delay struct {
	Base time.Duration
	// Spread is "" (constant), "uniform", "normal" or "pareto".
	Spread string
	// Width is the half width of a uniform spread or the standard deviation of a
	// normal one.
	Width time.Duration
	// Shape is the exponent of a Pareto spread, whose least value is Base. The
	// smaller it is, the heavier the tail; the mean is infinite up to 1.
	Shape float64
}

// ParseDelay reads a delay:
//
//	120ms             constant
//	120ms~30ms        uniform between 90 and 150 ms
//	120ms~normal:30ms normal with a standard deviation of 30 ms
//	120ms~pareto:1.5  Pareto: at least 120 ms, exponent 1.5
//
// Delays lie between 0 and 1 minute.
func ParseDelay(text string) (Delay, error) {
	fail := func(why string) (Delay, error) {
		return Delay{}, fmt.Errorf("delay %q: %s; write D, D~J, D~normal:S or D~pareto:A, as in 120ms~30ms", text, why)
	}
	base, spread, spreads := strings.Cut(text, "~")
	d := Delay{}
	var err error
	if d.Base, err = parseSpan(base); err != nil {
		return fail(err.Error())
	}
	if !spreads {
		return d, nil
	}
	kind, arg, named := strings.Cut(spread, ":")
	if !named {
		kind, arg = "uniform", spread
	}
	d.Spread = kind
	switch kind {
	case "uniform", "normal":
		if d.Width, err = parseSpan(arg); err != nil {
			return fail(err.Error())
		}
		if kind == "uniform" && d.Width > d.Base {
			return fail("the spread is wider than the delay")
		}
	case "pareto":
		if d.Shape, err = strconv.ParseFloat(arg, 64); err != nil || !(d.Shape > 0) || math.IsInf(d.Shape, 0) {
			return fail("the exponent must be a positive number")
		}
	default:
		return fail(fmt.Sprintf("unknown spread %q", kind))
	}
	return d, nil
}

// parseSpan reads a duration between 0 and maxDelay.
func parseSpan(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	if d < 0 || d > maxDelay {
		return 0, fmt.Errorf("%s is not between 0 and %s", text, maxDelay)
	}
	return d, nil
}

// String is the form that [ParseDelay] reads.
func (d Delay) String() string {
	switch d.Spread {
	case "uniform":
		return fmt.Sprintf("%s~%s", d.Base, d.Width)
	case "normal":
		return fmt.Sprintf("%s~normal:%s", d.Base, d.Width)
	case "pareto":
		return fmt.Sprintf("%s~pareto:%s", d.Base, strconv.FormatFloat(d.Shape, 'g', -1, 64))
	}
	return d.Base.String()
}

// Draw draws one delay. A normal draw below zero counts as zero; a Pareto draw
// is cut at 1 minute.
func (d Delay) Draw(rnd *rand.Rand) time.Duration {
	v := float64(d.Base)
	switch d.Spread {
	case "uniform":
		v += float64(d.Width) * (2*rnd.Float64() - 1)
	case "normal":
		v += float64(d.Width) * rnd.NormFloat64()
	case "pareto":
		v *= math.Pow(1-rnd.Float64(), -1/d.Shape)
	}
	return time.Duration(min(max(v, 0), float64(maxDelay)))
}
