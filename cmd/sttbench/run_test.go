package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
)

// A run that is killed at any instant goes on with --resume: the same items, none
// twice, none lost; and replay keeps every byte.
func TestKilledRunResumes(t *testing.T) {
	needSpeech(t)
	t.Parallel()
	srv, err := emulator.Start(t.Context(), deepgram.Emulator{}, emulator.Settings{FinalDelay: emulator.Delay{Base: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	dir := t.TempDir()
	recordings, err := filepath.Glob(filepath.Join(speechDir, "*.wav"))
	if err != nil || len(recordings) < 4 {
		t.Fatalf("recordings in %s: %v %v", speechDir, recordings, err)
	}
	var manifest strings.Builder
	manifest.WriteString("dataset: cards\nversion: \"1\"\nlanguage: en\nitems:\n")
	var want []string
	for i, f := range recordings[:4] {
		fmt.Fprintf(&manifest, "  - {id: card%d, audio: %q, reference: \"turn the lights off\"}\n", i, f)
		want = append(want, fmt.Sprintf("a/card%d.1.jsonl", i), fmt.Sprintf("b/card%d.1.jsonl", i))
	}
	slices.Sort(want)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("manifest.yaml", manifest.String())
	config := write("bench.yaml", fmt.Sprintf("datasets: [{manifest: manifest.yaml}]\ntargets:\n"+
		"  - {name: a, provider: deepgram, endpoint: %[1]q}\n  - {name: b, provider: deepgram, endpoint: %[1]q, force: \"off\"}\n"+
		"max_lateness: 1m\nconcurrency: 3\n", srv.URL()))
	out := filepath.Join(dir, "out")
	start := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command("sttbench", args...) // testscript.Main put it on the path
		cmd.Env = append(os.Environ(), "DEEPGRAM_API_KEY=a-key-of-the-test")
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &said
	}

	rnd := rand.New(rand.NewPCG(1, 7))
	args := []string{"run", config, "--out", out}
	for range 4 {
		cmd, _ := start(args...)
		// Waiting is the point here: the instant of death is arbitrary.
		time.Sleep(500*time.Millisecond + time.Duration(rnd.IntN(4000))*time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if _, err := os.Stat(filepath.Join(out, "config.yaml")); err == nil && len(args) == 4 {
			args = append(args, "--resume")
		}
	}
	cmd, said := start(args...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	got, err := filepath.Glob(filepath.Join(out, "sessions", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got {
		got[i], _ = filepath.Rel(filepath.Join(out, "sessions"), f)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("sessions %v, want %v", got, want)
	}
	computed := []string{"outcomes.jsonl", "scores.jsonl", "aggregate.json"}
	before := map[string][]byte{}
	for _, f := range computed {
		if before[f], err = os.ReadFile(filepath.Join(out, f)); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(before["outcomes.jsonl"], []byte("\n")); n != len(want) {
		t.Errorf("%d outcomes, want %d", n, len(want))
	}
	cmd, said = start("replay", out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, f := range computed {
		after, err := os.ReadFile(filepath.Join(out, f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before[f], after) {
			t.Errorf("replay changes %s", f)
		}
	}
}
