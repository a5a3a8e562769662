package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sttbench/endpoint"
	"sttbench/providers/catalogue"
	"sttbench/providers/emulator"
	"sttbench/record"
	"sttbench/vad"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lacking skips with the reason, or fails where make test has promised that
// everything is installed.
func lacking(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("STTBENCH_REQUIRE_DEPS") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func preparer(t *testing.T) *Preparer {
	t.Helper()
	paths, err := vad.Locate("", "")
	if err != nil {
		lacking(t, err.Error())
	}
	m, err := vad.Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return &Preparer{Model: m, Cache: vad.Cache{Dir: filepath.Join(t.TempDir(), "vad")}}
}

// speech gives real recordings of 2 to 3 s.
func speech(t *testing.T, n int) []string {
	t.Helper()
	dir := os.Getenv("STTBENCH_SPEECH_DIR")
	if dir == "" {
		dir = "/usr/share/pocketsphinx/test/data"
	}
	var short []string
	for _, pattern := range []string{"*.wav", "*/*.wav"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range found {
			if i, err := os.Stat(f); err == nil && i.Size() > 60_000 && i.Size() < 130_000 {
				short = append(short, f)
			}
		}
	}
	if len(short) < n {
		lacking(t, fmt.Sprintf("want %d recordings of 2 to 4 s in %s: apt-get install pocketsphinx-testdata, or set STTBENCH_SPEECH_DIR", n, dir))
	}
	return short[:n]
}

func emulate(t *testing.T, provider string, s emulator.Settings) string {
	t.Helper()
	entry, err := catalogue.Lookup(provider)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := emulator.Start(t.Context(), entry.Emulator, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv.URL()
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// benchmark writes a configuration with two recordings and three targets.
func benchmark(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var items strings.Builder
	for i, f := range speech(t, 2) {
		fmt.Fprintf(&items, "  - id: item%d\n    audio: %s\n    reference: turn the lights off\n", i, f)
		if i == 1 { // and one item without tags
			items.WriteString("    tags: [tag1]\n")
		}
	}
	write(t, filepath.Join(dir, "manifest.yaml"), "dataset: test\nversion: \"1\"\nlanguage: en\nitems:\n"+items.String())
	delay := emulator.Settings{Script: emulator.Say("turn the lights off"), FinalDelay: emulator.Delay{Base: 150 * time.Millisecond}}
	refuse, err := emulator.ParseFault("refuse=401")
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(dir, "bench.yaml"), fmt.Sprintf(`
datasets:
  - manifest: manifest.yaml
targets:
  - {name: dg, provider: deepgram, endpoint: "%s"}
  - {name: oa, provider: openai, endpoint: "%s", tags: [tag1]}
  - {name: bad, provider: deepgram, endpoint: "%s", params: {model: "nova-3", punctuate: "true"}}
deadline: 2s
max_lateness: 1m
concurrency: 8
provider_concurrency: {openai: 1}
`, emulate(t, "deepgram", delay), emulate(t, "openai", delay),
		emulate(t, "deepgram", emulator.Settings{Faults: []emulator.Fault{refuse}})))
}

const key = "sk-this-key-must-not-be-found-anywhere"

func options(t *testing.T, dir string, p *Preparer) Options {
	return Options{Dir: dir, Preparer: p, Software: "test", Env: func(string) string { return key }}
}

func TestRunResumeReplay(t *testing.T) {
	p := preparer(t)
	file := benchmark(t)
	write(t, file, strings.ReplaceAll(read(t, file), `model: "nova-3", `, ""))
	cfg, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")

	// A run that is stopped half-way keeps what it has and says what is missing.
	ctx, cancel := context.WithCancelCause(t.Context())
	opt := options(t, out, p)
	opt.Progress = func(pr Progress) {
		if pr.Done == 2 {
			cancel(errors.New("interrupted"))
		}
	}
	agg, err := Run(ctx, cfg, opt)
	if err == nil || err.Error() != "interrupted" {
		t.Fatalf("stopped run: %v, want interrupted", err)
	}
	if sum(agg, endpoint.Cancelled) == 0 {
		t.Fatal("a stopped run has no cancelled turns")
	}
	recorded := files(t, out, "sessions")
	if len(recorded) == 0 {
		t.Fatal("nothing was kept")
	}

	if _, err := Run(t.Context(), cfg, options(t, out, p)); err == nil || !strings.Contains(err.Error(), "a run is there already") {
		t.Fatalf("starting over in a used directory: %v", err)
	}
	opt = options(t, out, p)
	opt.Resume = true
	if agg, err = Run(t.Context(), cfg, opt); err != nil {
		t.Fatal(err)
	}
	for name, content := range recorded {
		if after := read(t, filepath.Join(out, name)); after != content {
			t.Errorf("%s was measured again", name)
		}
	}
	want := []string{"sessions/bad/item0.1.jsonl", "sessions/bad/item1.1.jsonl",
		"sessions/dg/item0.1.jsonl", "sessions/dg/item1.1.jsonl", "sessions/oa/item1.1.jsonl"}
	if d := cmp.Diff(want, names(files(t, out, "sessions"))); d != "" {
		t.Errorf("session files (-want +got):\n%s", d)
	}
	if n := sum(agg, endpoint.OK); n != 3 || sum(agg, endpoint.Rejected) != 2 {
		t.Errorf("%d ok and %d rejected, want 3 and 2: %+v", n, sum(agg, endpoint.Rejected), agg.Targets)
	}
	for _, g := range agg.Targets[:2] {
		// Loose on purpose: the machine that runs the tests may be busy.
		if x := g.TTF.P50.X; x < 149 || x > 400 {
			t.Errorf("%s: ttf p50 %.1f ms, the emulator waits 150 ms", g.Name, x)
		}
		if g.Final.WER == nil || *g.Final.WER != 0 {
			t.Errorf("%s: wer %v of a perfect transcript", g.Name, g.Final.WER)
		}
	}

	computed := []string{"outcomes.jsonl", "scores.jsonl", "aggregate.json"}
	before := map[string]string{}
	for _, f := range computed {
		before[f] = read(t, filepath.Join(out, f))
		os.Remove(filepath.Join(out, f))
	}
	if _, err := Replay(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	for _, f := range computed {
		if got := read(t, filepath.Join(out, f)); got != before[f] {
			t.Errorf("replay changes %s", f)
		}
	}
	for name, content := range files(t, out, ".") {
		if strings.Contains(content, key) {
			t.Errorf("%s holds the key", name)
		}
	}
}

func sum(a *Aggregate, c endpoint.Class) int {
	n := 0
	for _, t := range a.Targets {
		n += t.Classes[c]
	}
	return n
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files reads all files below dir/sub by their path in dir.
func files(t *testing.T, dir, sub string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, sub), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		all[rel] = read(t, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(m map[string]string) []string {
	var n []string
	for k := range m {
		n = append(n, k)
	}
	slices.Sort(n)
	return n
}

func TestChangedInputsAreRefused(t *testing.T) {
	p := preparer(t)
	file := benchmark(t)
	cfg, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Targets = cfg.Targets[2:] // the refusing one is quick
	cfg.Targets[0].Params = nil
	out := filepath.Join(t.TempDir(), "run")
	if _, err := Run(t.Context(), cfg, options(t, out, p)); err != nil {
		t.Fatal(err)
	}
	resume := options(t, out, p)
	resume.Resume = true
	t.Run("configuration", func(t *testing.T) {
		changed := *cfg
		changed.Seed = 2
		_, err := Run(t.Context(), &changed, resume)
		if err == nil || !strings.Contains(err.Error(), `another configuration: "seed: 1" there, "seed: 2" now`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("items", func(t *testing.T) {
		manifest := cfg.Datasets[0].Manifest
		write(t, manifest, strings.Replace(read(t, manifest), "turn the", "turn all the", 1))
		_, err := Run(t.Context(), cfg, resume)
		if err == nil || !strings.Contains(err.Error(), "item item0 is not what the run was started with") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("second writer", func(t *testing.T) {
		d, _, err := open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		if _, err := Replay(t.Context(), out); err == nil || !strings.Contains(err.Error(), "another sttbench works in this directory") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("another session's record", func(t *testing.T) {
		mine := filepath.Join(out, "sessions/bad/item0.1.jsonl")
		kept := read(t, mine)
		defer write(t, mine, kept)
		write(t, mine, read(t, filepath.Join(out, "sessions/bad/item1.1.jsonl")))
		if _, err := Replay(t.Context(), out); err == nil || !strings.Contains(err.Error(), "item0.1.jsonl: is the record of bad/item1.1") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("damaged session", func(t *testing.T) {
		write(t, filepath.Join(out, "sessions/bad/item0.1.jsonl"), `{"type":"open","version":1}`+"\n")
		_, err := Replay(t.Context(), out)
		var dirErr *DirError
		if !errors.As(err, &dirErr) || dirErr.Hint == "" || !strings.Contains(err.Error(), "item0.1.jsonl: record is truncated") {
			t.Errorf("error %v", err)
		}
	})
}

func TestConfigSurvivesItsOwnFile(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.yaml"), `
datasets: [{manifest: m.yaml, tags: [a, "1"], limit: 3}]
targets:
  - {provider: deepgram, params: {endpointing: "10", punctuate: "true"}, chunk: 100ms}
  - {name: "007", provider: vosk, endpoint: "ws://127.0.0.1:1", force: "off"}
natural_window: 1500ms
provider_concurrency: {vosk: 1}
`)
	cfg, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.yaml()
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadConfig(write(t, filepath.Join(dir, "b.yaml"), string(text)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	second, err := again.yaml()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), string(second)); d != "" {
		t.Errorf("effective configuration changes when it is read back:\n%s", d)
	}
	if again.Targets[1].Name != "007" || again.Targets[0].Params["endpointing"] != "10" || again.Datasets[0].Limit != 3 {
		t.Errorf("got %+v", again)
	}
}

func TestConfigErrors(t *testing.T) {
	const ok = "datasets: [{manifest: m.yaml}]\ntargets: [{provider: deepgram}]\n"
	cases := []struct{ name, in, want string }{
		{"unknown key", ok + "turnz: last\n", "c.yaml:3:1: unknown key"},
		{"bad duration", ok + "deadline: soon\n", "c.yaml:3:11: "},
		{"no targets", "datasets: [{manifest: m.yaml}]\ntargets: []\n", "c.yaml: targets: want at least one"},
		{"unknown provider", "datasets: [{manifest: m}]\ntargets: [{provider: deepgrm}]\n", `c.yaml: targets[0] (deepgrm): unknown provider "deepgrm": want one of deepgram, openai, vosk`},
		{"two of one name", "datasets: [{manifest: m}]\ntargets: [{provider: vosk}, {provider: vosk}]\n", `c.yaml: targets[1]: name "vosk" is taken by another target`},
		{"name that leaves the directory", "datasets: [{manifest: m}]\ntargets: [{provider: vosk, name: ../x}]\n", `c.yaml: targets[0]: name "../x": want letters, digits, '.', '_', '-'`},
		{"turns", ok + "turns: all\n", `c.yaml: turns: "all": want last or every`},
		{"force", "datasets: [{manifest: m}]\ntargets: [{provider: vosk, force: always}]\n", `c.yaml: targets[0] (vosk): force: "always": want auto or off`},
		{"profile", ok + "profile: none\n", "c.yaml: profile: "},
		{"vad", ok + "vad: {threshold: 2}\n", "c.yaml: vad: "},
		{"window beyond deadline", ok + "deadline: 1s\nnatural_window: 3s\n", "c.yaml: natural_window: 3s: want more than 0 and at most the deadline of 1s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := LoadConfig(write(t, "c.yaml", c.in))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, ErrConfig) {
				t.Errorf("error %v, want %s…", err, c.want)
			}
		})
	}
}

func TestFingerprintNamesWhatMatters(t *testing.T) {
	turns := record.Turns{List: []record.Turn{{SE: 1}}}
	base := record.Target{Name: "a", Provider: "deepgram", Params: map[string]string{"x": "1"}}
	same := base
	same.Name = "b"
	other := base
	other.Params = map[string]string{"x": "2"}
	if fingerprint(base, "h", turns) != fingerprint(same, "h", turns) {
		t.Error("a target's name changes the fingerprint")
	}
	if fingerprint(base, "h", turns) == fingerprint(other, "h", turns) || fingerprint(base, "h", turns) == fingerprint(base, "i", turns) {
		t.Error("parameters or audio do not change the fingerprint")
	}
}

func TestStoredEndpointHasNoSecrets(t *testing.T) {
	entry, err := catalogue.Lookup("deepgram")
	if err != nil {
		t.Fatal(err)
	}
	got := shownEndpoint("wss://user:pw@host/v1?token=abc#x", entry.Dialect.Describe())
	if got != "wss://host/v1" {
		t.Errorf("got %s", got)
	}
}
