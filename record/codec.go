package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The types of a record's lines.
const (
	lineOpen    = "open"
	lineTurns   = "turns"
	lineConnect = "connect"
	lineChunk   = "chunk"
	lineMark    = "mark"
	lineEvent   = "event"
	lineDelay   = "delay"
	lineSent    = "sent"
	lineClient  = "client"
	lineClose   = "close"
)

// MaxLine is the longest line that [Read] accepts, in bytes. Raw frames are
// capped far below it when they are recorded; long files can have many turns.
const MaxLine = 16 << 20

// ErrTruncated reports a record without its last line: the process that wrote
// it died. What was read up to there is returned with it.
var ErrTruncated = errors.New("record is truncated: no close line")

// SyntaxError reports the line of a record that could not be read.
type SyntaxError struct {
	Line int // counts from 1
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("record line %d: %v", e.Line, e.Err) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// Write writes s as JSON Lines: open, turns, connect, then chunks, marks and
// events by stamp, then delays, sent, client and close. The same session always gives the same
// bytes.
func Write(w io.Writer, s *Session) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	enc.SetEscapeHTML(false)
	var err error
	put := func(line any) {
		if err == nil {
			err = enc.Encode(line)
		}
	}
	put(struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
		Open
	}{lineOpen, Version, s.Open})
	put(struct {
		Type string `json:"type"`
		Turns
	}{lineTurns, s.Turns})
	put(struct {
		Type string `json:"type"`
		Connect
	}{lineConnect, s.Connect})
	putStream(s, put)
	for _, d := range s.Delays {
		put(struct {
			Type string `json:"type"`
			Delay
		}{lineDelay, d})
	}
	put(struct {
		Type string `json:"type"`
		Sent
	}{lineSent, s.Sent})
	put(struct {
		Type string `json:"type"`
		Client
	}{lineClient, s.Client})
	put(struct {
		Type string `json:"type"`
		Close
	}{lineClose, s.Close})
	if err == nil {
		err = bw.Flush()
	}
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// putStream merges the three lists by stamp, so that the file reads as it
// happened. Each list keeps its own order.
func putStream(s *Session, put func(any)) {
	chunks, marks, events := s.Chunks, s.Marks, s.Events
	const never = time.Duration(1<<63 - 1)
	for len(chunks)+len(marks)+len(events) > 0 {
		c, m, e := never, never, never
		if len(chunks) > 0 {
			c = chunks[0].Start
		}
		if len(marks) > 0 {
			m = marks[0].F0
		}
		if len(events) > 0 {
			e = events[0].At()
		}
		switch {
		case len(chunks) > 0 && c <= m && c <= e:
			put(struct {
				Type string `json:"type"`
				Chunk
			}{lineChunk, chunks[0]})
			chunks = chunks[1:]
		case len(marks) > 0 && m <= e:
			put(struct {
				Type string `json:"type"`
				Mark
			}{lineMark, marks[0]})
			marks = marks[1:]
		default:
			put(struct {
				Type string `json:"type"`
				Event
			}{lineEvent, events[0]})
			events = events[1:]
		}
	}
}

// Read reads one record. Errors are *[SyntaxError], or [ErrTruncated] together
// with the part that is there. Keys that this version does not know are refused,
// so that a typing error in a hand-written record cannot change a result
// silently.
func Read(r io.Reader) (*Session, error) {
	s := new(Session)
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, MaxLine)
	var closed bool
	n := 0
	for sc.Scan() {
		n++
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		if closed {
			return nil, &SyntaxError{n, errors.New("line after the close line")}
		}
		typ, err := readLine(s, line, n == 1)
		if err != nil {
			return nil, &SyntaxError{n, err}
		}
		closed = typ == lineClose
	}
	if err := sc.Err(); err != nil {
		return nil, &SyntaxError{n + 1, err}
	}
	if n == 0 {
		return nil, &SyntaxError{1, errors.New("record is empty")}
	}
	if !closed {
		return s, ErrTruncated
	}
	return s, s.check()
}

func readLine(s *Session, line []byte, first bool) (string, error) {
	var head struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return "", err
	}
	if first != (head.Type == lineOpen) {
		return "", fmt.Errorf("type %q: the open line must come first, and once", head.Type)
	}
	switch head.Type {
	case lineOpen:
		if head.Version < 1 || head.Version > Version {
			return "", fmt.Errorf("record version %d: this sttbench reads versions 1 to %d", head.Version, Version)
		}
		return head.Type, strict(line, &struct {
			Type    string `json:"type"`
			Version int    `json:"version"`
			*Open
		}{Open: &s.Open})
	case lineTurns:
		return head.Type, strict(line, &struct {
			Type string `json:"type"`
			*Turns
		}{Turns: &s.Turns})
	case lineConnect:
		return head.Type, strict(line, &struct {
			Type string `json:"type"`
			*Connect
		}{Connect: &s.Connect})
	case lineChunk:
		c := new(Chunk)
		err := strict(line, &struct {
			Type string `json:"type"`
			*Chunk
		}{Chunk: c})
		s.Chunks = append(s.Chunks, *c)
		return head.Type, err
	case lineMark:
		m := new(Mark)
		err := strict(line, &struct {
			Type string `json:"type"`
			*Mark
		}{Mark: m})
		s.Marks = append(s.Marks, *m)
		return head.Type, err
	case lineEvent:
		e := new(Event)
		err := strict(line, &struct {
			Type string `json:"type"`
			*Event
		}{Event: e})
		s.Events = append(s.Events, *e)
		return head.Type, err
	case lineDelay:
		d := new(Delay)
		err := strict(line, &struct {
			Type string `json:"type"`
			*Delay
		}{Delay: d})
		s.Delays = append(s.Delays, *d)
		return head.Type, err
	case lineClient:
		return head.Type, strict(line, &struct {
			Type string `json:"type"`
			*Client
		}{Client: &s.Client})
	case lineSent:
		return head.Type, strict(line, &struct {
			Type string `json:"type"`
			*Sent
		}{Sent: &s.Sent})
	case lineClose:
		return head.Type, strict(line, &struct {
			Type string `json:"type"`
			*Close
		}{Close: &s.Close})
	}
	return "", fmt.Errorf("unknown line type %q", head.Type)
}

func strict(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// check refuses records whose parts contradict each other, because the rules
// that read them rely on it.
func (s *Session) check() error {
	for i, m := range s.Marks {
		if m.Turn < 0 || m.Turn >= len(s.Turns.List) {
			return fmt.Errorf("record: mark %d names turn %d of %d", i, m.Turn, len(s.Turns.List))
		}
		if m.T0 < m.F0 {
			return fmt.Errorf("record: mark %d: t0 lies before f0", i)
		}
		if i > 0 && (m.F0 < s.Marks[i-1].F0 || m.Turn <= s.Marks[i-1].Turn) {
			return fmt.Errorf("record: mark %d is out of order", i)
		}
	}
	if s.Open.Item.Duration < 0 || s.Open.Item.Weight < 0 {
		return fmt.Errorf("record: item %s: negative duration or weight", s.Open.Item.ID)
	}
	if err := s.checkWords(); err != nil {
		return err
	}
	for i, t := range s.Turns.List {
		if t.SE < t.Start || t.EOS < t.SE {
			return fmt.Errorf("record: turn %d: want start ≤ se ≤ eos", i)
		}
	}
	return nil
}

// checkWords refuses words of a closed list that are not in it.
func (s *Session) checkWords() error {
	var err error
	one := func(what, got string, of ...string) {
		if err == nil && got != "" && !slices.Contains(of, got) {
			err = fmt.Errorf("record: %s %q: want one of %s", what, got, strings.Join(of, ", "))
		}
	}
	c := s.Close
	one("how", string(c.How), string(Settled), string(Remote), string(Failed), string(Cancelled))
	one("phase", string(c.Phase), string(PhasePrepare), string(PhaseDNS), string(PhaseTCP), string(PhaseTLS),
		string(PhaseUpgrade), string(PhaseReady), string(PhaseStream), string(PhaseFinish))
	rejects := []string{string(RejectAuth), string(RejectQuota), string(RejectRate), string(RejectBadRequest), string(RejectServer)}
	one("reject", string(c.Reject), rejects...)
	for _, d := range s.Delays {
		one("delay kind", string(d.Kind), string(DelayWrite), string(DelayCanary))
	}
	for _, e := range s.Events {
		one("op", string(e.Op), string(Text), string(Binary), string(Proto), string(Ping), string(HalfClose), string(CloseOp))
		for _, d := range e.Decoded {
			one("event kind", string(d.Kind), string(Ready), string(Partial), string(Final), string(Ack), string(EndOfTurn),
				string(SpeechStarted), string(Reopen), string(Warning), string(Error), string(Done))
			one("mode", string(d.Mode), string(Replace), string(Append))
			one("join", string(d.Join), string(JoinSpace), string(Verbatim))
			one("reject", string(d.Reject), rejects...)
		}
	}
	return err
}

func hasText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) >= 0
}
