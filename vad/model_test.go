package vad

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestModelHash(t *testing.T) {
	const want = "6b99cbfd39246b6706f98ec13c7c50c6b299181f2474fa05cbc8046acc274396" // in silero-vad-go v0.2.1
	m := openModel(t)
	if m.Hash() != want {
		t.Errorf("hash %s, want %s", m.Hash(), want)
	}
	if m.RuntimeVersion() == "" {
		t.Error("no version of ONNX Runtime")
	}
}

// Every recording has speech, the turns lie in it, and the nominal hangover is
// the shortest real one.
func TestAnalyzeSpeech(t *testing.T) {
	m := openModel(t)
	for _, r := range speech(t) {
		got := analyze(t, m, r.samples)
		if len(got.Turns) == 0 {
			t.Errorf("%s: no turn", r.name)
		}
		for _, turn := range got.Turns {
			t.Logf("%s: %v", r.name, turn)
			if turn.SE > got.Duration()+windowDuration {
				t.Errorf("%s: speech ends at %v in %v of audio", r.name, turn.SE, got.Duration())
			}
			if turn.Hangover() < 256*time.Millisecond {
				t.Errorf("%s: hangover %v", r.name, turn.Hangover())
			}
		}
		if n, least := len(got.Probs), (len(r.samples)+Window-1)/Window; n < least {
			t.Errorf("%s: %d probabilities for %d windows", r.name, n, least)
		}
	}
}

// The first LibriVox sentence, as a golden value: SE and EOS must not move
// unnoticed. Small differences between builds of ONNX Runtime do not reach the
// grid of 32 ms.
func TestAnalyzeGolden(t *testing.T) {
	m := openModel(t)
	for _, r := range speech(t) {
		if r.name != "sense_and_sensibility_01_austen_64kb-0880.wav" {
			continue
		}
		want := []Turn{{Start: ms(256), SE: ms(2816), EOS: ms(3072), SELow: ms(2816), SEHigh: ms(2816), SERules: 7}}
		if diff := cmp.Diff(want, analyze(t, m, r.samples).Turns); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
	lacking(t, "the LibriVox recordings are not in the folder of speech: run `apt-get install pocketsphinx-testdata`")
}

func TestAnalyzeSilence(t *testing.T) {
	m := openModel(t)
	for _, n := range []int{0, 1, Window, 3*Window + 7} {
		got := analyze(t, m, make([]int16, n))
		if len(got.Turns)+len(got.Dropped) != 0 {
			t.Errorf("%d samples of silence: turns %v, dropped %v", n, got.Turns, got.Dropped)
		}
		if want := (n + Window - 1) / Window; len(got.Probs) != want {
			t.Errorf("%d samples of silence: %d probabilities, want %d", n, len(got.Probs), want)
		}
	}
}

// Live audio in any chunks gives the turns of the whole recording.
func TestLiveEqualsWhole(t *testing.T) {
	m := openModel(t)
	chunks := []int{1, 160, 320, Window - 1, Window, Window + 1, 1000, 0} // 0: any
	for i, r := range variants(t) {
		want := analyze(t, m, r.samples)
		chunk := chunks[i%len(chunks)]
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		turns, probs := live(t, m, r.samples, func() int {
			if chunk == 0 {
				return rng.IntN(2000)
			}
			return chunk
		})
		if diff := cmp.Diff(want.Turns, turns, onlyTimes); diff != "" {
			t.Errorf("%s in chunks of %d: turns (-whole +live):\n%s", r.name, chunk, diff)
		}
		if diff := cmp.Diff(want.Probs, probs); diff != "" {
			t.Errorf("%s in chunks of %d: probabilities differ:\n%s", r.name, chunk, diff)
		}
	}
}

// A recording cut anywhere at or after an EOS has the same turns up to there.
func TestPrefix(t *testing.T) {
	m := openModel(t)
	r := joined(speech(t)[:6])
	whole := analyze(t, m, r.samples)
	if len(whole.Turns) < 4 {
		t.Fatalf("only %d turns", len(whole.Turns))
	}
	for i, turn := range whole.Turns {
		for _, extra := range []int{0, Window + 3} {
			cut := int(turn.EOS/(time.Second/SampleRate)) + extra
			if cut > len(r.samples) {
				continue
			}
			got := analyze(t, m, r.samples[:cut]).Turns
			if len(got) < i+1 {
				t.Errorf("cut at %d: %d turns, want at least %d", cut, len(got), i+1)
				continue
			}
			if diff := cmp.Diff(whole.Turns[:i+1], got[:i+1], onlyTimes); diff != "" {
				t.Errorf("cut at %d (-whole +prefix):\n%s", cut, diff)
			}
		}
	}
}

// Silence that is streamed after the recording changes no turn of it.
func TestTrailingSilence(t *testing.T) {
	m := openModel(t)
	for _, r := range variants(t) {
		if !strings.Contains(r.name, "cut") {
			continue
		}
		want := analyze(t, m, r.samples)
		got := analyze(t, m, append(r.samples[:len(r.samples):len(r.samples)], silence(time.Second)...))
		if diff := cmp.Diff(want.Turns, got.Turns, onlyTimes); diff != "" {
			t.Errorf("%s (-alone +with silence):\n%s", r.name, diff)
		}
	}
}

func TestDetectorsAtTheSameTime(t *testing.T) {
	m := openModel(t)
	recordings := speech(t)[:3]
	want := make([]*Result, len(recordings))
	for i, r := range recordings {
		want[i] = analyze(t, m, r.samples)
	}
	var wg sync.WaitGroup
	for range 2 {
		for i, r := range recordings {
			wg.Go(func() {
				got, err := m.Analyze(context.Background(), r.samples, DefaultParams())
				if err != nil {
					t.Error(err)
				} else if diff := cmp.Diff(want[i], got); diff != "" {
					t.Errorf("%s (-alone +together):\n%s", r.name, diff)
				}
			})
		}
	}
	wg.Wait()
}

func TestOpenAtTheSameTime(t *testing.T) {
	paths := locate(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			m, err := Open(paths)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := m.Analyze(context.Background(), silence(time.Second), DefaultParams()); err != nil {
				t.Error(err)
			}
			m.Close()
		})
	}
	wg.Wait()
}

func TestAnalyzeCancelled(t *testing.T) {
	m := openModel(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Analyze(ctx, silence(time.Second), DefaultParams()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestDetectorMisuse(t *testing.T) {
	m := openOwnModel(t)
	if _, err := m.NewDetector(Params{}); err == nil || err.Error() != "vad threshold 0 is outside 0.2 to 0.95" {
		t.Errorf("zero parameters: %v", err)
	}
	d, err := m.NewDetector(DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Feed(silence(time.Second)); !errors.Is(err, errFinished) {
		t.Errorf("fed after the end: %v", err)
	}
	d.Close()
	d.Close()
	if _, err := d.Feed(nil); !errors.Is(err, errDetectorClosed) {
		t.Errorf("fed after close: %v", err)
	}
	d, err = m.NewDetector(DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	m.Close()
	if _, err := m.NewDetector(DefaultParams()); !errors.Is(err, errModelClosed) {
		t.Errorf("detector of a closed model: %v", err)
	}
	if _, err := d.Feed(silence(time.Second)); err != nil {
		t.Errorf("detector that is older than the close: %v", err)
	}
	d.Close()
}

// A model that hears speech in silence must not make Finish run for ever.
func TestFinishIsBounded(t *testing.T) {
	m := openModel(t)
	d, err := m.NewDetector(DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.rule.triggered, d.rule.lower = true, -1 // no probability is silence
	_, err = d.Finish()
	if !errors.Is(err, ErrUnended) {
		t.Errorf("got %v, want %v", err, ErrUnended)
	}
	if got, want := len(d.probs), tailWindows(DefaultParams()); got != want {
		t.Errorf("%d windows of silence, want %d", got, want)
	}
}

func TestOpenUnusableModel(t *testing.T) {
	paths := locate(t)
	real, err := os.ReadFile(paths.Model)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"empty": "", "text": "not a model\n", "truncated": string(real[:len(real)/2]),
		"valid but something else": identityModel(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(tree(t, "m.onnx"), "m.onnx")
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Paths{paths.Library, path})
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if !strings.HasPrefix(err.Error(), "vad model "+path+" is not a usable Silero VAD model (") ||
				!strings.HasSuffix(err.Error(), "): run `make deps` or set STTBENCH_VAD_MODEL") {
				t.Errorf("unclear error: %v", err)
			}
		})
	}
	_, err = Open(Paths{paths.Library, "/nowhere/m.onnx"})
	if want := "vad model: /nowhere/m.onnx: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("missing model: %v, want %s", err, want)
	}
}

// identityModel is a valid ONNX model with one input and one output, which are
// not Silero's.
func identityModel() string {
	field := func(n byte, content string) string { return string([]byte{n<<3 | 2, byte(len(content))}) + content }
	number := func(n, v byte) string { return string([]byte{n << 3, v}) }
	tensor := field(1, number(1, 1)+field(2, field(1, number(1, 1)))) // float, shape [1]
	value := func(name string) string { return field(1, name) + field(2, tensor) }
	node := field(1, "x") + field(2, "y") + field(4, "Identity")
	graph := field(1, node) + field(2, "g") + field(11, value("x")) + field(12, value("y"))
	return number(1, 8) + field(7, graph) + field(8, number(2, 13))
}

// The library is loaded once per process, so each case runs in a process of its
// own that has not loaded anything yet.
func TestOpenUnusableLibrary(t *testing.T) {
	if path := os.Getenv("VAD_TEST_LIBRARY"); path != "" {
		model := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(model, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Paths{path, model})
		os.Stdout.WriteString("\nopen: " + err.Error() + "\n")
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("files are checked before they are loaded on Linux only")
	}
	dir := tree(t, "text.so="+strings.Repeat("not a library\n", 10), "empty.so", "folder/")
	cases := map[string]string{
		"text.so":  "not a complete ELF file: bad magic number '[110 111 116 32]' in record at byte 0x0",
		"empty.so": "not a complete ELF file: EOF",
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		compile := func(name, source string) {
			cmd := exec.Command(cc, "-shared", "-fPIC", "-x", "c", "-o", filepath.Join(dir, name), "-")
			cmd.Stdin = strings.NewReader(source)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("cc: %v\n%s", err, out)
			}
		}
		compile("other.so", "int answer(void) { return 42; }")
		cases["other.so"] = "it does not export OrtGetApiBase"
		// An ONNX Runtime that is too old answers NULL for a newer API version.
		compile("old.so", `static const void *api(unsigned v) { return 0; }
static const char *version(void) { return "1.0"; }
static const struct { const void *(*a)(unsigned); const char *(*v)(void); } base = {api, version};
const void *OrtGetApiBase(void) { return &base; }`)
		cases["old.so"] = "Platform-specific initialization failed: Error setting ORT API base: 2"
	} else {
		t.Log("no C compiler: libraries of a wrong kind are not tried")
	}
	if paths, err := Locate("", ""); err == nil {
		data, err := os.ReadFile(paths.Library)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "truncated.so"), data[:len(data)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		cases["truncated.so"] = "" // which check finds it depends on the file
	} else {
		t.Logf("a truncated library is not tried: %v", err)
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			cmd := exec.Command(os.Args[0], "-test.run=^TestOpenUnusableLibrary$")
			cmd.Env = append(os.Environ(), "VAD_TEST_LIBRARY="+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, got, _ := strings.Cut(string(out), "\nopen: ")
			got, _, _ = strings.Cut(got, "\n")
			t.Log(got)
			head, tail := "onnx runtime "+path+" is not usable (", "): it must be ONNX Runtime 1.24 or newer for "+
				runtime.GOOS+"/"+runtime.GOARCH+"; run `make deps` or set STTBENCH_ONNXRUNTIME"
			if !strings.HasPrefix(got, head+want) || !strings.HasSuffix(got, tail) || (want != "" && got != head+want+tail) {
				t.Errorf("got  %s\nwant %s%s%s", got, head, want, tail)
			}
		})
	}
}

func TestOpenSecondLibrary(t *testing.T) {
	m := openModel(t)
	paths := locate(t)
	other := filepath.Join(tree(t, "other.so"), "other.so")
	_, err := Open(Paths{other, paths.Model})
	if err == nil || !strings.Contains(err.Error(), "has already loaded") {
		t.Errorf("second library: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link.so")
	if err := os.Symlink(paths.Library, link); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Paths{link, paths.Model})
	if err != nil {
		t.Fatalf("same library by another name: %v", err)
	}
	again.Close()
	analyze(t, m, silence(time.Second)) // the first still works
}

func TestProbDoesNotAllocate(t *testing.T) {
	n, samples := benchNetwork(t)
	if got := testing.AllocsPerRun(100, func() {
		if _, err := n.prob(samples); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations per window, want 0", got)
	}
}

func BenchmarkWindow(b *testing.B) {
	n, samples := benchNetwork(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.prob(samples); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNetwork is what the first detector costs, and each that works beside it.
func BenchmarkNetwork(b *testing.B) {
	m := openModel(b)
	for b.Loop() {
		n, err := newNetwork(m.data)
		if err != nil {
			b.Fatal(err)
		}
		n.destroy()
	}
}

// BenchmarkTurns takes an hour of probabilities.
func BenchmarkTurns(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	probs := make([]float32, time.Hour/windowDuration)
	for i := range probs {
		probs[i] = float32(i/40%2)*0.5 + rng.Float32()*0.5
	}
	for b.Loop() {
		Turns(probs, DefaultParams())
	}
}

func benchNetwork(t testing.TB) (*network, []int16) {
	t.Helper()
	m := openModel(t)
	n, err := m.take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.give(n) })
	rng := rand.New(rand.NewPCG(1, 2))
	samples := make([]int16, Window)
	for i := range samples {
		samples[i] = int16(rng.IntN(2000) - 1000)
	}
	return n, samples
}

func analyze(t testing.TB, m *Model, samples []int16) *Result {
	t.Helper()
	r, err := m.Analyze(context.Background(), samples, DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// live feeds the samples in chunks of the lengths that next returns.
func live(t testing.TB, m *Model, samples []int16, next func() int) ([]Turn, []float32) {
	t.Helper()
	d, err := m.NewDetector(DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var turns []Turn
	for len(samples) > 0 {
		k := min(next(), len(samples))
		ended, err := d.Feed(samples[:k])
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range ended {
			// Known as soon as the audio up to EOS is there, and not before.
			if at := position(d.rule.windows); turn.EOS > at || (k <= Window && turn.EOS != at) {
				t.Errorf("turn with EOS %v reported at %v", turn.EOS, at)
			}
		}
		turns = append(turns, ended...)
		samples = samples[k:]
	}
	ended, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return append(turns, ended...), d.Probs()
}
