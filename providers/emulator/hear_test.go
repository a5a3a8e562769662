package emulator

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// tone is PCM at 16 kHz, a sine at −20 dBFS; silence is zeros.
func tone(d time.Duration) []byte {
	n := int(d * 16000 / time.Second)
	pcm := make([]byte, 0, 2*n)
	for i := range n {
		v := 3276 * math.Sin(2*math.Pi*440*float64(i)/16000)
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(v)))
	}
	return pcm
}

func silence(d time.Duration) []byte { return make([]byte, 2*int(d*16000/time.Second)) }

func listener(script *Script, lag time.Duration, cfg Hearing) *hearing {
	h := newHearing(script, lag, 0, rand.New(rand.NewPCG(1, 1)))
	h.configure(cfg)
	return h
}

func TestHypothesisTrailsBehindTheAudio(t *testing.T) {
	h := listener(Say("one two three"), 250*ms, Hearing{})
	for _, step := range []struct {
		audio time.Duration
		want  string
	}{
		{300 * ms, ""},
		{549 * ms, ""},
		{550 * ms, "one"},
		{900 * ms, "one two"},
		{1150 * ms, "one two three"},
	} {
		h.audio(silence(step.audio - h.received()))
		if got := h.hypothesis().Text(); got != step.want {
			t.Errorf("at %v: heard %q, want %q", step.audio, got, step.want)
		}
	}
	if end := h.hypothesis().End; end != 900*ms {
		t.Errorf("hypothesis ends at %v, want the lagging position 900ms", end)
	}
}

func TestForceLooksPastTheLag(t *testing.T) {
	h := listener(Say("one two three"), 500*ms, Hearing{})
	h.audio(silence(700 * ms))
	want := []Final{{
		Cause: CauseForce, ID: "a", Ack: true, End: 700 * ms,
		Words: []Word{{"one", 0, 300 * ms}, {"two", 300 * ms, 600 * ms}},
	}}
	if diff := cmp.Diff(want, h.force(CauseForce, "a")); diff != "" {
		t.Error(diff)
	}
	if h.audio(silence(300 * ms)); h.force(CauseForce, "b")[0].Text() != "three" {
		t.Error("the word after the force is not in the next answer")
	}
}

func TestForceComesInPartsPastTheWindowLimit(t *testing.T) {
	h := listener(Say("one two three four"), 2*time.Second, Hearing{Window: 650 * ms})
	h.audio(silence(1200 * ms))
	var got []string
	for _, f := range h.force(CauseForce, "") {
		got = append(got, f.Text())
	}
	if diff := cmp.Diff([]string{"one two", "three four"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEndpointing(t *testing.T) {
	spaced := &Script{Words: []Word{{"one", 100 * ms, 300 * ms}, {"two", 900 * ms, 1200 * ms}}}
	for _, test := range []struct {
		name  string
		audio [][]byte
		lag   time.Duration
		want  time.Duration // position of the first endpoint; -1 for none
	}{
		{"after N ms below the level", [][]byte{tone(400 * ms), silence(600 * ms)}, 0, 600 * ms},
		{"later by the lag", [][]byte{tone(400 * ms), silence(600 * ms)}, 100 * ms, 700 * ms},
		{"not while there is sound", [][]byte{tone(1000 * ms)}, 0, -1},
		{"not without a word", [][]byte{tone(50 * ms), silence(240 * ms)}, 0, -1},
		{"by the script's gaps when all is silent", [][]byte{silence(1000 * ms)}, 0, 500 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := listener(spaced, test.lag, Hearing{Endpointing: 200 * ms})
			got := time.Duration(-1)
			for _, block := range test.audio {
				for len(block) > 0 && got < 0 {
					n := min(320, len(block))
					h.audio(block[:n])
					block = block[n:]
					if f, ok := h.naturalFinal(false); ok {
						if got = h.received(); f.Cause != CauseEndpoint || f.Text() != "one" {
							t.Errorf("final %+v, want an endpoint with the first word", f)
						}
					}
				}
			}
			if got != test.want {
				t.Errorf("endpoint at %v, want %v", got, test.want)
			}
		})
	}
}

func TestWindowLimitSparesTheWordBeingSpoken(t *testing.T) {
	h := listener(Say("one two three"), 0, Hearing{Window: 700 * ms})
	h.audio(silence(720 * ms))
	f, ok := h.naturalFinal(false)
	if !ok || f.Cause != CauseWindow || f.Text() != "one two" || f.End != 600*ms {
		t.Errorf("final %+v, want the window to end before the third word, at 600ms", f)
	}
}

func TestPartialDue(t *testing.T) {
	count := func(cfg Hearing) (n int) {
		h := listener(Say("one two three"), 0, cfg)
		for range 150 {
			h.audio(silence(20 * ms))
			if h.partialDue() {
				n++
			}
		}
		return n
	}
	for _, test := range []struct {
		name string
		cfg  Hearing
		want int
	}{
		{"with each new word", Hearing{}, 3},
		{"each second of audio, empty or not", Hearing{PartialEvery: time.Second}, 3},
		{"never", Hearing{PartialEvery: NoPartials}, 0},
	} {
		if got := count(test.cfg); got != test.want {
			t.Errorf("%s: %d partials in 3 s, want %d", test.name, got, test.want)
		}
	}
}

// However the audio is cut, forced and endpointed: no word is lost or said
// twice, and windows follow each other without gap.
func TestFinalsTileTheStream(t *testing.T) {
	loud := tone(400 * ms)
	text := strings.TrimSpace(strings.Repeat("alpha beta gamma delta ", 10))
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		h := listener(Say(text), time.Duration(rnd.IntN(600))*ms, Hearing{
			Endpointing: time.Duration(rnd.IntN(3)) * 100 * ms,
			Window:      time.Duration(rnd.IntN(3)) * time.Second,
		})
		var words []string
		var end time.Duration
		take := func(f Final) {
			if f.Start != end || f.End < f.Start {
				t.Fatalf("seed %d: window [%v,%v] does not follow %v", seed, f.Start, f.End, end)
			}
			end = f.End
			for _, w := range f.Words {
				if w.End > f.End {
					t.Fatalf("seed %d: word %v beyond its window's end %v", seed, w, f.End)
				}
				words = append(words, w.Text)
			}
		}
		for h.received() < 13*time.Second {
			block := silence(time.Duration(rnd.IntN(400)) * ms)
			if rnd.IntN(2) == 0 {
				block = loud[:2*16*rnd.IntN(400)]
			}
			h.audio(block)
			if f, ok := h.naturalFinal(rnd.IntN(20) == 0); ok {
				take(f)
			}
			if rnd.IntN(10) == 0 {
				for _, f := range h.force(CauseForce, "") {
					take(f)
				}
			}
		}
		for _, f := range h.force(CauseFinish, "") {
			take(f)
		}
		if got := strings.Join(words, " "); got != text || end != h.received() {
			t.Fatalf("seed %d: said %q up to %v of %v", seed, got, end, h.received())
		}
	}
}

func TestWordErrors(t *testing.T) {
	say := func(rate float64, seed uint64) string {
		m := misheard{rate, rand.New(rand.NewPCG(seed, 0))}
		var words []Word
		for i := range 400 {
			words = m.hear(words, Word{"word", time.Duration(i) * WordPace, time.Duration(i+1) * WordPace})
		}
		return joinWords(words)
	}
	if got := say(0, 1); strings.Count(got, "word") != 400 {
		t.Error("rate 0 changes words")
	}
	if first, again := say(0.3, 1), say(0.3, 1); first != again {
		t.Error("the same seed hears differently")
	}
	if say(0.3, 1) == say(0.3, 2) {
		t.Error("another seed hears the same")
	}
	// 400 words at 0.3: about 40 of each kind of error.
	fields := strings.Fields(say(0.3, 1))
	wrong := 0
	for _, w := range fields {
		if w != "word" {
			wrong++
		}
	}
	if kept := len(fields) - wrong; wrong < 50 || wrong > 120 || kept < 280 || kept > 360 {
		t.Errorf("%d wrong words and %d right ones of 400 at rate 0.3", wrong, kept)
	}
}

func TestRepeatedScriptGoesOn(t *testing.T) {
	h := listener(DefaultScript(), 0, Hearing{})
	h.audio(silence(10 * time.Second))
	words := h.hypothesis().Words
	if len(words) != 33 || words[8].Text != "turn" || words[8].End != 2700*ms {
		t.Errorf("%d words in 10 s, the ninth %v", len(words), words[8])
	}
}

func TestPositionCountsAnyBlocksAndRates(t *testing.T) {
	var l level
	l.setRate(16000)
	for range 3 {
		l.add(make([]byte, 10667)) // odd: a sample is cut in two
	}
	want := time.Duration(32001/2) * time.Second / 16000
	if l.position() != want {
		t.Errorf("position %v, want %v", l.position(), want)
	}
	l.setRate(8000)
	l.add(make([]byte, 8000))
	if want += 500 * ms; l.position() != want {
		t.Errorf("position after a change of rate %v, want %v", l.position(), want)
	}
}
