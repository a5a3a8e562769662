package wer

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/scoring/stat"
)

func TestWER(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Counts
		want float64
		ok   bool
	}{
		{"nothing on either side", Counts{}, 0, true},
		{"no reference words", Counts{Ins: 3}, 0, false},
		{"all kinds", Counts{RefWords: 10, Hits: 7, Sub: 2, Del: 1, Ins: 1}, 0.4, true},
		{"above one", Counts{RefWords: 1, Hits: 1, Ins: 4}, 4, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := tt.c.WER(); got != tt.want || ok != tt.ok {
				t.Errorf("WER() = %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestTailError(t *testing.T) {
	for _, tt := range []struct {
		name, ref, hyp string
		n              int
		want           Tail
	}{
		{"no words", "", "", 3, Tail{}},
		{"no reference words", "", "a b", 3, Tail{TrailingIns: 2}},
		{"all right", "a b c d", "a b c d", 3, Tail{RefWords: 3}},
		{"error before the tail", "a b c d", "x b c d", 3, Tail{RefWords: 3}},
		{"cut off", "a b c d", "a b", 3, Tail{RefWords: 3, Missed: 2}},
		{"all lost", "a b c d", "", 3, Tail{RefWords: 3, Missed: 3}},
		{"short reference", "a b", "a x", 3, Tail{RefWords: 2, Missed: 1}},
		{"words after the end", "a b c", "a b c x y", 3, Tail{RefWords: 3, TrailingIns: 2}},
		{"words inside the tail are not after the end", "a b c", "a b x c", 3, Tail{RefWords: 3}},
		{"a hit of more words than the tail", "a [b c d e|bcde]", "x bcde", 3, Tail{RefWords: 3}},
		{"a hit that reaches into the tail", "[a b c|abc] d", "abc x", 3, Tail{RefWords: 3, Missed: 1}},
		{"nothing asked", "a b", "a c", 0, Tail{}},
		{"negative", "a b", "a c", -1, Tail{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := TailError(mustAlign(t, spans(tt.ref), spans(tt.hyp)), tt.n)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if rate, ok := (Tail{RefWords: 3, Missed: 1}).Rate(); !ok || rate != 1.0/3 {
		t.Errorf("Rate() = %v, %v", rate, ok)
	}
	if _, ok := (Tail{TrailingIns: 1}).Rate(); ok {
		t.Error("a tail without reference words has a rate")
	}
}

func total(t *testing.T, items ...item) Total {
	t.Helper()
	var sum Total
	for _, it := range items {
		if err := sum.Add(it.c, it.audio); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

type item struct {
	c     Counts
	audio time.Duration
}

func TestTotal(t *testing.T) {
	a := item{Counts{RefWords: 10, Hits: 9, Sub: 1}, 10 * time.Second}          // 10 %
	b := item{Counts{RefWords: 40, Hits: 28, Del: 12, Ins: 4}, 5 * time.Second} // 40 %
	none := item{Counts{Ins: 3}, time.Hour}
	for _, tt := range []struct {
		name             string
		t                Total
		pooled, weighted float64 // NaN: absent
	}{
		{"empty", Total{}, math.NaN(), math.NaN()},
		{"one", total(t, a), 0.1, 0.1},
		{"two", total(t, a, b), 17.0 / 50, 0.2},
		{"no rate", total(t, a, b, none), 20.0 / 50, 0.2},
		{"only no rate", total(t, none), math.NaN(), math.NaN()},
		{"silence understood", total(t, item{Counts{}, time.Second}), 0, 0},
		{"no audio", total(t, item{a.c, 0}), 0.1, math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check := func(name string, want, got float64, ok bool) {
				t.Helper()
				if ok == math.IsNaN(want) || ok && math.Abs(got-want) > 1e-15 {
					t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
				}
			}
			got, ok := tt.t.Pooled()
			check("Pooled()", tt.pooled, got, ok)
			got, ok = tt.t.Weighted()
			check("Weighted()", tt.weighted, got, ok)
		})
	}

	merged := total(t, a)
	merged.Merge(total(t, b, none))
	if d := cmp.Diff(total(t, a, b, none), merged, cmp.AllowUnexported(Total{})); d != "" {
		t.Errorf("Merge differs from Add (-add +merge):\n%s", d)
	}
	if merged.Items != 3 || merged.NoRate != 1 || merged.Audio != 15*time.Second {
		t.Errorf("items %d, without rate %d, audio %v", merged.Items, merged.NoRate, merged.Audio)
	}
	if err := merged.Add(a.c, -1); err == nil || merged.Items != 3 {
		t.Errorf("Add of a negative duration: error %v, items %d", err, merged.Items)
	}
}

func TestIntervals(t *testing.T) {
	var recordings []Total
	for k := range 40 {
		c := Counts{RefWords: 100, Hits: 100 - k%10, Sub: k % 10}
		recordings = append(recordings, total(t, item{c, time.Duration(1+k%10) * time.Second}))
	}
	for _, tt := range []struct {
		name     string
		interval func([]Total, uint64) (stat.Interval, error)
		rate     float64
	}{
		{"pooled", PooledInterval, 0.045},
		{"weighted", WeightedInterval, 0.06}, // Σ k(k+1) / Σ (k+1) for k 0..9, in hundredths
	} {
		t.Run(tt.name, func(t *testing.T) {
			iv, err := tt.interval(recordings, 1)
			if err != nil {
				t.Fatal(err)
			}
			if !iv.OK() || iv.N != 40 || iv.Level != 0.95 || len(iv.Warnings) > 0 {
				t.Errorf("interval %+v", iv)
			}
			if !(tt.rate-0.015 < iv.Lo.X && iv.Lo.X < tt.rate && tt.rate < iv.Hi.X && iv.Hi.X < tt.rate+0.015) {
				t.Errorf("interval %v to %v for the rate %v", iv.Lo, iv.Hi, tt.rate)
			}
		})
	}
	if _, err := PooledInterval(nil, 1); !errors.Is(err, stat.ErrEmpty) {
		t.Errorf("no recordings: %v", err)
	}
}
