package emulator

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sttbench/corpus"
)

// demo is made by scripts/demo-corpus.sh and not part of the repository.
const demo = "../../testdata/demo/manifest.yaml"

// hearAll streams PCM to a recogniser that knows the manifest; it returns what a
// force at the end makes final, and when the item was recognised (-1: not before
// the force).
func hearAll(m *Manifest, pcm []byte, rate int) (text string, at time.Duration) {
	h := newHearing(nil, 0, 0, rand.New(rand.NewPCG(1, 1)))
	h.match = m.matcher(nil)
	h.configure(Hearing{SampleRate: rate})
	at = -1
	for block := rate / 50 * 2; len(pcm) > 0; {
		n := min(block, len(pcm))
		h.audio(pcm[:n])
		pcm = pcm[n:]
		if h.script != nil && at < 0 {
			at = h.received()
		}
	}
	parts := h.force(CauseForce, "")
	return parts[len(parts)-1].Text(), at
}

func loadDemo(t *testing.T) *Manifest {
	t.Helper()
	if _, err := os.Stat(demo); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s: run scripts/demo-corpus.sh to make it", demo)
	}
	m, err := LoadManifest(demo)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The demo's items are told apart at every rate, with noise and another level,
// and their references come out whole, spread over the speech.
func TestManifestRecognisesItems(t *testing.T) {
	m := loadDemo(t)
	set, err := corpus.Load(demo)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, item := range set.Items {
		audio, err := corpus.Decode(item.Audio)
		if err != nil {
			t.Fatal(err)
		}
		noisy := corpus.Audio{Rate: audio.Rate}
		for _, s := range audio.Samples {
			noisy.Samples = append(noisy.Samples, 0.9*s+0.0005*float32(rnd.NormFloat64()))
		}
		want := strings.Join(strings.Fields(item.Reference), " ")
		for name, a := range map[string]corpus.Audio{
			"8 kHz": audio.Resample(8000), "16 kHz": audio.Resample(16000), "24 kHz": audio.Resample(24000), "noisy": noisy,
		} {
			got, at := hearAll(m, a.PCM16LE(), a.Rate)
			if got != want {
				t.Errorf("%s, %s: heard %q, want %q", item.ID, name, got, want)
			}
			t.Logf("%s, %s: recognised after %v of %v", item.ID, name, at, a.Duration().Round(ms))
		}
	}
}

func TestManifestHearsNothingInOtherAudio(t *testing.T) {
	m := loadDemo(t)
	if got, at := hearAll(m, tone(3*time.Second), 16000); got != "" || at >= 0 {
		t.Errorf("a tone is heard as %q after %v", got, at)
	}
	if got, _ := hearAll(m, nil, 16000); got != "" {
		t.Errorf("no audio is heard as %q", got)
	}
}

// bursts is audio with the given stretches of sound, in frames of 20 ms at 16 kHz.
func bursts(frames ...bool) corpus.Audio {
	a := corpus.Audio{Rate: 16000}
	for i, on := range frames {
		for j := range 320 {
			v := 0.0
			if on {
				v = 0.1 * math.Sin(2*math.Pi*300*float64(320*i+j)/16000)
			}
			a.Samples = append(a.Samples, float32(v))
		}
	}
	return a
}

func TestSpreadFollowsTheSound(t *testing.T) {
	frames := make([]bool, 50)
	for i := 5; i < 15; i++ { // 100 to 300 ms
		frames[i] = true
	}
	for i := 30; i < 40; i++ { // 600 to 800 ms
		frames[i] = true
	}
	item := learn("x", "abc abc", bursts(frames...))
	words := item.script.Words
	if len(words) != 2 {
		t.Fatal(words)
	}
	// The filter rings on for a frame, so borders are good to two frames.
	want := []time.Duration{100 * ms, 300 * ms, 600 * ms, 800 * ms}
	for i, got := range []time.Duration{words[0].Start, words[0].End, words[1].Start, words[1].End} {
		if off := (got - want[i]).Abs(); off > 40*ms {
			t.Errorf("border %d at %v, want about %v", i, got, want[i])
		}
	}
	if s := spread([]string{"a"}, make([]uint8, 10)); len(s.Words) != 0 {
		t.Error("words in silence")
	}
}

// Items of random bursts are told apart at another sample rate, and finals
// before that are held back.
func TestManifestTellsItemsApart(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	m := new(Manifest)
	var audio []corpus.Audio
	for i := range 8 {
		frames := make([]bool, 20, 100) // the same silence at first
		for len(frames) < 100 {
			frames = append(frames, slices.Repeat([]bool{rnd.IntN(2) == 0}, 1+rnd.IntN(8))...)
		}
		a := bursts(frames...)
		audio = append(audio, a)
		m.items = append(m.items, learn("x", fmt.Sprint("item ", i), a))
	}
	for i, a := range audio {
		got, at := hearAll(m, a.Resample(8000).PCM16LE(), 8000)
		if want := fmt.Sprint("item ", i); got != want || at < 400*ms || at > 1500*ms {
			t.Errorf("heard %q after %v, want %q during the bursts", got, at, want)
		}
	}
	h := newHearing(nil, 0, 0, rnd)
	h.match = m.matcher(nil)
	h.configure(Hearing{Window: 100 * ms})
	h.audio(silence(200 * ms))
	if f, ok := h.naturalFinal(false); ok {
		t.Errorf("final %+v before the item is known", f)
	}
}

func TestTwinsAreDecidedAtTheForce(t *testing.T) {
	frames := make([]bool, 100)
	for i := range frames {
		frames[i] = i%7 < 4
	}
	a := bursts(frames...)
	m := &Manifest{items: []knownItem{learn("a", "first", a), learn("b", "second", a)}}
	if got, at := hearAll(m, a.PCM16LE(), a.Rate); got != "first" || at >= 0 {
		t.Errorf("heard %q after %v, want the first twin, at the force only", got, at)
	}
}

func TestLoadManifestErrors(t *testing.T) {
	if _, err := LoadManifest("testdata/none.yaml"); err == nil {
		t.Error("a missing manifest is no error")
	}
}
