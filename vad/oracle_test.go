//go:build silerovadgo

// These tests hold the package against github.com/streamer45/silero-vad-go, an
// independent implementation that runs the same model through its own C code. It
// links ONNX Runtime at build time, hence the build tag.
//
// That library deviates from Silero's own VADIterator. Each deviation is pinned
// here, so that a new version of the library that repairs one is noticed:
//
//   - the first window gets no context, VADIterator's gets zeros,
//   - a speech end is the end of the window that VADIterator takes the start of,
//   - the last window of a call is not looked at if the call ends with it,
//   - a turn that ends in a later call than it started in aborts that call.
package vad

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	silero "github.com/streamer45/silero-vad-go/speech"
	ort "github.com/yalue/onnxruntime_go"
)

// oracleParams differ from the defaults by MinSpeech, which the library lacks.
func oracleParams() Params {
	p := DefaultParams()
	p.MinSpeech = 0
	return p
}

// The library's turns are exactly those of our rule once the first window is
// evaluated without context, in all recordings and variants.
func TestOracleEqualsRuleWithoutFirstContext(t *testing.T) {
	m := openModel(t)
	turns := 0
	all := variants(t)
	for _, r := range all {
		probs := probsWithoutFirstContext(t, m, padded(r.samples))
		want := oracleTurns(t, r.samples)
		if diff := cmp.Diff(want, Turns(probs, oracleParams()), onlyTimes); diff != "" {
			t.Errorf("%s (-oracle +ours without first context):\n%s", r.name, diff)
		}
		turns += len(want)
	}
	t.Logf("%d turns in %d files are equal", turns, len(all))
	if turns < len(all) {
		t.Errorf("only %d turns in %d files", turns, len(all))
	}
}

// The missing context is no trifle: the model remembers it for seconds, and it
// moves ends of turns.
func TestOracleFirstWindowHasNoContext(t *testing.T) {
	m := openModel(t)
	var different []string
	all := variants(t)
	for _, r := range all {
		if !cmp.Equal(oracleTurns(t, r.samples), analyzeAs(t, m, r.samples), onlyTimes) {
			different = append(different, r.name)
		}
	}
	if len(different) == 0 {
		t.Error("the library agrees with the package everywhere: it seems to pass a first context now")
	}
	t.Logf("turns differ in %d of %d files: %s", len(different), len(all), strings.Join(different, ", "))
}

func TestOracleSkipsLastWindow(t *testing.T) {
	samples := padded(speech(t)[0].samples)
	first := oracleTurns(t, samples)[0]
	untilEOS := toFloat(samples[:first.EOS/(time.Second/SampleRate)])

	segments, err := newOracle(t).Detect(untilEOS)
	if err != nil || len(segments) != 1 || segments[0].SpeechEndAt != 0 {
		t.Errorf("audio until EOS: %v, %v; want an open turn", segments, err)
	}
	segments, err = newOracle(t).Detect(append(untilEOS, 0))
	if err != nil || len(segments) != 1 || seconds(segments[0].SpeechEndAt) != first.SE+windowDuration {
		t.Errorf("one sample more: %v, %v; want a turn until %v", segments, err, first.SE+windowDuration)
	}

	d := newOracle(t)
	for window := toFloat(samples); len(window) >= Window; window = window[Window:] {
		if segments, err := d.Detect(window[:Window]); err != nil || segments != nil {
			t.Fatalf("single window: %v, %v; want nothing, ever", segments, err)
		}
	}
}

func TestOracleAbortsAcrossCalls(t *testing.T) {
	samples := padded(speech(t)[0].samples)
	first := oracleTurns(t, samples)[0]
	middle := int((first.Start+first.SE)/2/windowDuration) * Window
	pcm := toFloat(samples)

	d := newOracle(t)
	if segments, err := d.Detect(pcm[:middle+1]); err != nil || len(segments) != 1 {
		t.Fatalf("first call: %v, %v; want an open turn", segments, err)
	}
	if segments, err := d.Detect(pcm[middle:]); err == nil || err.Error() != unexpectedEnd || segments != nil {
		t.Errorf("second call: %v, %v; want %q", segments, err, unexpectedEnd)
	}
}

const unexpectedEnd = "unexpected speech end"

func analyzeAs(t *testing.T, m *Model, samples []int16) []Turn {
	t.Helper()
	r, err := m.Analyze(t.Context(), samples, oracleParams())
	if err != nil {
		t.Fatal(err)
	}
	return r.Turns
}

// padded fills the last window with zeros and appends a second of them.
func padded(samples []int16) []int16 {
	whole := (len(samples)+Window-1)/Window*Window + 32*Window
	return append(samples[:len(samples):len(samples)], make([]int16, whole-len(samples))...)
}

func toFloat(samples []int16) []float32 {
	pcm := make([]float32, len(samples), len(samples)+1)
	for i, s := range samples {
		pcm[i] = float32(s) / 32768
	}
	return pcm
}

// seconds converts the library's float to the nearest sample.
func seconds(s float64) time.Duration {
	return time.Duration(s*SampleRate+0.5) * (time.Second / SampleRate)
}

func newOracle(t *testing.T) *silero.Detector {
	t.Helper()
	d, err := silero.NewDetector(silero.DetectorConfig{
		ModelPath: locate(t).Model, SampleRate: SampleRate, Threshold: 0.5, MinSilenceDurationMs: 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Destroy() })
	return d
}

// oracleTurns asks the library twice: for a whole file, which gives the starts
// and, one window late, the speech ends; and window by window, which gives the
// starts and, as errors, the positions where it knows. A call of one sample more
// than a window looks at exactly that window.
func oracleTurns(t *testing.T, samples []int16) []Turn {
	t.Helper()
	pcm := append(toFloat(padded(samples)), 0)
	segments, err := newOracle(t).Detect(pcm)
	if err != nil {
		t.Fatal(err)
	}
	var turns []Turn
	for _, s := range segments {
		turns = append(turns, Turn{Start: seconds(s.SpeechStartAt), SE: seconds(s.SpeechEndAt) - windowDuration})
	}
	d, started, ended := newOracle(t), 0, 0
	for at := 0; at+Window < len(pcm); at += Window {
		segments, err := d.Detect(pcm[at : at+Window+1])
		switch {
		case err != nil && err.Error() != unexpectedEnd:
			t.Fatal(err)
		case err != nil && ended < len(turns):
			turns[ended].EOS = position(at/Window + 1)
			ended++
		case len(segments) == 1:
			if started >= len(turns) || turns[started].Start != seconds(segments[0].SpeechStartAt) {
				t.Fatalf("the library's calls disagree about start %d", started)
			}
			started++
		}
	}
	if started != len(turns) || ended != len(turns) {
		t.Fatalf("the library found %d turns in the file, window by window %d starts and %d ends", len(turns), started, ended)
	}
	return turns
}

// probsWithoutFirstContext evaluates the first window as the library does: with
// an input of 512 samples instead of 64 zeros and 512 samples.
func probsWithoutFirstContext(t *testing.T, m *Model, samples []int16) []float32 {
	t.Helper()
	n, err := m.take()
	if err != nil {
		t.Fatal(err)
	}
	defer m.give(n)
	input, err1 := ort.NewTensor(ort.NewShape(1, Window), toFloat(samples[:Window]))
	session, err2 := ort.NewAdvancedSessionWithONNXData(m.data,
		[]string{"input", "state", "sr"}, []string{"output", "stateN"},
		[]ort.Value{input, n.state, n.rate}, []ort.Value{n.output, n.next}, nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer input.Destroy()
	defer session.Destroy()
	if err := session.Run(); err != nil {
		t.Fatal(err)
	}
	probs := []float32{n.output.GetData()[0]}
	copy(n.state.GetData(), n.next.GetData())
	copy(n.input.GetData()[:contextSamples], input.GetData()[Window-contextSamples:])
	for at := Window; at < len(samples); at += Window {
		p, err := n.prob(samples[at : at+Window])
		if err != nil {
			t.Fatal(err)
		}
		probs = append(probs, p)
	}
	return probs
}

// The library under test and the oracle must be the same file, or versions mix.
func TestOracleUsesTheLocatedLibrary(t *testing.T) {
	openModel(t)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("cannot tell which libraries are loaded: %v", err)
	}
	files := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); strings.Contains(fields[len(fields)-1], "libonnxruntime") {
			files[fields[len(fields)-1]] = true
		}
	}
	if len(files) != 1 {
		t.Errorf("loaded: %v; want one file", files)
	}
}
