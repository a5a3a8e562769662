package streamer

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkPacing compares ways to be on time every 20 ms, without any writing:
// a sleep of 20 ms after each chunk, as is common; a sleep to an absolute deadline;
// and the pacer. It reports lateness in microseconds; drift is the lateness of the
// last chunk of 5 s.
func BenchmarkPacing(b *testing.B) {
	const chunks = 250
	report := func(b *testing.B, late []time.Duration) {
		drift := late[len(late)-1]
		slices.Sort(late)
		us := func(d time.Duration) float64 { return float64(d) / 1e3 }
		b.ReportMetric(us(late[len(late)/2]), "p50-µs")
		b.ReportMetric(us(late[len(late)*99/100]), "p99-µs")
		b.ReportMetric(us(drift), "drift-µs")
		b.ReportMetric(0, "ns/op")
	}
	c := newClock()
	b.Run("relative-sleep", func(b *testing.B) {
		for range b.N {
			var late []time.Duration
			t0 := c.now()
			for k := range chunks {
				time.Sleep(defaultChunk)
				late = append(late, c.now()-t0-due(k, defaultChunk))
			}
			report(b, late)
		}
	})
	b.Run("absolute-sleep", func(b *testing.B) {
		for range b.N {
			var late []time.Duration
			t0 := c.now()
			for k := range chunks {
				time.Sleep(t0 + due(k, defaultChunk) - c.now())
				late = append(late, c.now()-t0-due(k, defaultChunk))
			}
			report(b, late)
		}
	})
	for _, sessions := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("pacer-%d", sessions), func(b *testing.B) {
			p := newPacer(c)
			if p == nil {
				b.Skip("this system has no pacer thread")
			}
			defer p.stop()
			for range b.N {
				late := make([][]time.Duration, sessions)
				done := make(chan struct{}, sessions)
				start := c.now() + 5*time.Millisecond
				for s := range sessions {
					t0 := start + phaseCycle*time.Duration(s)/time.Duration(sessions)
					t := &task{index: -1}
					t.at = t0 + defaultChunk
					t.run = func() {
						late[s] = append(late[s], c.now()-t.at)
						if len(late[s]) == chunks {
							done <- struct{}{}
							return
						}
						t.at = t0 + due(len(late[s]), defaultChunk)
						p.arm(t)
					}
					p.arm(t)
				}
				for range sessions {
					<-done
				}
				report(b, slices.Concat(late...))
			}
		})
	}
}
