package emulator

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseDelay(t *testing.T) {
	for _, test := range []struct {
		in   string
		want Delay
	}{
		{"0s", Delay{}},
		{"120ms", Delay{Base: 120 * ms}},
		{"120ms~30ms", Delay{Base: 120 * ms, Spread: "uniform", Width: 30 * ms}},
		{"120ms~normal:200ms", Delay{Base: 120 * ms, Spread: "normal", Width: 200 * ms}},
		{"120ms~pareto:1.5", Delay{Base: 120 * ms, Spread: "pareto", Shape: 1.5}},
	} {
		got, err := ParseDelay(test.in)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.in, diff)
		}
		if got.String() != test.in {
			t.Errorf("%s comes back as %s", test.in, got)
		}
	}
	for _, bad := range []string{"", "12", "-1ms", "2m", "1ms~", "1ms~2ms", "1ms~pareto:0", "1ms~pareto:NaN", "1ms~pareto:Inf", "1ms~cauchy:1ms"} {
		if d, err := ParseDelay(bad); err == nil {
			t.Errorf("%q is read as %v", bad, d)
		} else if !strings.Contains(err.Error(), "D~pareto:A") {
			t.Errorf("%q: the error names no way out: %v", bad, err)
		}
	}
}

func TestDelayDraw(t *testing.T) {
	for _, test := range []struct {
		in                    string
		least, most           time.Duration
		medianLeast, medianUp time.Duration
	}{
		{"100ms", 100 * ms, 100 * ms, 100 * ms, 100 * ms},
		{"100ms~40ms", 60 * ms, 140 * ms, 95 * ms, 105 * ms},
		{"100ms~normal:80ms", 0, 600 * ms, 92 * ms, 108 * ms},
		// The median of a Pareto distribution is base·2^(1/A).
		{"100ms~pareto:1", 100 * ms, maxDelay, 180 * ms, 220 * ms},
	} {
		d, err := ParseDelay(test.in)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(7, 7))
		below := 0
		for range 4000 {
			v := d.Draw(rnd)
			if v < test.least || v > test.most {
				t.Fatalf("%s draws %v", test.in, v)
			}
			if v < test.medianLeast {
				below++
			}
			if v <= test.medianUp {
				below++
			}
		}
		// Each draw counts once or twice: the median lies between the bounds.
		if d.Spread != "" && (below < 3900 || below > 4600) {
			t.Errorf("%s: median out of [%v, %v] (%d)", test.in, test.medianLeast, test.medianUp, below)
		}
	}
}

func TestParseFault(t *testing.T) {
	for _, good := range []string{
		"no-partials", "no-ack", "empty-ack", "split-final=200ms", "final-before-force", "abrupt-close",
		"abrupt-close=1.5s", "refuse=429", "close=1011", "silent", "garbage", "garbage=1", "duplicate-final",
		"out-of-order-partials", "unsolicited-final", "unsolicited-final=before", "unsolicited-final=both", "revised-final",
		"binary-garbage", "unknown-type=7", "huge-message", "huge-message=1024", "half-open", "half-open=1s", "slow-read=100",
		"never-read", "close=4008:2s", "reset", "reset=1s", "refuse=429:7s", "hang-handshake", "plain-tls",
	} {
		if _, err := ParseFault(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"nonsense":        "known are no-partials, out-of-order-partials, no-ack",
		"no-ack=1":        "takes no argument",
		"split-final":     "split-final=DELAY",
		"split-final=0s":  "above 0",
		"refuse":          "refuse=STATUS",
		"refuse=200":      "from 400 to 599",
		"close=1006":      "cannot be sent",
		"close=99999":     "from 1000 to 4999",
		"garbage=0":       "from 1",
		"abrupt-close=-1": "above 0",

		"unsolicited-final=x": "before, after, both",
		"unknown-type=0":      "from 1",
		"huge-message=2000":   "from 1 to 1024",
		"half-open=0s":        "above 0",
		"slow-read=99":        "from 100",
		"never-read=1":        "takes no argument",
		"close=1011:0s":       "above 0",
		"close=1006:1s":       "cannot be sent",
		"refuse=429:":         "above 0",
		"refuse=429:1500ms":   "whole seconds",
		"refuse=700:1s":       "from 400 to 599",
	} {
		if _, err := ParseFault(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", bad, err, want)
		}
	}
	for _, d := range FaultDocs() {
		if d.Name == "" || d.Doc == "" {
			t.Errorf("fault %+v is not documented", d)
		}
	}
}

func TestReadScript(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     *Script
	}{
		{"plain text", "one\n two\n", Say("one two")},
		{"JSON text", `{"text":"one two","repeat":true}`, &Script{Words: Say("one two").Words, Repeat: true}},
		{"words with times", `{"words":[{"w":"one","start_s":0.25,"end_s":0.5},{"w":"two","end_s":1}]}`,
			&Script{Words: []Word{{"one", 250 * ms, 500 * ms}, {"two", 500 * ms, 1000 * ms}}}},
	} {
		got, err := ReadScript(strings.NewReader(test.in))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	for in, want := range map[string]string{
		"":                                "empty",
		"\xff":                            "UTF-8",
		`{"words":[]}`:                    "either",
		`{"text":"a","words":[{"w":1}]}`:  "script",
		`{"txt":"a"}`:                     "unknown field",
		`{"text":" "}`:                    "no words",
		`{"text":"a"}{"text":"b"}`:        "more than one",
		`{"words":[{"w":"a","end_s":0}]}`: "word 1",
		`{"words":[{"w":"a","end_s":1},{"w":"b","end_s":0.5}]}`:    "word 2",
		`{"words":[{"w":"","end_s":1}]}`:                           "word 1 is empty",
		`{"words":[{"w":"a","end_s":1e300},{"w":"b","end_s":-1}]}`: "word 2",
	} {
		if s, err := ReadScript(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: script %v, error %v, want one with %q", in, s, err, want)
		}
	}
}

func FuzzReadScript(f *testing.F) {
	f.Add("one two")
	f.Add(`{"text":"one two","repeat":true}`)
	f.Add(`{"words":[{"w":"one","start_s":0.25,"end_s":0.5},{"w":"two","end_s":1}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ReadScript(strings.NewReader(in))
		if err != nil {
			return
		}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		h := newHearing(s, 0, 0, rand.New(rand.NewPCG(0, 0)))
		h.audio(silence(2 * time.Second))
		h.force(CauseForce, "")
	})
}

func TestLoadScript(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one two", "bad.json": "{", "bad.yaml": "items: 7"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var set Settings
	if err := set.LoadScript(filepath.Join(dir, "a.txt")); err != nil || joinWords(set.Script.Words) != "one two" {
		t.Errorf("script %+v, error %v", set.Script, err)
	}
	for _, name := range []string{"bad.json", "bad.yaml", "none.txt"} {
		if err := set.LoadScript(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
	}
}
