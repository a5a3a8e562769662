package corpus

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fuzzLimit keeps files small that hold much audio in few bytes.
const fuzzLimit = 10 * time.Second

func TestPCM16LE(t *testing.T) {
	const step = 1.0 / 32768
	tests := []struct {
		name string
		in   float32
		want int16
	}{
		{"zero", 0, 0},
		{"largest", 32767 * step, 32767},
		{"full scale", 1, 32767},
		{"smallest", -1, -32768},
		{"above full scale", 1.0001, 32767},
		{"below full scale", -1.0001, -32768},
		{"far above", 1e30, 32767},
		{"far below", -1e30, -32768},
		{"half a step", 0.5 * step, 0},
		{"one and a half", 1.5 * step, 2},
		{"minus one and a half", -1.5 * step, -2},
		{"nearly one", 0.9 * step, 1},
		{"rounding up to full scale", 32767.6 * step, 32767},
	}
	for _, tt := range tests {
		got := Audio{Samples: []float32{tt.in}, Rate: 16000}.PCM16LE()
		if diff := cmp.Diff([]byte{byte(tt.want), byte(tt.want >> 8)}, got); diff != "" {
			t.Errorf("%s: %v: %s", tt.name, tt.in, diff)
		}
	}
}

func TestDuration(t *testing.T) {
	a := Audio{Samples: make([]float32, 44101), Rate: 44100}
	if want := time.Second + 22675*time.Nanosecond; a.Duration() != want {
		t.Errorf("duration is %v, want %v", a.Duration(), want)
	}
	if d := (Audio{}).Duration(); d != 0 {
		t.Errorf("duration of no audio is %v", d)
	}
}

// panicReader stands for a library that fails in the middle of a file.
type panicReader struct{ *bytes.Reader }

func (r panicReader) ReadAt(b []byte, off int64) (int, error) {
	if off >= 42 {
		panic("index out of range")
	}
	return r.Reader.ReadAt(b, off)
}

func TestDecodeRecovers(t *testing.T) {
	in := riff(chunk("fmt ", format(tagPCM, 1, 16000, 16)), chunk("data", make([]byte, 100)))
	a, err := decode(panicReader{bytes.NewReader(in)}, int64(len(in)), MaxDuration)
	if err == nil || err.Error() != "damaged file: the decoder failed: index out of range" || a.Samples != nil {
		t.Errorf("%d samples, error %v", len(a.Samples), err)
	}
}

func TestDecodeNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.wav")
	empty := filepath.Join(dir, "empty.wav")
	for path, data := range map[string]string{text: "this is no audio", empty: ""} {
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing.wav")
	tests := []struct{ name, path, want string }{
		{"no audio", text, ": not a WAV, FLAC or MP3 file"},
		{"empty", empty, ": the file is empty"},
		{"directory", dir, ": is a directory, not a file"},
		{"missing", missing, ": no such file or directory"},
		{"device", os.DevNull, ": is not a regular file: copy the data to a file first"},
		{"below a file", filepath.Join(text, "x"), ": not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode(tt.path)
			var ae *AudioError
			if !errors.As(err, &ae) || ae.Path != tt.path {
				t.Fatalf("error is %#v, want an *AudioError for %s", err, tt.path)
			}
			if want := tt.path + tt.want; err.Error() != want {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, want)
			}
		})
	}
	if _, err := Decode(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is no os.ErrNotExist", err)
	}
}

func TestHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wav")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Item{Audio: path}.Hash()
	// The digest of "abc" is an example in FIPS 180-2.
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if err != nil || got != want {
		t.Errorf("Hash() = %q, %v, want %q", got, err, want)
	}
	var ae *AudioError
	if _, err := (Item{Audio: filepath.Dir(path)}).Hash(); !errors.As(err, &ae) || !strings.HasSuffix(err.Error(), "is a directory, not a file") {
		t.Errorf("hash of a directory: %v", err)
	}
}
