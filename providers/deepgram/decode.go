package deepgram

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// message is every message the server sends. The three booleans are missing in
// some and then false.
type message struct {
	Type         string   `json:"type"`
	Start        *float64 `json:"start"`
	Duration     *float64 `json:"duration"`
	IsFinal      bool     `json:"is_final"`
	SpeechFinal  bool     `json:"speech_final"`
	FromFinalize bool     `json:"from_finalize"`
	ChannelIndex []int    `json:"channel_index"`
	// Channel is an object in Results and a list in UtteranceEnd and
	// SpeechStarted.
	Channel     json.RawMessage `json:"channel"`
	LastWordEnd *float64        `json:"last_word_end"`
	Timestamp   *float64        `json:"timestamp"`
	Description string          `json:"description"`
	Message     string          `json:"message"`
	Variant     string          `json:"variant"`
}

type channel struct {
	Alternatives []struct {
		Transcript string `json:"transcript"`
		Words      []struct {
			Word       string   `json:"word"`
			Punctuated string   `json:"punctuated_word"`
			Start      *float64 `json:"start"`
			End        *float64 `json:"end"`
			Confidence *float64 `json:"confidence"`
		} `json:"words"`
	} `json:"alternatives"`
}

// Decode implements providers.Session.
func (s *session) Decode(_ time.Time, f providers.Frame) ([]record.Decoded, []providers.Frame, error) {
	switch f.Op {
	case record.CloseOp:
		return []record.Decoded{closed(f.Code, string(f.Data))}, nil, nil
	case record.Text:
	default:
		return nil, nil, fmt.Errorf("deepgram: unexpected %s frame of %d bytes", f.Op, len(f.Data))
	}
	var m message
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return nil, nil, fmt.Errorf("deepgram: malformed message: %w", err)
	}
	d, err := decode(&m)
	if err != nil {
		return nil, nil, fmt.Errorf("deepgram: malformed message: %w", err)
	}
	return []record.Decoded{d}, nil, nil
}

func decode(m *message) (record.Decoded, error) {
	switch m.Type {
	case "Results":
		return results(m)
	case "UtteranceEnd":
		return record.Decoded{Kind: record.EndOfTurn, Cause: "utterance_end", AudioEnd: position(m.LastWordEnd)}, nil
	case "SpeechStarted":
		return record.Decoded{Kind: record.SpeechStarted, Cause: "vad_events", AudioStart: position(m.Timestamp)}, nil
	case "Metadata":
		return record.Decoded{Kind: record.Done, Cause: "metadata"}, nil
	case "Error":
		return record.Decoded{
			Kind: record.Error, Cause: cmp.Or(m.Variant, "error"),
			Text: strings.TrimSpace(m.Description + " " + m.Message),
		}, nil
	case "":
		return record.Decoded{}, errors.New("no type")
	}
	return record.Decoded{Kind: record.Warning, Cause: "unknown message type " + strconv.Quote(m.Type)}, nil
}

// results reads the one message that carries text. The whole stream is one
// segment: finals extend it, interims are its tail. An empty final has its
// meaning too: it locks a window in which nothing was said, and clears the tail.
func results(m *message) (record.Decoded, error) {
	if len(m.ChannelIndex) > 0 && m.ChannelIndex[0] != 0 {
		return record.Decoded{Kind: record.Warning, Cause: "result for channel " + strconv.Itoa(m.ChannelIndex[0])}, nil
	}
	var c channel
	if m.Channel == nil {
		return record.Decoded{}, errors.New("results without a channel")
	}
	if err := json.Unmarshal(m.Channel, &c); err != nil {
		return record.Decoded{}, err
	}
	d := record.Decoded{
		Kind: record.Partial, Mode: record.Replace, Join: record.JoinSpace, Cause: "interim",
		Closes: m.FromFinalize, AudioStart: position(m.Start),
	}
	if m.IsFinal {
		d.Kind, d.Mode, d.Cause = record.Final, record.Append, "is_final"
	}
	if m.SpeechFinal {
		d.Cause = "speech_final"
	}
	if m.FromFinalize {
		d.Cause = "from_finalize"
	}
	// The window is locked up to its end, whether or not a word reaches it.
	if m.Start != nil && m.Duration != nil && *m.Duration >= 0 {
		end := *m.Start + *m.Duration
		d.AudioEnd = position(&end)
	}
	if len(c.Alternatives) == 0 {
		return d, nil
	}
	best := c.Alternatives[0]
	d.Text = best.Transcript
	for _, w := range best.Words {
		d.Words = append(d.Words, record.Word{
			Text: cmp.Or(w.Punctuated, w.Word), Start: position(w.Start), End: position(w.End), Confidence: w.Confidence,
		})
	}
	return d, nil
}

// position converts seconds of audio; nil for what is missing or cannot be one.
func position(seconds *float64) *time.Duration {
	const most = 1e8 // three years: no stream is that long, and it fits
	if seconds == nil || *seconds < 0 || *seconds > most {
		return nil
	}
	d := time.Duration(math.Round(*seconds * float64(time.Second)))
	return &d
}

// closed reads a close frame. Deepgram puts its own code at the head of the
// reason: DATA-0000 for audio that it cannot decode, NET-0000 for a failure on
// its side, NET-0001 when neither audio nor KeepAlive came for 10 s.
func closed(code int, reason string) record.Decoded {
	if code == 1000 || code == 1005 {
		return record.Decoded{Kind: record.Done, Cause: fmt.Sprintf("close %d", code)}
	}
	d := record.Decoded{Kind: record.Error, Cause: fmt.Sprintf("close %d", code), Text: strings.ToValidUTF8(reason, "")}
	for _, known := range []string{"DATA-0000", "NET-0000", "NET-0001"} {
		if strings.Contains(reason, known) {
			d.Cause = known
		}
	}
	if d.Cause == "DATA-0000" {
		d.Reject = record.RejectBadRequest
	}
	return d
}

// reject reads a refused handshake: a JSON body in an older and a newer shape,
// else the header dg-error.
func reject(resp *providers.Response, now time.Time) error {
	var body struct {
		Code     string `json:"err_code"`
		Text     string `json:"err_msg"`
		Category string `json:"category"`
		Message  string `json:"message"`
		Details  string `json:"details"`
	}
	_ = json.Unmarshal(resp.Body, &body) // another shape is left to providers.Reject
	detail := joinNonEmpty(": ", cmp.Or(body.Code, body.Category), cmp.Or(body.Text, body.Message), body.Details)
	if detail == "" && len(resp.Body) == 0 {
		detail = resp.Header.Get("dg-error")
	}
	r := providers.Reject(resp, cut(detail), now)
	if id := resp.Header.Get("dg-request-id"); id != "" {
		r.Request = cut(id)
	}
	return r
}

func joinNonEmpty(sep string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, sep)
}

func cut(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
