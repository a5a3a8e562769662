package streamer

import "time"

// clock reads the monotonic clock as nanoseconds since its base, an instant
// before anything was measured.
type clock struct {
	base time.Time
	mono int64 // the machine's monotonic clock at base, ns
}

func newClock() clock {
	before := time.Now()
	mono := machineMono()
	// The middle of a bracket around the second reading halves its error.
	return clock{base: before, mono: mono - int64(time.Since(before)/2)}
}

func (c clock) now() time.Duration { return time.Since(c.base) }

// wall gives the wall time of a stamp of this clock.
func (c clock) wall(at time.Duration) time.Time { return c.base.Add(at).Round(0) }

// wallOffset is what must be taken from a wall clock reading in nanoseconds to get
// a stamp of this clock. It is bracketed: of a few readings the one that was least
// interrupted counts, and its error is at most half its bracket. false means that
// even the best was not good.
func (c clock) wallOffset() (offset int64, ok bool) {
	const tries, good, bearable = 5, time.Microsecond, 20 * time.Microsecond
	best := time.Duration(1<<63 - 1)
	for range tries {
		before := c.now()
		wall := time.Now()
		after := c.now()
		if after-before < best {
			best = after - before
			offset = wall.UnixNano() - int64(before+after)/2
		}
		if best <= good {
			break
		}
	}
	return offset, best <= bearable
}
