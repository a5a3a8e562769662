package pocketsphinx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpoken(t *testing.T) {
	for entry, want := range map[string]string{
		"the":       "the",
		"the(2)":    "the",
		"it's":      "it's",
		"<s>":       "",
		"<sil>":     "",
		"[NOISE]":   "",
		"++BREATH+": "",
		"":          "",
	} {
		if got := spoken(entry); got != want {
			t.Errorf("spoken(%q) = %q, want %q", entry, got, want)
		}
	}
}

func TestFindModel(t *testing.T) {
	files := []string{
		"en-us.lm.bin", "cmudict-en-us.dict",
		"en-us/feat.params", "en-us/mdef", "en-us/means", "en-us/noisedict",
		"en-us/sendump", "en-us/transition_matrices", "en-us/variances",
	}
	write := func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, "en-us"), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("complete", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir)
		m, err := FindModel(dir)
		if err != nil || m.Language != filepath.Join(dir, "en-us.lm.bin") {
			t.Errorf("got %+v, %v", m, err)
		}
	})
	for _, name := range files {
		t.Run("without "+filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir)
			if err := os.Truncate(filepath.Join(dir, name), 0); err != nil {
				t.Fatal(err)
			}
			_, err := FindModel(dir)
			if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
				t.Errorf("got %v, want ErrNotFound with the name of the file", err)
			}
		})
	}
}

// open returns the library and model, or skips the test.
func open(t *testing.T) (*Library, Model) {
	t.Helper()
	l, err := Open()
	m, modelErr := FindModel("")
	if err := errors.Join(err, modelErr); err != nil {
		if os.Getenv("STTBENCH_REQUIRE_DEPS") == "1" {
			t.Fatalf("STTBENCH_REQUIRE_DEPS is set, but %v: run make deps", err)
		}
		t.Skipf("skipped: %v: run make deps", err)
	}
	return l, m
}

func TestEmptyUtterances(t *testing.T) {
	l, m := open(t)
	d, err := l.NewDecoder(m)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, samples := range [][]int16{nil, {0}, make([]int16, SampleRate/2)} {
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		if err := d.Process(samples); err != nil {
			t.Fatal(err)
		}
		if h := d.Hypothesis(); h != "" {
			t.Errorf("%d samples of silence: hypothesis %q", len(samples), h)
		}
		if words, err := d.End(); err != nil || len(words) != 0 {
			t.Errorf("%d samples of silence: %v, %v", len(samples), words, err)
		}
	}
	d.Close() // a second Close does nothing
}

func TestMisuseIsAnError(t *testing.T) {
	l, m := open(t)
	if _, err := l.NewDecoder(m, "-nosuchoption", "1"); err == nil {
		t.Error("an unknown setting is accepted")
	}
	d, err := l.NewDecoder(m)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.End(); err == nil {
		t.Error("the end of no utterance is accepted")
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err == nil {
		t.Error("a second start is accepted")
	}
}
