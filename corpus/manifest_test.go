package corpus

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sttbench/strictyaml"
)

const head = "dataset: calls\nversion: 2026-03\nlanguage: en\nitems:\n"

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "calls.yaml")
	in := head + `  - id: call-001.a
    audio: audio/call-001.a.wav
    reference: I would like to cancel 007, it's 1.10
    tags: [phone, noisy]
    recording: call-001
    weight: 0.5
    language: en-GB
  - {id: B_2, audio: ../b.flac, reference: ""}
  - id: c
    audio: /data/c.mp3
    reference: 1984
`
	if err := os.WriteFile(path, []byte(in), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Dataset{Name: "calls", Version: "2026-03", Language: "en", Items: []Item{
		{Dataset: "calls", ID: "call-001.a", Audio: filepath.Join(dir, "audio", "call-001.a.wav"),
			Reference: "I would like to cancel 007, it's 1.10", Tags: []string{"phone", "noisy"},
			Recording: "call-001", Weight: 0.5, Language: "en-GB"},
		{Dataset: "calls", ID: "B_2", Audio: filepath.Join(filepath.Dir(dir), "b.flac"),
			Tags: []string{}, Recording: "B_2", Weight: 1, Language: "en"},
		{Dataset: "calls", ID: "c", Audio: "/data/c.mp3", Reference: "1984",
			Tags: []string{}, Recording: "c", Weight: 1, Language: "en"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLoadRelative checks that audio paths are absolute and start from the folder
// of the manifest, also where the manifest is named by a relative path.
func TestLoadRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("sub", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("sub/m.yaml", []byte(head+"  - {id: a, audio: a.wav, reference: x}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	ds, err := Load("sub/m.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(wd, "sub", "a.wav"); ds.Items[0].Audio != want {
		t.Errorf("audio is %s, want %s", ds.Items[0].Audio, want)
	}
}

func TestManifestErrors(t *testing.T) {
	const first = "  - {id: a, audio: a.wav, reference: x}\n"
	// Items begin in line 5; an id in flow style stands in column 10.
	tests := []struct{ name, in, want string }{
		{"empty file", "", "m.yaml:1:1: the file is empty"},
		{"second document", head + first + "---\ndataset: b\n", "m.yaml:6:1: second document"},
		{"unknown key", "datset: calls\n", `m.yaml:1:1: unknown key "datset": the keys here are dataset, version, language, items`},
		{"unknown key in item", head + "  - {id: a, file: a.wav}\n", `m.yaml:5:13: unknown key "file": the keys here are id, audio,`},
		{"repeated key", head + "  - {id: a, id: b}\n", "m.yaml:5:13: "},
		{"no dataset", "version: 1\n", `m.yaml:1:1: missing key "dataset"`},
		{"no version", "dataset: a\nlanguage: en\nitems: []\n", `m.yaml:1:1: missing key "version"`},
		{"empty dataset", "dataset: ' '\nversion: 1\nlanguage: en\nitems: []\n", "m.yaml:1:10: dataset is empty"},
		{"line break in version", "dataset: a\nversion: \"1\\n2\"\nlanguage: en\nitems: []\n", `m.yaml:2:10: version "1\n2" holds a line break`},
		{"no items", "dataset: a\nversion: 1\nlanguage: en\nitems: []\n", "m.yaml:4:8: items is empty"},
		{"items without value", head, `m.yaml:4:1: key "items" has no value`},
		{"no id", head + "  - audio: a.wav\n    reference: x\n", `m.yaml:5:5: missing key "id"`},
		{"no audio", head + "  - {id: a, reference: x}\n", `m.yaml:5:5: missing key "audio"`},
		{"no reference", head + "  - {id: a, audio: a.wav}\n", `m.yaml:5:5: missing key "reference"`},
		{"reference without value", head + "  - id: a\n    audio: a.wav\n    reference:\n", `m.yaml:7:5: key "reference" has no value: give one, "" for empty text`},
		{"blank reference", head + "  - {id: a, audio: a.wav, reference: ' '}\n", "m.yaml:5:38: reference holds nothing but space"},
		{"same id", head + first + "\n" + first, `m.yaml:7:10: id "a" is already used in line 5`},
		{"same id in other case", head + first + strings.Replace(first, "a", "A", 1), `m.yaml:6:10: id "A" differs from "a" in line 5 by case only`},
		{"empty id", head + "  - {id: '', audio: a.wav, reference: x}\n", "m.yaml:5:10: id is empty"},
		{"slash in id", head + "  - {id: a/b, audio: a.wav, reference: x}\n", `m.yaml:5:10: id "a/b" holds '/'`},
		{"space in id", head + "  - {id: a b, audio: a.wav, reference: x}\n", `m.yaml:5:10: id "a b" holds ' '`},
		{"letter outside ASCII in id", head + "  - {id: café, audio: a.wav, reference: x}\n", `m.yaml:5:10: id "café" holds 'é'`},
		{"dot first in id", head + "  - {id: .., audio: a.wav, reference: x}\n", `m.yaml:5:10: id ".." begins with a dot`},
		{"long id", head + "  - {id: " + strings.Repeat("a", 129) + ", audio: a.wav, reference: x}\n", "m.yaml:5:10: id has 129 characters, more than 128"},
		{"empty audio", head + "  - {id: a, audio: '', reference: x}\n", "m.yaml:5:20: audio is empty"},
		{"NUL in audio", head + "  - {id: a, audio: \"a\\0b\", reference: x}\n", `m.yaml:5:20: audio "a\x00b" holds a line break or control character`},
		{"negative weight", head + "  - {id: a, audio: a.wav, reference: x, weight: -0.5}\n", "m.yaml:5:49: weight -0.5 is negative"},
		{"weight in quotes", head + "  - {id: a, audio: a.wav, reference: x, weight: '1'}\n", "m.yaml:5:49: want a number"},
		{"infinite weight", head + "  - {id: a, audio: a.wav, reference: x, weight: .inf}\n", "m.yaml:5:49: want a number"},
		{"text for tags", head + "  - {id: a, audio: a.wav, reference: x, tags: phone}\n", "m.yaml:5:47: want a list, got phone"},
		{"empty tag", head + "  - {id: a, audio: a.wav, reference: x, tags: [a, '']}\n", "m.yaml:5:51: tag is empty"},
		{"tag twice", head + "  - {id: a, audio: a.wav, reference: x, tags: [a, b, a]}\n", `m.yaml:5:54: tag "a" is given twice`},
		{"empty recording", head + "  - {id: a, audio: a.wav, reference: x, recording: ''}\n", "m.yaml:5:52: recording is empty"},
		{"language", strings.Replace(head, "en", "english!", 1) + first, `m.yaml:3:11: language "english!" is not a language tag such as en or en-US`},
		{"language with underscore", head + "  - {id: a, audio: a.wav, reference: x, language: en_US}\n", `m.yaml:5:51: language "en_US" is not a language tag`},
		{"empty language", head + "  - {id: a, audio: a.wav, reference: x, language: ''}\n", `m.yaml:5:51: language "" is not a language tag`},
		{"the first mistake is told", head + "  - {id: a b, audio: '', reference: x}\n" + first, "m.yaml:5:10: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ds, err := parseManifest("m.yaml", "/data", []byte(tt.in))
			if err == nil {
				t.Fatalf("no error, got %+v", ds)
			}
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, tt.want)
			}
		})
	}
}

func TestManifestLanguages(t *testing.T) {
	for _, tag := range []string{"en", "en-US", "zh-Hant-TW", "es-419", "multi", "no", "cmn"} {
		in := strings.Replace(head, "language: en", "language: "+tag, 1) + "  - {id: a, audio: a.wav, reference: x}\n"
		ds, err := parseManifest("m.yaml", "/data", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", tag, err)
		} else if ds.Items[0].Language != tag {
			t.Errorf("language is %q, want %q", ds.Items[0].Language, tag)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("dataset: x\nfoo: 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var me *ManifestError
	_, err := Load(bad)
	var at *strictyaml.Error
	if !errors.As(err, &me) || !errors.As(err, &at) || at.Pos != (strictyaml.Pos{Line: 2, Column: 1}) {
		t.Errorf("error is %#v, want a *ManifestError at 2:1", err)
	}
	if !strings.HasPrefix(err.Error(), bad+":2:1: unknown key") {
		t.Errorf("error is %v", err)
	}
	missing := filepath.Join(dir, "missing.yaml")
	_, err = Load(missing)
	if !errors.As(err, &me) || !errors.Is(err, os.ErrNotExist) || err.Error() != missing+": no such file or directory" {
		t.Errorf("error is %v", err)
	}
	if _, err = Load(dir); !errors.As(err, &me) || err.Error() != dir+": is a directory, not a file" {
		t.Errorf("error is %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(head + "  - {id: a, audio: a.wav, reference: x, tags: [b], weight: 2, recording: r, language: de}\n")
	f.Add(head + "  - id: a\n    audio: b\n    reference: |\n      x\n  - id: A\n")
	f.Add("items: [{}]\n---\n# x\n")
	f.Fuzz(func(t *testing.T, in string) {
		ds, err := parseManifest("m.yaml", "/data", []byte(in))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "m.yaml:") {
				t.Errorf("error does not name the file: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, it := range ds.Items {
			key := strings.ToLower(it.ID)
			if seen[key] || filepath.Base(it.ID) != it.ID || strings.HasPrefix(it.ID, ".") || len(it.ID) > maxName {
				t.Errorf("id %q accepted", it.ID)
			}
			seen[key] = true
			if !filepath.IsAbs(it.Audio) || it.Weight < 0 || it.Recording == "" {
				t.Errorf("item %+v accepted", it)
			}
		}
		if len(ds.Items) == 0 {
			t.Error("dataset without items accepted")
		}
	})
}
