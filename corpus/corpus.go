// Package corpus holds what a benchmark speaks to a provider: datasets of audio
// files with reference texts, and the decoding of those files to mono PCM.
//
// Its stance: a benchmark must know exactly which audio it has streamed. So an
// item is identified by a name that is safe in a file system and by the hash of
// its bytes; formats are told by content, not by file name; a file is decoded
// completely or refused with the reason; and headers are never believed further
// than the size of the file. The only damage that is let pass is a WAV file whose
// header states a wrong length, because programs that write WAV to a pipe cannot
// do better.
//
// Nothing here is quick enough, or quiet enough in memory, to run beside a timed
// session: decode and resample before it starts.
package corpus

import (
	"crypto/sha256"
	"fmt"
	"io"

	"sttbench/regular"
)

// Dataset is a list of items under one name, as a manifest gives it.
type Dataset struct {
	Name     string
	Version  string
	Language string // language tag of the items that have none of their own
	Items    []Item // at least one, in the order of the manifest
}

// Item is one audio file with its reference text and the facts needed to score it.
type Item struct {
	Dataset   string   `json:"dataset"`
	ID        string   `json:"id"`        // unique in the dataset, also ignoring case; safe as a file name
	Audio     string   `json:"audio"`     // absolute path
	Reference string   `json:"reference"` // what is said; empty for an item without speech
	Tags      []string `json:"tags"`      // without repetition
	Recording string   `json:"recording"` // the file it was cut from: items of one recording are not independent
	Weight    float64  `json:"weight"`    // factor in weighted averages, ≥ 0
	Language  string   `json:"language"`  // language tag such as en or en-US
}

// Hash reads the audio file and returns "sha256:" and the hexadecimal SHA-256 of
// its bytes. It is not cached, so that it always speaks of the file as it is now.
// The error is an [*AudioError].
func (it Item) Hash() (string, error) {
	f, _, err := regular.Open(it.Audio)
	if err != nil {
		return "", &AudioError{Path: it.Audio, Err: err}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", &AudioError{Path: it.Audio, Err: regular.WithoutPath(err)}
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}
