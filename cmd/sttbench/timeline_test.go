package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
	"sttbench/streamer"
)

func TestTimeline(t *testing.T) {
	const ms = time.Millisecond
	said := func(at time.Duration, d record.Decoded) streamer.Observation {
		d.Mode, d.Join = record.Replace, record.JoinSpace
		return streamer.Observation{Event: &record.Event{User: at, Decoded: []record.Decoded{d}}}
	}
	happened := []streamer.Observation{
		{Started: &record.Connect{Address: "127.0.0.1:1"}},
		said(700*ms, record.Decoded{Kind: record.Partial, Text: "ten"}),
		said(900*ms, record.Decoded{Kind: record.Partial, Text: "ten \x1b[2Jof 漢字漢字漢字漢字 clubs"}),
		{Mark: &record.Mark{Forced: true, F0: 1260 * ms, T0: 1261 * ms}},
		said(1361*ms, record.Decoded{Kind: record.Final, Text: "ten of clubs", Closes: true}),
		said(1400*ms, record.Decoded{Kind: record.Warning, Text: "slow down\r"}),
	}
	for _, tt := range []struct {
		name   string
		screen screen
		want   string
	}{
		{"redraw", screen{redraw: true, width: func() int { return 48 }}, "" +
			"      0.000 s  start        audio flows to 127.0.0.1:1\n" +
			"\r\x1b[K      0.700 s  partial      ten" +
			"\r\x1b[K      0.900 s  partial      …漢字漢字漢字 clubs" +
			"\r\x1b[K      1.000 s  SE           end of speech\n" +
			"      1.256 s  EOS          detected 256 ms later\n" +
			"      1.261 s  T0           endpoint forced: Finalize\n" +
			"    +100.0 ms  final        \"ten of clubs\"  (361.0 ms after SE)\n" +
			"    +139.0 ms  warning      slow down\n"},
		{"no control codes", screen{}, "" +
			"      0.000 s  start        audio flows to 127.0.0.1:1\n" +
			"      1.000 s  SE           end of speech\n" +
			"      1.256 s  EOS          detected 256 ms later\n" +
			"      1.261 s  T0           endpoint forced: Finalize\n" +
			"    +100.0 ms  final        \"ten of clubs\"  (361.0 ms after SE)\n" +
			"    +139.0 ms  warning      slow down\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			turns := []record.Turn{{Start: 100 * ms, SE: 1000 * ms, EOS: 1256 * ms}}
			line := newTimeline(&out, &tt.screen, turns, providers.Description{ForceMessage: "Finalize"})
			observe, stop := line.start()
			for _, o := range happened {
				observe(o)
			}
			stop()
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTimelineNeverBlocks checks that a terminal which takes nothing does not
// hold back the measurement.
func TestTimelineNeverBlocks(t *testing.T) {
	var stuck sync.Mutex
	stuck.Lock()
	var out strings.Builder
	w := writerFunc(func(p []byte) {
		stuck.Lock()
		defer stuck.Unlock()
		out.Write(p)
	})
	observe, stop := newTimeline(w, new(screen), nil, providers.Description{}).start()
	for range backlog + 10 {
		observe(streamer.Observation{Started: new(record.Connect)})
	}
	stuck.Unlock()
	stop()
	if got := out.String(); !strings.Contains(got, "events are not shown") {
		t.Errorf("nothing is said of the missing lines at the end of %q", got[max(0, len(got)-200):])
	}
}
