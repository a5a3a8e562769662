package vad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lacking ends a test that needs something that is not there: it skips with the
// reason, or fails if STTBENCH_REQUIRE_DEPS is 1, as `make test` sets it.
func lacking(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("STTBENCH_REQUIRE_DEPS") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func locate(t testing.TB) Paths {
	t.Helper()
	paths, err := Locate("", "")
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		lacking(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// openModel returns a model that all tests share, because building a session
// takes longer than most of what they do with it.
func openModel(t testing.TB) *Model {
	t.Helper()
	paths := locate(t)
	m, err := sharedModel(paths)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var sharedModel = func() func(Paths) (*Model, error) {
	var mu sync.Mutex
	var m *Model
	return func(p Paths) (_ *Model, err error) {
		mu.Lock()
		defer mu.Unlock()
		if m == nil {
			m, err = Open(p)
		}
		return m, err
	}
}()

// openOwnModel returns a model for a test that closes it.
func openOwnModel(t testing.TB) *Model {
	t.Helper()
	m, err := Open(locate(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// recording is real speech.
type recording struct {
	name    string
	samples []int16
}

// speech returns the recordings of Debian's pocketsphinx-testdata: ten files of
// read speech (LibriVox, card names), 16 kHz.
func speech(t testing.TB) []recording {
	t.Helper()
	dirs := []string{os.Getenv("STTBENCH_SPEECH_DIR"), "/usr/share/pocketsphinx/test/data"}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if recordings := readSpeech(t, dir); len(recordings) > 0 {
			return recordings
		}
	}
	lacking(t, "no speech in /usr/share/pocketsphinx/test/data: run `apt-get install pocketsphinx-testdata`, "+
		"or set STTBENCH_SPEECH_DIR to a folder with WAV files (16 kHz, mono, 16 bit)")
	return nil
}

func readSpeech(t testing.TB, dir string) []recording {
	t.Helper()
	var recordings []recording
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".wav") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		samples, err := wavSamples(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		recordings = append(recordings, recording{filepath.Base(path), samples})
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return recordings
}

func wavSamples(data []byte) ([]int16, error) {
	le := binary.LittleEndian
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return nil, errors.New("not a WAV file")
	}
	for data = data[12:]; len(data) >= 8; {
		id, n := string(data[:4]), int(le.Uint32(data[4:]))
		body := data[8:]
		if n > len(body) {
			n = len(body)
		}
		switch id {
		case "fmt ":
			if n < 16 || le.Uint16(body) != 1 || le.Uint16(body[2:]) != 1 || le.Uint32(body[4:]) != SampleRate || le.Uint16(body[14:]) != 16 {
				return nil, errors.New("not 16 kHz mono 16 bit PCM")
			}
		case "data":
			samples := make([]int16, n/2)
			for i := range samples {
				samples[i] = int16(le.Uint16(body[2*i:]))
			}
			return samples, nil
		}
		data = body[min(n+n%2, len(body)):]
	}
	return nil, errors.New("no data")
}

// variants are the recordings and what harness and users make of them: cut off
// in speech at awkward lengths, very quiet, joined with pauses.
func variants(t testing.TB) []recording {
	t.Helper()
	originals := speech(t)
	all := slices.Clone(originals)
	for i, r := range originals {
		cut := len(r.samples) / 2 / Window * Window
		switch i % 3 {
		case 0:
			all = append(all, recording{r.name + " cut to whole windows", r.samples[:cut]})
		case 1:
			all = append(all, recording{r.name + " cut one sample later", r.samples[:cut+1]})
		case 2:
			quiet := slices.Clone(r.samples)
			for i := range quiet {
				quiet[i] /= 16
			}
			all = append(all, recording{r.name + " quiet", quiet})
		}
	}
	return append(all, joined(originals))
}

// joined puts pauses of various lengths between recordings.
func joined(recordings []recording) recording {
	var all []int16
	for _, r := range recordings {
		all = append(all, r.samples...)
		all = append(all, make([]int16, len(all)%20000)...)
	}
	return recording{"all with pauses", all}
}

// silence returns samples of digital silence.
func silence(d time.Duration) []int16 { return make([]int16, d/(time.Second/SampleRate)) }
