package endpoint

import (
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
	// Revised counts finals that changed text which was final before.
	Revised int
	// Rewritten counts words that were shown and then changed or taken back
	// (flicker), ignoring case and punctuation.
	Rewritten int
}

type segment struct {
	fixed, tail string
	join        record.Join // between fixed and tail
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
	before := s.text()
	switch {
	case d.Kind == record.Partial && d.Mode == record.Append:
		s.tail = join(s.tail, d.Text, d.Join)
		s.join = d.Join
	case d.Kind == record.Partial:
		s.tail, s.join = d.Text, d.Join
	case d.Mode == record.Append:
		s.fixed, s.tail = join(s.fixed, d.Text, d.Join), ""
	default:
		if s.fixed != "" && s.fixed != d.Text {
			t.Revised++
		}
		s.fixed, s.tail = d.Text, ""
	}
	t.Rewritten += rewritten(before, s.text())
}

// Text is all that is there, final or not.
func (t *Transcript) Text() string { return t.view(segment.text) }

// Fixed is the final text.
func (t *Transcript) Fixed() string { return t.view(func(s segment) string { return s.fixed }) }

// HasTail tells whether any text is there that is not final.
func (t *Transcript) HasTail() bool {
	for _, s := range t.segments {
		if strings.TrimSpace(s.tail) != "" {
			return true
		}
	}
	return false
}

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

func (s segment) text() string { return join(s.fixed, s.tail, s.join) }

func join(a, b string, rule record.Join) string {
	if rule == record.Verbatim || a == "" || b == "" {
		return a + b
	}
	return a + " " + b
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
