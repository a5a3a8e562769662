// Package normalize turns transcripts into the words that a word error rate
// compares.
//
// It takes the position that a normalizer is part of a measurement: the same
// audio scored under two normalizers gives two numbers, and neither is "the"
// word error rate. So every rule set is a named, versioned [Profile] with a
// content hash, and the three are stored beside each score. A rule that changes
// is a new version, never a silent edit.
//
// A profile does not promise one canonical string. Spoken forms can have
// several written forms ("ninety-nine ninety-nine" is 99.99 and 9999, which
// differ from each other), so [Profile.Tokens] gives spans, each with one fixed
// reading and any number of further ones. Package wer aligns them.
//
// Everything here is pure: no input or output, no clock, no state that changes.
package normalize

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A Span is the smallest piece of text that is compared as a whole.
//
// A word is at least one character and holds no blank; a reading is at least
// one word.
type Span struct {
	// Words is the fixed reading. It alone decides how many words the span
	// counts for, so a word count never depends on the other side.
	Words []string
	// Also holds further readings, each equal to the fixed one in meaning but
	// not necessarily to another span that shares a reading. Nil for most.
	Also [][]string
}

// A Profile is a named set of normalization rules. Get one from [Lookup] or
// [Profiles]; the zero value has no rules and must not be used. A Profile may
// be used by many goroutines at once.
type Profile struct {
	Name    string // as in --profile
	Version int    // goes up with every change of the output, for any input

	// content is what the hash covers besides name and version: the written
	// rules, then the tables, if any.
	content []string
	// text is the normalizer: words with one blank between them, except where
	// a profile copies another program to the last blank.
	text func(string) string
	// spans splits text into spans with several readings. Nil: every word of
	// text is a span with one reading.
	spans func(string) []Span
}

// all lists the profiles, sorted by name. It is a function so that no caller
// can change what another one sees.
func all() []Profile {
	return []Profile{plain()}
}

// Profiles returns every profile, sorted by name.
func Profiles() []Profile { return all() }

// Lookup returns the profile called name. The error for an unknown name lists
// the known ones.
func Lookup(name string) (Profile, error) {
	var known []string
	for _, p := range all() {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	slices.Sort(known)
	return Profile{}, fmt.Errorf("unknown normalization profile %q (known: %s)", name, strings.Join(known, ", "))
}

// Normalize returns the text of the fixed reading of s. Bytes that are not
// UTF-8 count as U+FFFD.
func (p Profile) Normalize(s string) string { return p.text(s) }

// Tokens returns the spans of s. The fixed readings, joined by blanks, are the
// words of [Profile.Normalize].
func (p Profile) Tokens(s string) []Span {
	if p.spans != nil {
		return p.spans(s)
	}
	words := strings.Fields(p.text(s))
	spans := make([]Span, len(words))
	for i := range words {
		spans[i].Words = words[i : i+1 : i+1]
	}
	return spans
}

// Hash returns the SHA-256 of everything that decides the output, in lower-case
// hexadecimal: name, version, rules, tables, and the versions of the Unicode
// data the program was built with.
func (p Profile) Hash() string {
	h := sha256.New()
	parts := []string{p.Name, fmt.Sprint(p.Version), unicode.Version, norm.Version}
	for _, part := range append(parts, p.content...) {
		// The length in front keeps "ab"+"c" and "a"+"bc" apart.
		fmt.Fprintf(h, "%d:", len(part))
		io.WriteString(h, part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// String names the profile as scores store it: name, version and the first
// twelve digits of the hash, as in "plain@1+0123456789ab".
func (p Profile) String() string {
	return fmt.Sprintf("%s@%d+%.12s", p.Name, p.Version, p.Hash())
}
