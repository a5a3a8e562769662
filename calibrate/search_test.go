package calibrate

import (
	"errors"
	"testing"
)

func TestSearch(t *testing.T) {
	tests := map[string]struct{ start, limit, truth, least, most, steps int }{
		"exact where small":    {1, 1000, 13, 13, 13, 8},
		"near where large":     {1, 1000, 700, 660, 700, 16},
		"none":                 {1, 1000, 0, 0, 0, 1},
		"one":                  {1, 1000, 1, 1, 1, 2},
		"all":                  {1, 1000, 5000, 1000, 1000, 11},
		"the limit is a power": {1, 64, 64, 64, 64, 7},
		"start too high":       {200, 1000, 50, 48, 50, 9},
		"start far too high":   {1000, 1000, 0, 0, 0, 11},
		"start above limit":    {500, 100, 5000, 100, 100, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			steps := 0
			got, err := Search(tt.start, tt.limit, func(n int) (bool, error) {
				if n < 1 || n > tt.limit {
					t.Errorf("asked for %d", n)
				}
				steps++
				return n <= tt.truth, nil
			})
			if err != nil || got < tt.least || got > tt.most || steps > tt.steps {
				t.Errorf("got %d in %d steps, %v; want %d to %d in at most %d", got, steps, err, tt.least, tt.most, tt.steps)
			}
		})
	}
	broken := errors.New("broken")
	if _, err := Search(1, 10, func(int) (bool, error) { return false, broken }); err != broken {
		t.Errorf("got error %v", err)
	}
}
