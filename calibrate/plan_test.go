package calibrate

import (
	"bytes"
	"testing"
	"time"

	"sttbench/providers/emulator"
	"sttbench/scoring/stat"
)

func TestPlanCheck(t *testing.T) {
	tests := map[string]struct {
		plan Plan
		want string
	}{
		"least":      {Plan{1, time.Second}, ""},
		"most":       {Plan{1000, time.Minute}, ""},
		"no streams": {Plan{0, time.Second}, "0 streams: want 1 to 1000"},
		"too many":   {Plan{1001, time.Second}, "1001 streams: want 1 to 1000"},
		"too short":  {Plan{1, 999 * ms}, "a duration of 999ms: want 1s to 16h40m0s"},
		"too long":   {Plan{1, 17 * time.Hour}, "a duration of 17h0m0s: want 1s to 16h40m0s"},
		"too much":   {Plan{1000, 61 * time.Second}, "1000 streams of 1m1s: want at most 1000 minutes of audio in all"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tt.plan.Check(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The plan promises answers enough for a p99 in 20 s, a load that does not grow
// with the streams, answers in the order of their forces, and a new word at every
// force, which is sent with the chunk that reaches it.
func TestPlanForces(t *testing.T) {
	delay, err := emulator.ParseDelay(FinalDelay)
	if err != nil {
		t.Fatal(err)
	}
	const chunk = 20 * ms
	sent := func(at time.Duration) time.Duration { return (at + chunk - 1) / chunk * chunk }
	for _, p := range []Plan{{1, 20 * time.Second}, {3, 20 * time.Second}, {7, 5 * time.Second}, {50, 20 * time.Second}, {200, 20 * time.Second}, {1000, 5 * time.Second}, {1, 20 * time.Minute}} {
		script, err := emulator.ReadScript(bytes.NewReader(p.Script()))
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		word := script.Words[0].End
		total := 0
		for i := range p.Streams {
			turns := p.turns(i)
			last := sent(turns[0].EOS)
			if last > 3*time.Second+chunk {
				t.Fatalf("%v: first force at %v, the emulator's window ends before", p, last)
			}
			for _, turn := range turns[1:] {
				at := sent(turn.EOS)
				if at-last < 2*delay.Width {
					t.Fatalf("%v: forces at %v and %v, answers may overtake", p, last, at)
				}
				if at/word == last/word {
					t.Fatalf("%v: no word of %v ends between %v and %v", p, word, last, at)
				}
				if at > p.audio()+chunk {
					t.Fatalf("%v: force at %v of %v", p, at, p.audio())
				}
				last = at
			}
			total += len(turns)
		}
		perSecond := float64(total) / p.audio().Seconds()
		if counted := perSecond * p.Duration.Seconds(); p.Duration >= 20*time.Second && counted < float64(stat.MinN(0.99, 0.95)) {
			t.Errorf("%v: about %.0f answers", p, counted)
		}
		if perSecond > 350 {
			t.Errorf("%v: %.0f answers a second", p, perSecond)
		}
	}
}
