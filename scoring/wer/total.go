package wer

import (
	"fmt"
	"time"

	"sttbench/scoring/stat"
)

// A Total sums scored items, and gives two corpus rates:
//
//	pooled   = Σ errors / Σ reference words
//	weighted = Σ (audio × WER) / Σ audio
//
// Weighting by audio duration is what Artificial Analysis publishes; it lets
// slow speech count more per word than pooling does. The zero Total is empty
// and ready. For equal bytes in two reports, add in the same order.
type Total struct {
	Counts     // sums over all items
	Items  int `json:"items"`
	// NoRate counts the items whose WER does not exist (no reference words but
	// a transcript). Their insertions are in Counts and in the pooled rate, but
	// the weighted rate cannot hold them.
	NoRate int           `json:"no_rate"`
	Audio  time.Duration `json:"-"` // of the items in the weighted rate

	weighted float64 // Σ seconds × WER
}

// Add adds an item with its audio duration, which must not be negative.
func (t *Total) Add(c Counts, audio time.Duration) error {
	if audio < 0 {
		return fmt.Errorf("audio duration %v is negative", audio)
	}
	t.Items++
	t.Counts.add(c)
	rate, ok := c.WER()
	if !ok {
		t.NoRate++
		return nil
	}
	t.Audio += audio
	t.weighted += float64(audio.Seconds() * rate) // not fused: equal on all processors
	return nil
}

// Merge adds all items of o.
func (t *Total) Merge(o Total) {
	t.Items += o.Items
	t.NoRate += o.NoRate
	t.Audio += o.Audio
	t.weighted += o.weighted
	t.Counts.add(o.Counts)
}

// Pooled returns Σ errors / Σ reference words; ok is false without items, or as
// in [Counts.WER].
func (t Total) Pooled() (rate float64, ok bool) {
	if t.Items == 0 {
		return 0, false
	}
	return t.Counts.WER()
}

// Weighted returns Σ (audio × WER) / Σ audio; ok is false without audio.
func (t Total) Weighted() (rate float64, ok bool) {
	if t.Audio == 0 {
		return 0, false
	}
	return t.weighted / t.Audio.Seconds(), true
}

// PooledInterval returns a 95 % bootstrap interval of the pooled rate over
// recordings, each the Total of the items cut from one; see
// [stat.RatioInterval] for order, seed, warnings and errors.
func PooledInterval(recordings []Total, seed uint64) (stat.Interval, error) {
	return interval(recordings, seed, func(t Total) stat.Ratio {
		return stat.Ratio{Num: float64(t.Errors()), Den: float64(t.RefWords)}
	})
}

// WeightedInterval is [PooledInterval] for the rate weighted by audio duration.
func WeightedInterval(recordings []Total, seed uint64) (stat.Interval, error) {
	return interval(recordings, seed, func(t Total) stat.Ratio {
		return stat.Ratio{Num: t.weighted, Den: t.Audio.Seconds()}
	})
}

func interval(recordings []Total, seed uint64, f func(Total) stat.Ratio) (stat.Interval, error) {
	clusters := make([]stat.Ratio, len(recordings))
	for i, t := range recordings {
		clusters[i] = f(t)
	}
	return stat.RatioInterval(clusters, 0.95, seed)
}
