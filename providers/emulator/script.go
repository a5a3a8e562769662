package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// WordPace is how much audio a word takes where a script gives no times.
const WordPace = 300 * time.Millisecond

// maxScript bounds a script file, in bytes.
const maxScript = 8 << 20

// Script is what the recogniser hears.
type Script struct {
	// Words in order of their ends; they must not overlap.
	Words []Word
	// Repeat says the words again and again, one round after the other.
	Repeat bool
}

// DefaultScript is what is said without a script: one sentence, a word per
// 300 ms of audio, over and over, so that there is text wherever an endpoint is
// forced.
func DefaultScript() *Script {
	s := Say("turn the lights off in the kitchen please")
	s.Repeat = true
	return s
}

// Say is the script that says the words of text at [WordPace].
func Say(text string) *Script {
	s := new(Script)
	for i, w := range strings.Fields(text) {
		at := time.Duration(i) * WordPace
		s.Words = append(s.Words, Word{Text: w, Start: at, End: at + WordPace})
	}
	return s
}

// ReadScript reads a script file, which is plain text (said once, a word per
// 300 ms of audio) or one JSON object:
//
//	{"text": "turn the lights off"}
//	{"words": [{"w": "turn", "start_s": 0.25, "end_s": 0.5}, {"w": "the", "end_s": 0.6}]}
//
// with "repeat": true where it shall be said over and over. Times are seconds of
// audio; a missing start is the end of the word before.
func ReadScript(r io.Reader) (*Script, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	if len(data) > maxScript {
		return nil, fmt.Errorf("script is larger than %d MiB", maxScript>>20)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("script is not UTF-8 text")
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("script is empty")
	}
	if data[0] != '{' {
		return Say(string(data)), nil
	}
	return decodeScript(data)
}

func decodeScript(data []byte) (*Script, error) {
	var file struct {
		Text  string `json:"text"`
		Words []struct {
			Text  string   `json:"w"`
			Start *float64 `json:"start_s"`
			End   float64  `json:"end_s"`
		} `json:"words"`
		Repeat bool `json:"repeat"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if dec.More() {
		return nil, errors.New("script: more than one JSON object")
	}
	if (file.Text != "") == (len(file.Words) > 0) {
		return nil, errors.New(`script: want either "text" or "words"`)
	}
	if file.Text != "" {
		s := Say(file.Text)
		s.Repeat = file.Repeat
		return s, s.check()
	}
	s := &Script{Repeat: file.Repeat}
	var last time.Duration
	for _, w := range file.Words {
		word := Word{Text: strings.TrimSpace(w.Text), Start: last, End: seconds(w.End)}
		if w.Start != nil {
			word.Start = seconds(*w.Start)
		}
		last = word.End
		s.Words = append(s.Words, word)
	}
	return s, s.check()
}

// seconds converts with the cut that keeps absurd times from overflowing.
func seconds(s float64) time.Duration {
	const day = 24 * 3600
	return time.Duration(min(max(s, -1), day) * float64(time.Second))
}

// check refuses scripts that the recogniser could not count through.
func (s *Script) check() error {
	if len(s.Words) == 0 {
		return errors.New("script has no words")
	}
	var last time.Duration
	for i, w := range s.Words {
		if w.Text == "" {
			return fmt.Errorf("script: word %d is empty", i+1)
		}
		if w.Start < last || w.End <= w.Start {
			return fmt.Errorf("script: word %d (%q): want end of the word before ≤ start < end", i+1, w.Text)
		}
		last = w.End
	}
	return nil
}

// word is the i-th word that is said, rounds included.
func (s *Script) word(i int) (Word, bool) {
	n := len(s.Words)
	if n == 0 || (i >= n && !s.Repeat) {
		return Word{}, false
	}
	w := s.Words[i%n]
	shift := time.Duration(i/n) * s.Words[n-1].End
	w.Start += shift
	w.End += shift
	return w, true
}

// LoadScript reads what sessions hear from a file: a dataset's manifest (.yaml,
// .yml; see [Manifest]) or a script (see [ReadScript]).
func (set *Settings) LoadScript(path string) error {
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".yaml" || ext == ".yml" {
		m, err := LoadManifest(path)
		if err != nil {
			return err
		}
		set.Manifest = m
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := ReadScript(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	set.Script = s
	return nil
}
