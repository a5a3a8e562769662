package vosk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// reply is what the server may answer: a partial has the key partial, a final
// the key text or, with max_alternatives, the key alternatives.
type reply struct {
	Partial      *string       `json:"partial"`
	Text         *string       `json:"text"`
	Result       []word        `json:"result"`
	Alternatives []alternative `json:"alternatives"`
}

type alternative struct {
	Text   string `json:"text"`
	Result []word `json:"result"`
}

type word struct {
	Word  string   `json:"word"`
	Start *float64 `json:"start"` // seconds since the connection's first sample
	End   *float64 `json:"end"`
	Conf  *float64 `json:"conf"`
}

// Decode implements [providers.Session].
func (s *session) Decode(_ time.Time, f providers.Frame) ([]record.Decoded, []providers.Frame, error) {
	switch f.Op {
	case record.Text:
		events, err := s.reply(f.Data)
		return events, nil, err
	case record.CloseOp:
		return []record.Decoded{s.closed(f)}, nil, nil
	case record.Ping:
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("vosk: unexpected %s frame", f.Op)
}

// reply counts first and parses then: a reply that cannot be read has still
// answered its message. Text that breaks off is none of the server's replies,
// since a WebSocket message arrives whole.
func (s *session) reply(data []byte) ([]record.Decoded, error) {
	if d := bytes.TrimSpace(data); len(d) < 2 || d[len(d)-1] != '}' && d[len(d)-1] != ']' {
		return nil, errors.New("vosk: text is not a reply: it does not end like JSON")
	}
	asked := s.ledger.answer()
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("vosk: reply to %s: %w", asked, err)
	}
	text, words := "", r.Result
	switch {
	case r.Text != nil:
		text = *r.Text
	case len(r.Alternatives) > 0:
		text, words = r.Alternatives[0].Text, r.Alternatives[0].Result
	case r.Partial == nil:
		return nil, fmt.Errorf("vosk: reply to %s is neither a partial nor a final", asked)
	case asked != forAudio:
		return nil, fmt.Errorf("vosk: reply to %s is a partial: the server does not answer each message once", asked)
	default:
		return []record.Decoded{{Kind: record.Partial, Mode: record.Replace, Join: record.JoinSpace, Text: *r.Partial}}, nil
	}
	return final(asked, strings.TrimSpace(text), words)
}

// final reads the text of an utterance. Without text it means nothing, since the
// server also sends that form while it is not decoding; but a reset and an end
// are answered by it all the same.
func final(asked question, text string, words []word) ([]record.Decoded, error) {
	var events []record.Decoded
	switch {
	case text != "":
		e := record.Decoded{Kind: record.Final, Mode: record.Append, Join: record.JoinSpace, Text: text}
		var err error
		if e.Words, err = convert(words); err != nil {
			return nil, fmt.Errorf("vosk: reply to %s: %w", asked, err)
		}
		if n := len(e.Words); n > 0 {
			e.AudioStart, e.AudioEnd = e.Words[0].Start, e.Words[n-1].End
		}
		events = append(events, e)
	case asked == forReset:
		events = append(events, record.Decoded{Kind: record.Ack})
	}
	switch asked {
	case forReset:
		events[0].Closes, events[0].Cause = true, "reset"
	case forEOF:
		events = append(events, record.Decoded{Kind: record.Done, Cause: "eof"})
	}
	return events, nil
}

func convert(words []word) ([]record.Word, error) {
	var out []record.Word
	for _, w := range words {
		start, err := position(w.Start)
		if err != nil {
			return nil, err
		}
		end, err := position(w.End)
		if err != nil {
			return nil, err
		}
		out = append(out, record.Word{Text: w.Word, Start: start, End: end, Confidence: w.Conf})
	}
	return out, nil
}

// position turns seconds into an audio position; nil stays nil.
func position(seconds *float64) (*time.Duration, error) {
	if seconds == nil {
		return nil, nil
	}
	const longest = 1e6 // seconds; far beyond any stream, far below overflow
	if !(*seconds >= 0 && *seconds <= longest) {
		return nil, errors.New("word time is out of range")
	}
	d := time.Duration(math.Round(*seconds * float64(time.Second)))
	return &d, nil
}

// closed reads the close frame, by which alone the server reports failures.
func (s *session) closed(f providers.Frame) record.Decoded {
	const normal, internalError = 1000, 1011
	if f.Code == normal {
		return record.Decoded{Kind: record.Done, Cause: "close 1000"}
	}
	cause := strings.TrimSpace(fmt.Sprintf("close %d %s", f.Code, strings.ToValidUTF8(string(f.Data), "")))
	if e := s.ledger.seen.next.Load(); f.Code == internalError && e != nil && e.what == forReset {
		cause += ": the reset was not answered; servers other than the Python one (asr_server.py) do not know it"
	}
	return record.Decoded{Kind: record.Error, Cause: cause}
}
