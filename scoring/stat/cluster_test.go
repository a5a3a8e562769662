package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestClusterQuantileInterval(t *testing.T) {
	single := func(n int) [][]Value {
		var c [][]Value
		for i := range n {
			c = append(c, Exact(float64(i)))
		}
		return c
	}
	t.Run("few clusters are refused, however many values", func(t *testing.T) {
		c := [][]Value{Exact(1, 2, 3, 4, 5, 6), Exact(7, 8, 9, 10)}
		iv, err := ClusterQuantileInterval(c, 0.5, 0.95, 1)
		if err != nil || iv.OK() || iv.Warnings[0].Need != 6 {
			t.Errorf("got %+v, %v", iv, err)
		}
	})
	t.Run("single values agree with order statistics", func(t *testing.T) {
		iv, err := ClusterQuantileInterval(single(101), 0.5, 0.95, 1)
		if err != nil || !iv.OK() {
			t.Fatal(iv, err)
		}
		// Order statistics give ranks 41 and 61 of 101.
		if math.Abs(iv.Lo.X-40) > 2 || math.Abs(iv.Hi.X-60) > 2 {
			t.Errorf("interval [%v, %v], want about [40, 60]", iv.Lo, iv.Hi)
		}
	})
	t.Run("copies of a value add no evidence", func(t *testing.T) {
		once, _ := ClusterQuantileInterval(single(50), 0.5, 0.95, 1)
		var copies [][]Value
		for i := range 50 {
			copies = append(copies, Exact(float64(i), float64(i), float64(i)))
		}
		thrice, _ := ClusterQuantileInterval(copies, 0.5, 0.95, 1)
		if once.Lo != thrice.Lo || once.Hi != thrice.Hi {
			t.Errorf("[%v, %v] once, [%v, %v] thrice", once.Lo, once.Hi, thrice.Lo, thrice.Hi)
		}
	})
	t.Run("a bound among censored values is censored", func(t *testing.T) {
		var c [][]Value
		for i := range 20 {
			c = append(c, []Value{{X: 100, Censored: i >= 12}})
		}
		iv, err := ClusterQuantileInterval(c, 0.5, 0.95, 1)
		if err != nil || iv.Lo.Censored || !iv.Hi.Censored {
			t.Errorf("got %+v, %v", iv, err)
		}
	})
	t.Run("coverage", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		const trials = 200
		held := 0
		for i := range trials {
			var c [][]Value
			for range 40 {
				centre := rnd.NormFloat64()
				c = append(c, Exact(centre+0.1*rnd.NormFloat64(), centre+0.1*rnd.NormFloat64(), centre+0.1*rnd.NormFloat64()))
			}
			iv, err := ClusterQuantileInterval(c, 0.5, 0.95, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			if iv.Lo.X <= 0 && 0 <= iv.Hi.X {
				held++
			}
		}
		if held < trials*88/100 {
			t.Errorf("the true median lay in %d of %d nominal 95 %% intervals", held, trials)
		}
	})
	if _, err := ClusterQuantileInterval(nil, 0.5, 0.95, 1); err == nil {
		t.Error("no values are an error")
	}
}
