package corpus

import (
	"fmt"
	"math"
)

// The low-pass of Resample. Together these give, from 48 to 16 kHz, a gain of
// 0.0 dB up to 7 kHz and −90 dB or less from 8.1 kHz on.
const (
	zeroCrossings = 48   // of the sinc on either side of its centre
	kaiserBeta    = 9    // stop band of −90 dB (Kaiser 1974: A = β/0.1102 + 8.7)
	rollOff       = 0.95 // cut-off (−6 dB) as a fraction of the lower Nyquist frequency
)

// Resample converts a to another sample rate. It is a polyphase filter with a
// Kaiser-windowed sinc: sample k of the result is the band-limited signal at time
// k/rate, so nothing is delayed; before the start and after the end there is
// silence. The result has round(n × rate / a.Rate) samples.
//
// The sums are float64, in a fixed order and never fused, so that machines agree to
// far below a step of 16 bits. The result may exceed full scale by a little where
// the input is close to it.
//
// Where the rate is already right, a itself is returned. Resample panics if one
// of the rates is outside [MinRate] … [MaxRate].
func (a Audio) Resample(rate int) Audio {
	for _, r := range []int{a.Rate, rate} {
		if r < MinRate || r > MaxRate {
			panic(fmt.Sprintf("corpus: resampling from %d to %d Hz", a.Rate, rate))
		}
	}
	if rate == a.Rate {
		return a
	}
	g := gcd(rate, a.Rate)
	f := newFilter(rate/g, a.Rate/g)
	n, up, down := int64(len(a.Samples)), int64(f.up), int64(f.down)
	out := make([]float32, (2*n*up+down)/(2*down))
	for k := range out {
		pos := int64(k) * down // in 1/up of an input sample
		out[k] = float32(f.at(a.Samples, int(pos/up), int(pos%up)))
	}
	return Audio{Samples: out, Rate: rate}
}

// filter is an interpolator at multiples of 1/up of a sample.
type filter struct {
	up, down int // output and input rate without common factors
	half     int // input samples on either side of the centre
	phases   [][]float64
}

func newFilter(up, down int) *filter {
	f := &filter{up: up, down: down, phases: make([][]float64, up)}
	f.half = int(math.Ceil(zeroCrossings / f.cutoff()))
	return f
}

// cutoff returns the cut-off as a fraction of the input's Nyquist frequency.
func (f *filter) cutoff() float64 {
	return rollOff * min(1, float64(f.up)/float64(f.down))
}

// at returns the value of x at i + phase/up samples.
func (f *filter) at(x []float32, i, phase int) float64 {
	h := f.phases[phase]
	if h == nil {
		// On demand, as rates without a common factor have more phases than a
		// short file has samples.
		h = f.newPhase(phase)
		f.phases[phase] = h
	}
	first := i - f.half + 1 // h[0] belongs to x[first]
	lo, hi := max(0, -first), min(len(h), len(x)-first)
	if lo >= hi {
		return 0
	}
	return dot(x[first+lo:first+hi], h[lo:hi])
}

// newPhase computes the weights for the samples i−half+1 … i+half around a point
// phase/up behind sample i. They add up to 1, so that a constant stays as it is.
func (f *filter) newPhase(phase int) []float64 {
	var (
		h     = make([]float64, 2*f.half)
		c     = f.cutoff()
		frac  = float64(phase) / float64(f.up)
		width = zeroCrossings / c
		sum   float64
	)
	for j := range h {
		t := float64(j-f.half+1) - frac
		h[j] = sinc(c*t) * kaiser(t/width)
		sum += h[j]
	}
	for j := range h {
		h[j] /= sum
	}
	return h
}

// dot returns the scalar product. Four sums keep the adder busy; the conversions
// forbid the compiler to fuse multiplication and addition, which it does on some
// machines only.
func dot(x []float32, h []float64) float64 {
	var s0, s1, s2, s3 float64
	h = h[:len(x)]
	for len(x) >= 4 && len(h) >= 4 {
		s0 += float64(float64(x[0]) * h[0])
		s1 += float64(float64(x[1]) * h[1])
		s2 += float64(float64(x[2]) * h[2])
		s3 += float64(float64(x[3]) * h[3])
		x, h = x[4:], h[4:]
	}
	for i := range x {
		s0 += float64(float64(x[i]) * h[i])
	}
	return (s0 + s1) + (s2 + s3)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser returns the Kaiser window at x, which is −1 … 1 from end to end.
func kaiser(x float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return bessel0(kaiserBeta*math.Sqrt(1-x*x)) / bessel0(kaiserBeta)
}

// bessel0 returns the modified Bessel function of the first kind and order 0, by
// its power series Σ ((x/2)^k / k!)².
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
