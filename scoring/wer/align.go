package wer

import (
	"fmt"
	"slices"
	"strings"

	"sttbench/scoring/normalize"
)

// Limits of [Align]. Larger input is refused with a [*TooLongError] before the
// table is built.
const (
	// MaxWords is the largest number of words (of the fixed reading) on either
	// side: some five hours of speech.
	MaxWords = 50_000
	// MaxCells is the largest product of both sides' word counts when a span
	// has several readings or words; each cell takes two bytes. Texts without
	// such spans need about (words of the reference)/64 × √(words of the
	// transcript) × 48 bytes and the operations, 20 MB in all at MaxWords.
	MaxCells = 1 << 27
	// MaxReading is the largest number of words in a reading of a span.
	MaxReading = 63
)

// A TooLongError says that two texts are too long to align.
type TooLongError struct {
	RefWords, HypWords int
	Readings           bool // whether MaxCells applied
}

func (e *TooLongError) Error() string {
	if e.Readings {
		return fmt.Sprintf("texts too long to align: %d reference words × %d words with several readings exceed %d cells; cut the item into shorter ones",
			e.RefWords, e.HypWords, MaxCells)
	}
	return fmt.Sprintf("texts too long to align: %d reference words and %d words, at most %d each; cut the item into shorter ones",
		e.RefWords, e.HypWords, MaxWords)
}

// Align finds an alignment with the fewest edits. Substituting, deleting and
// inserting a word cost 1 each. Words match if they are equal. A span also
// matches any run of spans of the other side, at no cost, if one of its readings
// equals one reading of each of them, joined; edits apply to fixed readings only.
//
// Several alignments can be the shortest. The one returned is read from the end
// of both texts; at each step the first of these that keeps it shortest is taken:
//
//  1. hit of two equal words;
//  2. hit of spans by their readings, the one with the fewest words, then with
//     the fewest reference words;
//  3. substitution;
//  4. deletion or insertion; if both would do, of the word that is greater in
//     byte order.
//
// The last rule is arbitrary on purpose: it does not prefer a side, so for texts
// without further readings, swapping reference and transcript mirrors the
// alignment and swaps Del with Ins.
//
// The error is a [*TooLongError], or says which span breaks the rules of
// [normalize.Span].
func Align(ref, hyp []normalize.Span) (Alignment, error) {
	r, err := newSide("reference", ref)
	if err != nil {
		return Alignment{}, err
	}
	h, err := newSide("transcript", hyp)
	if err != nil {
		return Alignment{}, err
	}
	if len(r.words) > MaxWords || len(h.words) > MaxWords {
		return Alignment{}, &TooLongError{RefWords: len(r.words), HypWords: len(h.words)}
	}
	plain := r.plain && h.plain
	if !plain && int64(len(r.words))*int64(len(h.words)) > MaxCells {
		return Alignment{}, &TooLongError{RefWords: len(r.words), HypWords: len(h.words), Readings: true}
	}
	in := make(interner, len(r.words))
	r.ids, h.ids = in.numbers(r.words), in.numbers(h.words)
	if plain {
		return newAlignment(alignWords(r, h)), nil
	}
	return newAlignment(alignSpans(r, h, in)), nil
}

// A side is one text, ready for alignment.
type side struct {
	spans []normalize.Span
	words []string // fixed reading of the whole text
	ids   []int32  // of words; equal words have equal numbers on both sides
	plain bool     // every span is one word with one reading
}

func newSide(name string, spans []normalize.Span) (*side, error) {
	s := &side{spans: spans, plain: true, words: make([]string, 0, len(spans))}
	for i, span := range spans {
		if err := checkReading(span.Words); err != nil {
			return nil, fmt.Errorf("%s span %d: %w", name, i, err)
		}
		for _, r := range span.Also {
			if err := checkReading(r); err != nil {
				return nil, fmt.Errorf("%s span %d: %w", name, i, err)
			}
		}
		s.words = append(s.words, span.Words...)
		s.plain = s.plain && len(span.Words) == 1 && len(span.Also) == 0
	}
	return s, nil
}

func checkReading(words []string) error {
	if len(words) == 0 || len(words) > MaxReading {
		return fmt.Errorf("a reading has %d words, want 1 to %d", len(words), MaxReading)
	}
	for _, w := range words {
		if w == "" || strings.Contains(w, " ") {
			return fmt.Errorf("the reading %q holds a word that is empty or has a blank", words)
		}
	}
	return nil
}

// An interner numbers words, so that comparing two is comparing numbers.
type interner map[string]int32

func (in interner) numbers(words []string) []int32 {
	out := make([]int32, len(words))
	for i, w := range words {
		id, ok := in[w]
		if !ok {
			id = int32(len(in))
			in[w] = id
		}
		out[i] = id
	}
	return out
}

// A tracer builds the operations of an alignment from the end.
type tracer struct {
	ref, hyp *side
	i, j     int // words not yet covered
	ops      []Op
}

func newTracer(ref, hyp *side) *tracer {
	n, m := len(ref.words), len(hyp.words)
	return &tracer{ref: ref, hyp: hyp, i: n, j: m, ops: make([]Op, 0, max(n, m))}
}

func (t *tracer) hit(ref, hyp int) {
	t.ops = append(t.ops, Op{
		Kind: Hit,
		Ref:  strings.Join(t.ref.words[t.i-ref:t.i], " "),
		Hyp:  strings.Join(t.hyp.words[t.j-hyp:t.j], " "),
	})
	t.i -= ref
	t.j -= hyp
}

func (t *tracer) sub() {
	t.ops = append(t.ops, Op{Kind: Sub, Ref: t.ref.words[t.i-1], Hyp: t.hyp.words[t.j-1]})
	t.i--
	t.j--
}

func (t *tracer) del() {
	t.ops = append(t.ops, Op{Kind: Del, Ref: t.ref.words[t.i-1]})
	t.i--
}

func (t *tracer) ins() {
	t.ops = append(t.ops, Op{Kind: Ins, Hyp: t.hyp.words[t.j-1]})
	t.j--
}

// gap takes a deletion or an insertion, by rule 4 if both would do.
func (t *tracer) gap(canDel, canIns bool) {
	if canDel && canIns {
		canDel = t.ref.words[t.i-1] > t.hyp.words[t.j-1]
	}
	if canDel {
		t.del()
	} else {
		t.ins()
	}
}

// finish takes what is left at the start of one side and returns the
// operations in the order of the text.
func (t *tracer) finish() []Op {
	for t.i > 0 {
		t.del()
	}
	for t.j > 0 {
		t.ins()
	}
	slices.Reverse(t.ops)
	return t.ops
}
