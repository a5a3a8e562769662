// Package wer aligns a transcript with its reference and counts the errors.
//
// It takes the position that the alignment is the result and the rate a summary
// of it: every count can be traced to an operation on a named word, ties between
// equally short alignments are broken by a written rule, and a rate that does
// not exist (no reference words) is absent instead of 0, 1 or infinite.
//
// Word counts come from one fixed reading of each side; further readings of a
// span (see [sttbench/scoring/normalize.Span]) can only turn errors into hits.
//
// Everything here is pure: no input or output, no clock, no state that changes.
package wer

import "strings"

// Counts are the numbers behind a word error rate.
// Hits + Sub + Del == RefWords always holds.
type Counts struct {
	RefWords int `json:"ref_words"` // words of the reference's fixed reading
	Hits     int `json:"hits"`      // reference words that were recognised
	Sub      int `json:"sub"`       // reference words replaced by another word
	Del      int `json:"del"`       // reference words without counterpart
	Ins      int `json:"ins"`       // words of the transcript without counterpart
}

// Errors returns Sub + Del + Ins, the edit distance.
func (c Counts) Errors() int { return c.Sub + c.Del + c.Ins }

// WER returns (Sub + Del + Ins) / RefWords. It is a fraction, not a percentage,
// and exceeds 1 when there are more errors than reference words.
//
// Without reference words the rate is 0 if the transcript is empty too.
// Otherwise it does not exist and ok is false (null in JSON); the insertions
// are still in the counts, and [Total] keeps them.
func (c Counts) WER() (rate float64, ok bool) {
	switch {
	case c.RefWords > 0:
		return float64(c.Errors()) / float64(c.RefWords), true
	case c.Errors() == 0:
		return 0, true
	}
	return 0, false
}

func (c *Counts) add(o Counts) {
	c.RefWords += o.RefWords
	c.Hits += o.Hits
	c.Sub += o.Sub
	c.Del += o.Del
	c.Ins += o.Ins
}

// A Kind is the kind of an [Op].
type Kind string

// The kinds of operation.
const (
	Hit Kind = "="
	Sub Kind = "S"
	Del Kind = "D"
	Ins Kind = "I"
)

// An Op is one step of an alignment, in the order of the text.
type Op struct {
	Kind Kind `json:"op"`
	// Ref and Hyp are words of the fixed readings. Each is one word, except in
	// a hit between spans of several readings: there both hold one or more
	// words with a blank between them, and the hit counts for all of Ref's.
	Ref string `json:"ref,omitempty"` // empty in an insertion
	Hyp string `json:"hyp,omitempty"` // empty in a deletion
}

// refWords returns the number of reference words the operation covers.
func (o Op) refWords() int {
	if o.Ref == "" {
		return 0
	}
	return strings.Count(o.Ref, " ") + 1
}

// An Alignment is the outcome of [Align].
type Alignment struct {
	Counts
	Ops []Op `json:"alignment"`
}

// newAlignment counts ops.
func newAlignment(ops []Op) Alignment {
	a := Alignment{Ops: ops}
	for _, op := range ops {
		n := op.refWords()
		a.RefWords += n
		switch op.Kind {
		case Hit:
			a.Hits += n
		case Sub:
			a.Sub++
		case Del:
			a.Del++
		case Ins:
			a.Ins++
		}
	}
	return a
}

// TailWords is the length of the tail in the project's tail-word error.
const TailWords = 3

// A Tail says how the end of a reference was recognised.
type Tail struct {
	RefWords int `json:"ref_words"` // words in the tail, at most those asked for
	Missed   int `json:"missed"`    // of those, substituted or deleted
	// TrailingIns counts words after the last reference word. They are not in
	// Missed: the tail asks whether the end of what was said arrived, so it
	// stays between 0 and RefWords, and invented words stand apart.
	TrailingIns int `json:"trailing_ins"`
}

// Rate returns Missed / RefWords, from 0 to 1; ok is false without reference
// words.
func (t Tail) Rate() (rate float64, ok bool) {
	if t.RefWords == 0 {
		return 0, false
	}
	return float64(t.Missed) / float64(t.RefWords), true
}

// TailError looks at the last min(n, RefWords) reference words. A streaming
// recogniser that answers too early loses these first.
func TailError(a Alignment, n int) Tail {
	t := Tail{RefWords: max(0, min(n, a.RefWords))}
	left := t.RefWords
	atEnd := true
	for i := len(a.Ops) - 1; i >= 0 && (atEnd || left > 0); i-- {
		op := a.Ops[i]
		if op.Kind == Ins {
			if atEnd {
				t.TrailingIns++
			}
			continue
		}
		atEnd = false
		words := min(op.refWords(), left)
		left -= words
		if op.Kind != Hit {
			t.Missed += words
		}
	}
	return t
}
