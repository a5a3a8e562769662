package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// tone returns seconds of a sine of amplitude 1.
func tone(freq float64, rate int, seconds float64) Audio {
	a := Audio{Rate: rate, Samples: make([]float32, int(seconds*float64(rate)))}
	for i := range a.Samples {
		a.Samples[i] = float32(math.Sin(2 * math.Pi * freq * float64(i) / float64(rate)))
	}
	return a
}

// middle cuts off 25 ms at both ends, where the filter reaches into the silence
// outside of the file.
func middle(a Audio) []float32 {
	n := a.Rate / 40
	return a.Samples[n : len(a.Samples)-n]
}

// level returns the power of s in dB, 0 dB being a sine of amplitude 1.
func level(s []float32) float64 {
	var sum float64
	for _, v := range s {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(2*sum/float64(len(s)))
}

// TestResampleAlias sweeps a tone through the stop band. Nothing but its alias is
// in the result, so all of the power there counts.
func TestResampleAlias(t *testing.T) {
	tests := []struct {
		from, to int
		stop     float64 // Hz, where the stop band begins
	}{
		{48000, 16000, 8100},
		{44100, 16000, 8100},
		{32000, 16000, 8100},
		{24000, 16000, 8100},
		{48000, 8000, 4050},
		{22050, 8000, 4050},
		{16000, 8000, 4050},
		{48000, 24000, 12150},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d to %d", tt.from, tt.to), func(t *testing.T) {
			worst, at := math.Inf(-1), 0.0
			step := 20.0 // fine near the edge of the band, where the highest side lobes are
			for f := tt.stop; f < float64(tt.from)/2-50; f += step {
				if f > tt.stop+400 {
					step = 150
				}
				if l := level(middle(tone(f, tt.from, 0.1).Resample(tt.to))); l > worst {
					worst, at = l, f
				}
			}
			t.Logf("worst alias %.1f dB at %.0f Hz", worst, at)
			if worst > -90 {
				t.Errorf("alias of %.1f dB at %.0f Hz, want −90 dB or less", worst, at)
			}
		})
	}
}

// TestResampleTone compares a tone in the pass band, sample by sample, with the
// same tone generated at the new rate: gain, delay, images and aliases in one.
func TestResampleTone(t *testing.T) {
	tests := []struct {
		from, to int
		pass     float64 // Hz, where the pass band ends
	}{
		{48000, 16000, 7000},
		{44100, 16000, 7000},
		{22050, 16000, 7000},
		{11025, 16000, 4800},
		{8000, 16000, 3500},
		{8000, 24000, 3500},
		{16000, 24000, 7000},
		{48000, 24000, 10500},
		{48000, 8000, 3500},
		{44101, 16000, 7000}, // no common factor: 16000 phases
		{47999, 8000, 3500},
		{8001, 24000, 3500},
		{16000, 48000, 7000},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d to %d", tt.from, tt.to), func(t *testing.T) {
			worst, at := math.Inf(-1), 0.0
			for _, part := range []float64{0.01, 0.13, 0.5, 0.77, 0.92, 1} {
				f := part * tt.pass
				got, want := middle(tone(f, tt.from, 0.1).Resample(tt.to)), middle(tone(f, tt.to, 0.1))
				diff := make([]float32, min(len(got), len(want)))
				for i := range diff {
					diff[i] = got[i] - want[i]
				}
				if l := level(diff); l > worst {
					worst, at = l, f
				}
			}
			t.Logf("worst difference %.1f dB at %.0f Hz", worst, at)
			if worst > -90 {
				t.Errorf("difference of %.1f dB at %.0f Hz, want −90 dB or less", worst, at)
			}
		})
	}
}

func TestResampleGainAt7k(t *testing.T) {
	for _, tt := range []struct{ freq, min, max float64 }{
		{1000, -0.001, 0.001}, {7000, -0.005, 0.005}, {7400, -1, -0.5}, {7600, -6.1, -5.9},
	} {
		g := level(middle(tone(tt.freq, 48000, 0.2).Resample(16000)))
		t.Logf("%.0f Hz: %.4f dB", tt.freq, g)
		if g < tt.min || g > tt.max {
			t.Errorf("gain at %.0f Hz is %.4f dB, want %v … %v", tt.freq, g, tt.min, tt.max)
		}
	}
}

// TestResampleImpulse checks the zero delay: an impulse at a time that both rates
// have a sample for stays there, with equal sides.
func TestResampleImpulse(t *testing.T) {
	for _, tt := range []struct{ from, to, at, want int }{
		{48000, 16000, 3000, 1000}, {44100, 16000, 4410, 1600}, {8000, 16000, 500, 1000},
		{16000, 24000, 1000, 1500}, {48000, 8000, 0, 0},
	} {
		a := Audio{Samples: make([]float32, 2*tt.at+1), Rate: tt.from}
		a.Samples[tt.at] = 1
		out := a.Resample(tt.to).Samples
		peak := 0
		for i, v := range out {
			if v > out[peak] {
				peak = i
			}
		}
		if peak != tt.want {
			t.Errorf("%d to %d: peak at %d, want %d", tt.from, tt.to, peak, tt.want)
		}
		for d := 1; d <= peak && peak+d < len(out); d++ {
			if math.Abs(float64(out[peak-d]-out[peak+d])) > 1e-7 {
				t.Fatalf("%d to %d: %v and %v at %d samples from the peak", tt.from, tt.to, out[peak-d], out[peak+d], d)
			}
		}
	}
}

// TestResampleLaws checks what holds for all rates and lengths: the length of the
// result, a gain of 1 at 0 Hz, and no way to exceed the input by much.
func TestResampleLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	targets := []int{8000, 16000, 24000}
	sources := []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}
	for i := range 300 {
		from, to := sources[rng.IntN(len(sources))], targets[rng.IntN(len(targets))]
		if i%50 == 0 {
			from = MinRate + rng.IntN(MaxRate-MinRate+1)
		}
		n := rng.IntN(2000)
		a := Audio{Samples: make([]float32, n), Rate: from}
		for j := range a.Samples {
			a.Samples[j] = 0.5
		}
		b := a.Resample(to)
		if b.Rate != to {
			t.Fatalf("rate is %d, want %d", b.Rate, to)
		}
		if want := int(math.Floor(float64(n)*float64(to)/float64(from) + 0.5)); len(b.Samples) != want {
			t.Fatalf("%d samples from %d to %d Hz give %d, want %d", n, from, to, len(b.Samples), want)
		}
		for k, v := range b.Samples {
			if math.Abs(float64(v)) > 0.6 {
				t.Fatalf("%d to %d: sample %d is %v from a constant of 0.5", from, to, k, v)
			}
			edge := min(float64(k), float64(len(b.Samples)-1-k)) / float64(to)
			if edge > 0.01 && math.Abs(float64(v)-0.5) > 1e-4 {
				t.Fatalf("%d to %d: sample %d is %v, want 0.5", from, to, k, v)
			}
		}
	}
}

func TestResampleConstantExact(t *testing.T) {
	a := Audio{Samples: make([]float32, 48000), Rate: 48000}
	for i := range a.Samples {
		a.Samples[i] = 0.25
	}
	for i, v := range middle(a.Resample(16000)) {
		if math.Abs(float64(v)-0.25) > 3e-8 {
			t.Fatalf("sample %d is %v, want 0.25", i, v)
		}
	}
}

func TestResampleSameRate(t *testing.T) {
	a := tone(440, 16000, 0.01)
	if b := a.Resample(16000); &b.Samples[0] != &a.Samples[0] {
		t.Error("equal rates copy the samples")
	}
}

func TestResamplePanicsOnBadRates(t *testing.T) {
	for _, tt := range []struct{ from, to int }{{0, 16000}, {16000, 0}, {16000, 7999}, {48001, 16000}, {16000, -8000}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic from %d to %d", tt.from, tt.to)
				}
			}()
			Audio{Samples: make([]float32, 8), Rate: tt.from}.Resample(tt.to)
		}()
	}
}

// BenchmarkResample converts 30 s of audio.
func BenchmarkResample(b *testing.B) {
	for _, tt := range []struct{ from, to int }{{48000, 16000}, {44100, 16000}, {8000, 16000}} {
		b.Run(fmt.Sprintf("%d-%d", tt.from, tt.to), func(b *testing.B) {
			a := tone(1000, tt.from, 30)
			b.SetBytes(int64(4 * len(a.Samples)))
			for b.Loop() {
				a.Resample(tt.to)
			}
		})
	}
}
