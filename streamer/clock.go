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
