package endpoint

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"sttbench/record"
)

// Transcript assembles the text of a session from its events, the same way for
// every vendor. Text lives in segments; a segment is fixed text plus a tail that
// may still change. A final extends (Append) or sets (Replace) the fixed text
// and clears the tail; a partial touches the tail only. Segments stand in the
// order in which they were first named and are joined by one space.
//
// The zero value is an empty transcript.
type Transcript struct {
	order    []string
	segments map[string]*segment
	tails    int // segments with a tail that is not blank
	// Revised counts finals that changed text which was final before.
	Revised int
	// Rewritten counts words that were shown and then changed or taken back
	// (flicker), ignoring case and punctuation.
	Rewritten int
}

// segment holds its texts as bytes that grow in place: a flood of small pieces
// must not cost the square of its length.
type segment struct {
	fixed, tail []byte
	join        record.Join // between fixed and tail
	hasTail     bool
}

// Add applies one event. Events without text of their own (ready, ack, …) only
// fix the place of the segment they name.
func (t *Transcript) Add(d record.Decoded) {
	switch d.Kind {
	case record.Partial, record.Final:
	case record.Ack, record.EndOfTurn, record.SpeechStarted:
		if d.Segment != "" {
			t.segment(d.Segment)
		}
		return
	default:
		return
	}
	s := t.segment(d.Segment)
	switch {
	case d.Kind == record.Partial && d.Mode == record.Append:
		s.tail, s.join = join(s.tail, d.Text, d.Join), d.Join // only grows
	case d.Kind == record.Partial:
		t.Rewritten += rewritten(string(s.tail), d.Text)
		s.tail, s.join = append(s.tail[:0], d.Text...), d.Join
	case d.Mode == record.Append:
		t.Rewritten += rewritten(string(s.tail), d.Text)
		s.fixed, s.tail = join(s.fixed, d.Text, d.Join), s.tail[:0]
	default:
		t.Rewritten += rewritten(s.text(), d.Text)
		if len(s.fixed) > 0 && string(s.fixed) != d.Text {
			t.Revised++
		}
		s.fixed, s.tail = append(s.fixed[:0], d.Text...), s.tail[:0]
	}
	if now := len(bytes.TrimSpace(s.tail)) > 0; now != s.hasTail {
		s.hasTail = now
		if now {
			t.tails++
		} else {
			t.tails--
		}
	}
}

// Text is all that is there, final or not.
func (t *Transcript) Text() string { return t.view(segment.text) }

// Fixed is the final text.
func (t *Transcript) Fixed() string {
	return t.view(func(s segment) string { return string(s.fixed) })
}

// HasTail tells whether any text is there that is not final.
func (t *Transcript) HasTail() bool { return t.tails > 0 }

func (t *Transcript) segment(name string) *segment {
	s, ok := t.segments[name]
	if !ok {
		if t.segments == nil {
			t.segments = make(map[string]*segment)
		}
		s = new(segment)
		t.segments[name] = s
		t.order = append(t.order, name)
	}
	return s
}

func (t *Transcript) view(of func(segment) string) string {
	var parts []string
	for _, name := range t.order {
		if text := strings.TrimSpace(of(*t.segments[name])); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

func (s segment) text() string { return string(join(slices.Clone(s.fixed), string(s.tail), s.join)) }

// join puts b behind a.
func join(a []byte, b string, rule record.Join) []byte {
	if rule != record.Verbatim && len(a) > 0 && b != "" {
		a = append(a, ' ')
	}
	return append(a, b...)
}

// rewritten counts the words of before that are not at the same place in after.
func rewritten(before, after string) int {
	old, now := words(before), words(after)
	same := 0
	for same < len(old) && same < len(now) && old[same] == now[same] {
		same++
	}
	// A last word that merely grew ("trans" → "transcript") was not yet said.
	if same == len(old)-1 && same < len(now) && strings.HasPrefix(now[same], old[same]) {
		same++
	}
	return len(old) - same
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return unicode.IsSpace(r) || (unicode.IsPunct(r) && r != '\'')
	})
}
