package stat

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// ClusterQuantileInterval returns a percentile bootstrap interval for the
// p-quantile of values that come in clusters, such as several turns of one
// recording: these are not independent, and [QuantileInterval] would be too narrow.
// It draws whole clusters with replacement. The quantile of a draw is the smallest
// value with at least the share p of the draw at or below it.
//
// It is refused below [MinN] clusters, for the same reason as QuantileInterval, and
// carries [TooSmall] below [EnoughClusters]. A bound that falls on a censored value is
// censored. The same clusters in the same order with the same seed give the same
// interval. N is the number of clusters. The time is proportional to the number of
// values times the draws, of which there are 2,000, and fewer (at least 200) beyond
// 5,000 values.
//
// Errors: as QuantileInterval.
func ClusterQuantileInterval(clusters [][]Value, p, level float64, seed uint64) (Interval, error) {
	if err := checkLevel(level); err != nil {
		return Interval{}, err
	}
	var sample []Value
	var owner []int
	for k, c := range clusters {
		for _, v := range c {
			sample, owner = append(sample, v), append(owner, k)
		}
	}
	if _, err := Quantile(sample, p); err != nil {
		return Interval{}, err
	}
	n := len(clusters)
	if p <= 0 || p >= 1 || n < MinN(p, level) {
		return refuse(n, Warning{Code: TooSmall, Need: MinN(p, level)}), nil
	}
	order := make([]int, len(sample))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareValues(sample[a], sample[b]) })

	draws := min(2000, max(200, 10_000_000/len(sample)))
	quantiles := make([]Value, 0, draws)
	rng := rand.NewPCG(seed, 0xc1a5)
	times := make([]int, n)
	for range draws {
		clear(times)
		size := 0
		for range n {
			k, _ := bits.Mul64(rng.Uint64(), uint64(n))
			times[k]++
			size += len(clusters[k])
		}
		// Clusters without values may leave a draw empty.
		left := p * float64(size)
		for _, i := range order {
			if left -= float64(times[owner[i]]); left <= 1e-9 && times[owner[i]] > 0 {
				quantiles = append(quantiles, sample[i])
				break
			}
		}
	}
	if len(quantiles) == 0 {
		return refuse(n, Warning{Code: NoBase}), nil
	}
	slices.SortFunc(quantiles, compareValues)
	at := func(share float64) Value {
		return quantiles[min(len(quantiles)-1, int(share*float64(len(quantiles))))]
	}
	iv := Interval{N: n, Level: level, Lo: at((1 - level) / 2), Hi: at((1 + level) / 2)}
	if n < EnoughClusters {
		iv.Warnings = append(iv.Warnings, Warning{Code: TooSmall, Need: EnoughClusters})
	}
	return iv, nil
}

// compareValues orders by size; at the same size a bound lies beyond an exact value.
func compareValues(a, b Value) int {
	if a.X != b.X || a.Censored == b.Censored {
		return cmp.Compare(a.X, b.X)
	}
	if a.Censored {
		return 1
	}
	return -1
}
