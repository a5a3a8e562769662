package vad

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// onlyTimes compares what the rule decides, without the uncertainty.
var onlyTimes = cmpopts.IgnoreFields(Turn{}, "SELow", "SEHigh", "SERules")

// windows writes probabilities as one character per window of 32 ms: # speech,
// . silence, - between the thresholds, ^ speech under lower thresholds only,
// spaces for the eye.
func windows(s string) []float32 {
	var probs []float32
	for _, c := range strings.ReplaceAll(s, " ", "") {
		probs = append(probs, map[rune]float32{'#': 0.9, '.': 0.1, '-': 0.4, '^': 0.49, '_': 0.3}[c])
	}
	return probs
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func turn(start, se, eos int) Turn { return Turn{Start: ms(start), SE: ms(se), EOS: ms(eos)} }

func TestRule(t *testing.T) {
	const speech8, silence8 = "########", "........"
	defaults := DefaultParams()
	with := func(change func(*Params)) Params { p := defaults; change(&p); return p }
	tests := []struct {
		name         string
		probs        string
		params       Params
		turns, short []Turn
		open         bool
	}{
		{name: "nothing", params: defaults},
		{name: "silence", probs: silence8 + silence8, params: defaults},
		{name: "one turn", probs: ".." + speech8 + silence8, params: defaults, turns: []Turn{turn(64, 320, 576)}},
		{name: "eighth silent window ends it, not the seventh", probs: speech8 + ".......", params: defaults, open: true},
		{name: "window between the thresholds starts nothing", probs: "---" + speech8 + silence8, params: defaults, turns: []Turn{turn(96, 352, 608)}},
		{name: "window between the thresholds does not begin the silence", probs: speech8 + "--" + silence8, params: defaults, turns: []Turn{turn(0, 320, 576)}},
		{name: "window between the thresholds does not cancel the silence", probs: speech8 + "..-....." + silence8, params: defaults, turns: []Turn{turn(0, 256, 512)}},
		{name: "turn does not end between the thresholds", probs: speech8 + ".......-." + silence8, params: defaults, turns: []Turn{turn(0, 256, 544)}},
		{name: "speech cancels the silence", probs: speech8 + ".......#" + silence8, params: defaults, turns: []Turn{turn(0, 512, 768)}},
		{name: "two turns", probs: speech8 + silence8 + speech8 + silence8, params: defaults, turns: []Turn{turn(0, 256, 512), turn(512, 768, 1024)}},
		{name: "seven windows of speech are 224 ms: too short", probs: "#######" + silence8, params: defaults, short: []Turn{turn(0, 224, 480)}},
		{name: "short turn between two", probs: speech8 + silence8 + "#" + silence8 + speech8 + silence8, params: defaults,
			turns: []Turn{turn(0, 256, 512), turn(800, 1056, 1312)}, short: []Turn{turn(512, 544, 800)}},
		{name: "min speech must be exceeded", probs: speech8 + silence8, params: with(func(p *Params) { p.MinSpeech = ms(256) }), short: []Turn{turn(0, 256, 512)}},
		{name: "min speech exceeded by a hair", probs: speech8 + silence8, params: with(func(p *Params) { p.MinSpeech = ms(256) - 1 }), turns: []Turn{turn(0, 256, 512)}},
		{name: "no min speech", probs: "#" + silence8, params: with(func(p *Params) { p.MinSpeech = 0 }), turns: []Turn{turn(0, 32, 288)}},
		{name: "no min silence", probs: speech8 + "." + speech8 + ".", params: with(func(p *Params) { p.MinSilence = 0 }), turns: []Turn{turn(0, 256, 288), turn(288, 544, 576)}},
		{name: "min silence on the grid", probs: speech8 + "..." + speech8, params: with(func(p *Params) { p.MinSilence = ms(64) }), turns: []Turn{turn(0, 256, 352)}, open: true},
		{name: "higher threshold", probs: "^^##" + speech8 + "-" + silence8, params: with(func(p *Params) { p.Threshold = 0.6 }), turns: []Turn{turn(64, 384, 640)}},
		{name: "open at the end", probs: silence8 + speech8, params: defaults, open: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			turns, short, open := split(windows(test.probs), test.params)
			if diff := cmp.Diff(test.turns, turns, onlyTimes); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.short, short, onlyTimes); diff != "" {
				t.Errorf("short turns (-want +got):\n%s", diff)
			}
			if open != test.open {
				t.Errorf("open = %v, want %v", open, test.open)
			}
		})
	}
}

// The probability equal to the threshold is speech; the one equal to the lower
// threshold is not silence.
func TestRuleEqualities(t *testing.T) {
	p := Params{Threshold: 0.65, MinSpeech: 0, MinSilence: 0} // lower is 0.5, exactly a float32
	p.Threshold = 0.5 + lowerBy
	if got := Turns([]float32{0.9, 0.5, 0.5}, p); got != nil {
		t.Errorf("0.5 ended a turn whose lower threshold is 0.5: %v", got)
	}
	p.Threshold = 0.5
	want := []Turn{turn(0, 32, 64)}
	if diff := cmp.Diff(want, Turns([]float32{0.5, 0}, p), onlyTimes); diff != "" {
		t.Errorf("0.5 did not start a turn (-want +got):\n%s", diff)
	}
}

func TestSpread(t *testing.T) {
	spread := func(start, se, eos, low, high, rules int) Turn {
		return Turn{Start: ms(start), SE: ms(se), EOS: ms(eos), SELow: ms(low), SEHigh: ms(high), SERules: rules}
	}
	const silence16 = "........" + "........"
	tests := []struct {
		name  string
		probs string
		want  []Turn
	}{
		{"abrupt end is certain", "########" + silence16, []Turn{spread(0, 256, 512, 256, 256, 7)}},
		// 0.4 is silence above threshold 0.55, 0.3 is silence above 0.45.
		{"slow decay", "########" + "--" + "__" + silence16, []Turn{spread(0, 320, 576, 256, 384, 7)}},
		// From 0.35 to 0.45 the blip of 0.49 cancels the silence and ends 128 ms later.
		{"weak last word", "########" + "..." + "^" + silence16, []Turn{spread(0, 256, 512, 256, 384, 7)}},
		// Same blip, but then comes a turn with which it merges under 0.35 to 0.45.
		{"merge is left out", "########" + "......." + "^" + "......." + "########" + silence16,
			[]Turn{spread(0, 256, 544, 256, 256, 4), spread(736, 992, 1248, 992, 992, 7)}},
		// 0.52 is no speech from 0.55 on.
		{"vanishing is left out", "55555555" + silence16, []Turn{spread(0, 256, 512, 256, 256, 4)}},
		// The windows of 0.3 are no silence under 0.35 to 0.45, where the
		// probabilities end before min silence has passed.
		{"open match counts with its silence", "########" + "________" + "..", []Turn{spread(0, 256, 512, 256, 512, 7)}},
		{"open match without silence is left out", "########" + "________", []Turn{spread(0, 256, 512, 256, 256, 4)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			probs := windows(test.probs)
			for i, c := range strings.ReplaceAll(test.probs, " ", "") {
				if c == '5' {
					probs[i] = 0.52
				}
			}
			if diff := cmp.Diff(test.want, Turns(probs, DefaultParams())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Moved thresholds outside the allowed range are left out.
func TestSpreadAtTheLimits(t *testing.T) {
	for threshold, want := range map[float64]int{0.2: 4, 0.35: 7, 0.5: 7, 0.95: 4} {
		p := DefaultParams()
		p.Threshold = threshold
		probs := []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		got := Turns(probs, p)
		if len(got) != 1 || got[0].SERules != want {
			t.Errorf("threshold %v: %v, want one turn with %d rules", threshold, got, want)
		}
	}
}

// Whatever the probabilities, turns are in order, apart, on the grid, and as
// long as the parameters say; a prefix changes nothing before its end.
func FuzzRule(f *testing.F) {
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00"), uint8(50), uint16(200), uint16(250))
	f.Add([]byte("\xff\x60\x00\x60\xff\x00\x00"), uint8(20), uint16(0), uint16(0))
	f.Add([]byte{}, uint8(95), uint16(10000), uint16(10000))
	f.Fuzz(func(t *testing.T, raw []byte, threshold uint8, silence, speech uint16) {
		p := Params{Threshold: float64(threshold) / 100, MinSilence: ms(int(silence)), MinSpeech: ms(int(speech))}
		if p.Validate() != nil {
			t.Skip("not valid")
		}
		probs := make([]float32, len(raw))
		for i, b := range raw {
			probs[i] = float32(b) / 255
		}
		turns, short, _ := split(probs, p)
		var last time.Duration
		for _, turn := range turns {
			switch {
			case turn.Start < last || turn.SE <= turn.Start || turn.EOS > position(len(probs)):
				t.Fatalf("turn %+v is out of order (last EOS %v)", turn, last)
			case turn.Hangover() < p.Hangover():
				t.Fatalf("turn %+v has a hangover under %v", turn, p.Hangover())
			case turn.Start%windowDuration != 0 || turn.SE%windowDuration != 0 || turn.EOS%windowDuration != 0:
				t.Fatalf("turn %+v is off the grid", turn)
			case turn.SE-turn.Start <= p.MinSpeech:
				t.Fatalf("turn %+v is too short", turn)
			case turn.SELow > turn.SE || turn.SEHigh < turn.SE || turn.SERules < 1 || turn.SERules > 7:
				t.Fatalf("turn %+v has no proper spread", turn)
			}
			last = turn.EOS
		}
		for _, turn := range short {
			if turn.SE-turn.Start > p.MinSpeech {
				t.Fatalf("dropped turn %+v is long enough", turn)
			}
		}
		half := len(probs) / 2
		var want []Turn
		for _, turn := range turns {
			if turn.EOS <= position(half) {
				want = append(want, turn)
			}
		}
		if diff := cmp.Diff(want, Turns(probs[:half], p), onlyTimes); diff != "" {
			t.Fatalf("turns of the prefix (-want +got):\n%s", diff)
		}
	})
}

func TestParamsValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Params)
		want   string // "" is valid
	}{
		{"default", func(*Params) {}, ""},
		{"lowest", func(p *Params) { *p = Params{Threshold: 0.2} }, ""},
		{"highest", func(p *Params) { *p = Params{0.95, 10 * time.Second, 10 * time.Second} }, ""},
		{"zero", func(p *Params) { *p = Params{} }, "vad threshold 0 is outside 0.2 to 0.95"},
		{"threshold of 1", func(p *Params) { p.Threshold = 1 }, "vad threshold 1 is outside 0.2 to 0.95"},
		{"threshold NaN", func(p *Params) { p.Threshold = math.NaN() }, "vad threshold NaN is outside 0.2 to 0.95"},
		{"negative silence", func(p *Params) { p.MinSilence = -1 }, "vad minimum silence -1ns is outside 0s to 10s"},
		{"long silence", func(p *Params) { p.MinSilence = time.Minute }, "vad minimum silence 1m0s is outside 0s to 10s"},
		{"negative speech", func(p *Params) { p.MinSpeech = -ms(1) }, "vad minimum speech -1ms is outside 0s to 10s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := DefaultParams()
			test.change(&p)
			got := ""
			if err := p.Validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHangover(t *testing.T) {
	for silence, want := range map[int]int{0: 32, 1: 64, 32: 64, 33: 96, 192: 224, 200: 256, 500: 544} {
		p := DefaultParams()
		p.MinSilence, p.MinSpeech = ms(silence), 0
		if got := p.Hangover(); got != ms(want) {
			t.Errorf("%d ms: hangover %v, want %d ms", silence, got, want)
		}
		turns := Turns(windows("#"+strings.Repeat(".", 40)), p)
		if len(turns) != 1 || turns[0].Hangover() != ms(want) {
			t.Errorf("%d ms: turns %v, want one with a hangover of %d ms", silence, turns, want)
		}
	}
}
