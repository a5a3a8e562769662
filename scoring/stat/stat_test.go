package stat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func cens(xs ...float64) []Value {
	out := Exact(xs...)
	for i := range out {
		out[i].Censored = true
	}
	return out
}

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sample []Value
		p      float64
		want   Value
	}{
		{"one value", Exact(7), 0.99, Value{X: 7}},
		{"median of two", Exact(1, 2), 0.5, Value{X: 1.5}},
		{"unsorted", Exact(9, 1, 5), 0.5, Value{X: 5}},
		{"ends", Exact(3, 1, 2), 0, Value{X: 1}},
		{"other end", Exact(3, 1, 2), 1, Value{X: 3}},
		// numpy.quantile([1, 2, 4, 8], 0.4), R's quantile(type = 7): 2.4
		{"type 7", Exact(1, 2, 4, 8), 0.4, Value{X: 2.4}},
		{"negative latencies", Exact(-50, -10, 30), 0.25, Value{X: -30}},
		{"equal neighbours stay exact", Exact(0.1, 0.1, 0.1), 0.3, Value{X: 0.1}},

		{"below the censored mass", append(Exact(1, 2, 3), cens(10)...), 1.0 / 3, Value{X: 2}},
		{"exactly before the censored mass", append(Exact(1, 2, 3), cens(10)...), 2.0 / 3, Value{X: 3}},
		{"between observed and censored", append(Exact(1, 2, 4), cens(10)...), 5.0 / 6, Value{7, true}},
		{"in the censored mass", append(Exact(1), cens(10, 10, 10)...), 0.5, Value{10, true}},
		{"all censored", cens(10, 10), 0, Value{10, true}},
		{"censored below observed", append(Exact(3, 5), cens(2)...), 0.5, Value{3, true}},
		{"median above any bound", append(Exact(1, 1, 1, 5), cens(2)...), 0.5, Value{X: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.sample)
			got, err := Quantile(tt.sample, tt.p)
			if err != nil || got.Censored != tt.want.Censored || math.Abs(got.X-tt.want.X) > 1e-12 {
				t.Errorf("Quantile = %v, %v, want %v", got, err, tt.want)
			}
			if !slices.Equal(before, tt.sample) {
				t.Error("the sample was changed")
			}
		})
	}
}

// Whatever the censored values really are, the quantile of the full sample is
// what is reported, or at least that.
func TestQuantileLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		truth := make([]Value, 1+rng.IntN(20))
		seen := slices.Clone(truth)
		for i := range truth {
			truth[i].X = float64(rng.IntN(50))
			seen[i] = truth[i]
			if limit := float64(rng.IntN(60)); limit < truth[i].X {
				seen[i] = Value{limit, true}
			}
		}
		p := rng.Float64()
		want, _ := Quantile(truth, p)
		got, err := Quantile(seen, p)
		if err != nil || got.X > want.X+1e-9 || !got.Censored && got != want {
			t.Fatalf("Quantile(%v, %v) = %v, %v; of the truth %v: %v", seen, p, got, err, truth, want)
		}
	}
}

func TestMean(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sample []Value
		want   Value
	}{
		{"exact", Exact(1, 2, 6), Value{X: 3}},
		{"negative", Exact(-1, 1), Value{X: 0}},
		{"censored", append(Exact(1), cens(3)...), Value{2, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Mean(tt.sample); err != nil || got != tt.want {
				t.Errorf("Mean = %v, %v, want %v", got, err, tt.want)
			}
		})
	}
	a, _ := Mean(Exact(0.1, 0.2, 0.3, 1e9))
	b, _ := Mean(Exact(1e9, 0.3, 0.2, 0.1))
	if a != b {
		t.Errorf("the mean depends on the order: %v, %v", a, b)
	}
}

func TestErrors(t *testing.T) {
	for name, f := range map[string]func([]Value) error{
		"Quantile":         func(s []Value) error { _, err := Quantile(s, 0.5); return err },
		"Mean":             func(s []Value) error { _, err := Mean(s); return err },
		"QuantileInterval": func(s []Value) error { _, err := QuantileInterval(s, 0.5, 0.95); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := f(nil); !errors.Is(err, ErrEmpty) {
				t.Errorf("no values: %v", err)
			}
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				if err := f(Exact(1, x)); err == nil {
					t.Errorf("%v was accepted", x)
				}
			}
		})
	}
	for _, p := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := Quantile(Exact(1), p); err == nil {
			t.Errorf("p = %v was accepted", p)
		}
	}
	for _, bad := range [][2]float64{{0, .95}, {1, .95}, {math.NaN(), .95}, {.5, 0}, {.5, 1}, {.5, math.NaN()}} {
		if _, err := QuantileInterval(Exact(1), bad[0], bad[1]); err == nil {
			t.Errorf("p, level = %v were accepted", bad)
		}
	}
}

func TestValueString(t *testing.T) {
	if got := (Value{X: 2.5}).String() + " " + (Value{10000, true}).String(); got != "2.5 ≥10000" {
		t.Error(got)
	}
}

// ramp is 1, 2, … n, so that a value is its own rank.
func ramp(n int) []Value {
	out := make([]Value, n)
	for i := range out {
		out[i].X = float64(i + 1)
	}
	return out
}

func TestMinN(t *testing.T) {
	for _, tt := range []struct {
		p    float64
		want int
	}{{0.5, 6}, {0.9, 36}, {0.95, 72}, {0.99, 368}, {0.999, 3688}, {0.1, 36}, {0.01, 368}} {
		if got := MinN(tt.p, 0.95); got != tt.want {
			t.Errorf("MinN(%v) = %d, want %d", tt.p, got, tt.want)
		}
		for _, n := range []int{tt.want - 1, tt.want} {
			iv, err := QuantileInterval(ramp(n), tt.p, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if iv.OK() != (n == tt.want) {
				t.Errorf("p = %v, n = %d: interval %+v", tt.p, n, iv)
			}
			if iv.OK() {
				continue
			}
			if d := cmp.Diff([]Warning{{TooSmall, tt.want}}, iv.Warnings); d != "" {
				t.Errorf("p = %v, n = %d: warnings (-want +got):\n%s", tt.p, n, d)
			}
			if !math.IsNaN(iv.Lo.X) || !math.IsNaN(iv.Hi.X) || iv.N != n {
				t.Errorf("p = %v, n = %d: a refused interval has bounds: %+v", tt.p, n, iv)
			}
		}
	}
	if got, want := (Warning{TooSmall, 72}).String(), "n too small (need 72)"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
}

func TestQuantileInterval(t *testing.T) {
	late := func(n, censored int) []Value {
		s := ramp(n)
		for i := n - censored; i < n; i++ {
			s[i] = Value{1000, true}
		}
		return s
	}
	for _, tt := range []struct {
		name   string
		sample []Value
		p      float64
		lo, hi Value
		level  float64 // from tables of the binomial distribution
	}{
		{"median of 6 is the range", ramp(6), 0.5, Value{X: 1}, Value{X: 6}, 0.96875},
		{"median of 10", ramp(10), 0.5, Value{X: 2}, Value{X: 9}, 0.978515625},
		{"median of 100", ramp(100), 0.5, Value{X: 40}, Value{X: 61}, 0.9647998},
		{"late answers above", late(10, 1), 0.5, Value{X: 2}, Value{X: 9}, 0.978515625},
		{"upper bound censored", late(10, 2), 0.5, Value{X: 2}, Value{1000, true}, 0.978515625},
		{"both censored", late(10, 9), 0.5, Value{1000, true}, Value{1000, true}, 0.978515625},
	} {
		t.Run(tt.name, func(t *testing.T) {
			iv, err := QuantileInterval(tt.sample, tt.p, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if iv.Lo != tt.lo || iv.Hi != tt.hi || math.Abs(iv.Level-tt.level) > 1e-7 || len(iv.Warnings) > 0 {
				t.Errorf("interval %+v, want %v to %v at %v", iv, tt.lo, tt.hi, tt.level)
			}
		})
	}
}

// The achieved level is at least the one asked for, at any size, and the
// interval holds the true quantile about that often.
func TestQuantileIntervalCoverage(t *testing.T) {
	for _, p := range []float64{0.5, 0.9, 0.95, 0.99} {
		for n := MinN(p, 0.95); n < 3*MinN(p, 0.95); n += 1 + n/9 {
			if iv, _ := QuantileInterval(ramp(n), p, 0.95); iv.Level < 0.95 || iv.Level >= 1 {
				t.Errorf("p = %v, n = %d: level %v", p, n, iv.Level)
			}
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	const runs = 2000
	held, level := 0, 0.0
	for range runs {
		s := make([]Value, 100)
		for i := range s {
			s[i].X = rng.ExpFloat64()
		}
		iv, _ := QuantileInterval(s, 0.9, 0.95)
		if truth := math.Log(10); iv.Lo.X <= truth && truth <= iv.Hi.X {
			held++
		}
		level = iv.Level
	}
	if got := float64(held) / runs; math.Abs(got-level) > 0.02 { // 4 standard errors
		t.Errorf("the interval held the truth in %v of runs, level %v", got, level)
	}
}

func TestRatioInterval(t *testing.T) {
	clusters := func(n int) []Ratio {
		out := make([]Ratio, n)
		for i := range out {
			out[i] = Ratio{Num: float64(i % 7), Den: 50}
		}
		return out
	}
	same := func(n int) []Ratio { return slices.Repeat([]Ratio{{3, 60}}, n) }
	for _, tt := range []struct {
		name   string
		in     []Ratio
		ok     bool
		lo, hi float64
		warn   []Warning
	}{
		{"one cluster", same(1), false, 0, 0, []Warning{{TooSmall, EnoughClusters}}},
		{"few clusters", same(2), true, 0.05, 0.05, []Warning{{TooSmall, EnoughClusters}}},
		{"enough that are alike", same(30), true, 0.05, 0.05, nil},
		{"a cluster without denominator", []Ratio{{1, 0}, {1, 10}}, true, 0.1, 0.2, []Warning{{TooSmall, EnoughClusters}, {Code: NoBase}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			iv, err := RatioInterval(tt.in, 0.95, 1)
			if err != nil {
				t.Fatal(err)
			}
			if iv.OK() != tt.ok || iv.N != len(tt.in) {
				t.Fatalf("interval %+v", iv)
			}
			if tt.ok && (math.Abs(iv.Lo.X-tt.lo) > 1e-12 || math.Abs(iv.Hi.X-tt.hi) > 1e-12) {
				t.Errorf("%v to %v, want %v to %v", iv.Lo, iv.Hi, tt.lo, tt.hi)
			}
			if d := cmp.Diff(tt.warn, iv.Warnings); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}

	// For the mean of n values the bootstrap's standard error is known.
	in := clusters(700)
	iv, err := RatioInterval(in, 0.95, 1)
	if err != nil {
		t.Fatal(err)
	}
	half := 1.96 * 2 / math.Sqrt(700) / 50 // the values 0..6 have standard deviation 2
	if math.Abs(iv.Lo.X-(0.06-half)) > half/20 || math.Abs(iv.Hi.X-(0.06+half)) > half/20 {
		t.Errorf("%v to %v, want about %v ± %v", iv.Lo, iv.Hi, 0.06, half)
	}
	again, _ := RatioInterval(in, 0.95, 1)
	other, _ := RatioInterval(in, 0.95, 2)
	if d := cmp.Diff(iv, again); d != "" {
		t.Errorf("the same seed gives another interval:\n%s", d)
	}
	if iv.Lo == other.Lo && iv.Hi == other.Hi {
		t.Error("the seed has no effect")
	}
	// Pinned: reports must come out the same on every machine.
	if d := cmp.Diff([2]float64{0.057, 0.06294285714285715}, [2]float64{iv.Lo.X, iv.Hi.X}); d != "" {
		t.Errorf("the draws changed (-want +got):\n%s", d)
	}
}

func TestRatioIntervalRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		in    []Ratio
		level float64
	}{
		{"no clusters", nil, 0.95},
		{"no denominator", []Ratio{{1, 0}, {0, 0}}, 0.95},
		{"negative denominator", []Ratio{{1, -1}, {0, 5}}, 0.95},
		{"not a number", []Ratio{{math.NaN(), 1}}, 0.95},
		{"infinite", []Ratio{{1, math.Inf(1)}}, 0.95},
		{"level", []Ratio{{1, 1}, {1, 1}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if iv, err := RatioInterval(tt.in, tt.level, 1); err == nil {
				t.Errorf("accepted: %+v", iv)
			}
		})
	}
}

func BenchmarkRatioInterval(b *testing.B) {
	in := slices.Repeat([]Ratio{{1, 20}, {3, 50}}, 500)
	for b.Loop() {
		if _, err := RatioInterval(in, 0.95, 1); err != nil {
			b.Fatal(err)
		}
	}
}
