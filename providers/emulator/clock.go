package emulator

import "time"

// clock gives the machine's monotonic clock at the price of Go's own, which runs
// on the same source: the two differ by a constant.
type clock struct {
	start  time.Time
	offset int64 // machine clock at start
}

func newClock() clock {
	// The tightest of a few bracketed readings, in case one was interrupted.
	best := clock{}
	least := time.Duration(1<<63 - 1)
	for range 16 {
		before := time.Now()
		mono := machineMono()
		if width := time.Since(before); width < least {
			least, best = width, clock{start: before, offset: mono - int64(width/2)}
		}
	}
	return best
}

// now is the machine's monotonic clock in nanoseconds.
func (c clock) now() int64 { return c.at(time.Now()) }

// at is the machine's monotonic clock at t.
func (c clock) at(t time.Time) int64 { return c.offset + int64(t.Sub(c.start)) }
