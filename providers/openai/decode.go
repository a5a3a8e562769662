package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// serverEvent is the union of the server events that mean something to us.
type serverEvent struct {
	Type         string    `json:"type"`
	ItemID       string    `json:"item_id"`
	Delta        string    `json:"delta"`
	Transcript   string    `json:"transcript"`
	AudioStartMS *float64  `json:"audio_start_ms"` // since the session's first sample
	AudioEndMS   *float64  `json:"audio_end_ms"`
	Error        *apiError `json:"error"`
}

type apiError struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// EventID is the id of the client event that failed.
	EventID string `json:"event_id"`
}

// fatal maps the error codes after which the vendor will not serve the session.
var fatal = map[string]record.Reject{
	"invalid_api_key":         record.RejectAuth,
	"insufficient_quota":      record.RejectQuota,
	"rate_limit_exceeded":     record.RejectRate,
	"model_not_found":         record.RejectBadRequest,
	"invalid_model":           record.RejectBadRequest,
	"missing_model":           record.RejectBadRequest,
	"beta_api_shape_disabled": record.RejectBadRequest,
}

const (
	codeExpired     = "session_expired"
	codeCommitEmpty = "input_audio_buffer_commit_empty"
)

// Decode implements [providers.Session].
func (s *session) Decode(_ time.Time, f providers.Frame) ([]record.Decoded, []providers.Frame, error) {
	switch f.Op {
	case record.Text:
	case record.CloseOp:
		return []record.Decoded{s.closed(f)}, nil, nil
	case record.Ping:
		return nil, nil, nil
	default:
		return nil, nil, fmt.Errorf("openai: unexpected %s frame", f.Op)
	}
	var e serverEvent
	if err := json.Unmarshal(f.Data, &e); err != nil {
		return nil, nil, fmt.Errorf("openai: server event: %w", err)
	}
	switch e.Type {
	case "":
		return nil, nil, errors.New("openai: server event has no type")
	case "session.created":
		return nil, s.configure(), nil
	}
	d, err := s.event(e)
	if err != nil {
		return nil, nil, fmt.Errorf("openai: %s: %w", e.Type, err)
	}
	if d.Kind == "" {
		return nil, nil, nil
	}
	return []record.Decoded{d}, nil, nil
}

// configure answers session.created, once.
func (s *session) configure() []providers.Frame {
	if s.created {
		return nil
	}
	s.created = true
	return []providers.Frame{{Op: record.Text, Data: s.update}}
}

// event reads one server event; an event without a kind says nothing to us, as
// do types that are not listed: vendors add some without notice.
func (s *session) event(e serverEvent) (record.Decoded, error) {
	switch e.Type {
	case "session.updated":
		if s.ready {
			return record.Decoded{}, nil
		}
		s.ready = true
		return record.Decoded{Kind: record.Ready}, nil
	case "transcription_session.created", "transcription_session.updated":
		return record.Decoded{Kind: record.Error, Reject: record.RejectBadRequest,
			Cause: "the server speaks the beta shape of the protocol (" + e.Type + ")"}, nil

	case "input_audio_buffer.speech_started":
		at, err := position(e.AudioStartMS)
		return record.Decoded{Kind: record.SpeechStarted, Segment: e.ItemID, AudioStart: at}, err
	case "input_audio_buffer.speech_stopped":
		at, err := position(e.AudioEndMS)
		return record.Decoded{Kind: record.EndOfTurn, Segment: e.ItemID, Cause: "speech_stopped", AudioEnd: at}, err

	// Committed events come in the order of the audio, completed ones in any: the
	// segment's place is fixed here, and so is the answer that the force gets.
	case "input_audio_buffer.committed":
		return record.Decoded{Kind: record.Ack, Segment: e.ItemID, Key: e.ItemID, Cause: "committed"}, nil
	case "conversation.item.input_audio_transcription.delta":
		if e.Delta == "" {
			return record.Decoded{}, nil
		}
		return record.Decoded{Kind: record.Partial, Segment: e.ItemID,
			Mode: record.Append, Join: record.Verbatim, Text: e.Delta}, nil
	case "conversation.item.input_audio_transcription.completed":
		return record.Decoded{Kind: record.Final, Segment: e.ItemID, Key: e.ItemID, Closes: true, Cause: "completed",
			Mode: record.Replace, Join: record.Verbatim, Text: e.Transcript}, nil
	case "conversation.item.input_audio_transcription.failed":
		cause := "failed"
		if e.Error != nil {
			cause = "failed: " + s.cause(*e.Error)
		}
		return record.Decoded{Kind: record.Ack, Segment: e.ItemID, Key: e.ItemID, Closes: true, Negative: true, Cause: cause}, nil

	case "error":
		if e.Error == nil {
			return record.Decoded{}, errors.New("the event holds no error")
		}
		return s.failure(*e.Error), nil
	}
	return record.Decoded{}, nil
}

// failure sorts the errors: an empty commit answers a force, some end the
// session, and the rest changes nothing once the session is ready. Before that
// every error is a refusal, because the session will never become ready.
func (s *session) failure(e apiError) record.Decoded {
	if e.Code == codeCommitEmpty {
		return record.Decoded{Kind: record.Ack, Key: e.EventID, Closes: true, Negative: true, Cause: "commit_empty"}
	}
	d := record.Decoded{Kind: record.Warning, Cause: s.cause(e)}
	reject, known := fatal[e.Code]
	switch {
	case known:
		d.Kind, d.Reject = record.Error, reject
	case e.Code == codeExpired:
		d.Kind = record.Error
	case !s.ready && e.Type == "server_error":
		d.Kind, d.Reject = record.Error, record.RejectServer
	case !s.ready:
		d.Kind, d.Reject = record.Error, record.RejectBadRequest
	}
	return d
}

// cause is the vendor's code and message. A refused key is quoted in the
// message, so there the code has to do.
func (s *session) cause(e apiError) string {
	label := e.Code
	if label == "" {
		label = e.Type
	}
	if e.Message == "" || fatal[e.Code] == record.RejectAuth {
		return label
	}
	return label + ": " + s.clean(e.Message)
}

// clean makes the vendor's words fit for a record: short and without the key.
func (s *session) clean(text string) string {
	if !s.key.Empty() {
		text = strings.ReplaceAll(text, s.key.Reveal(), s.key.String())
	}
	const most = 300 // bytes
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// closed reads the close frame. Reasons such as
// "invalid_request_error.invalid_api_key" end in the code of an error.
func (s *session) closed(f providers.Frame) record.Decoded {
	if f.Code == 1000 {
		return record.Decoded{Kind: record.Done, Cause: "close 1000"}
	}
	reason := s.clean(string(f.Data))
	d := record.Decoded{Kind: record.Error, Cause: strings.TrimSpace(fmt.Sprintf("close %d %s", f.Code, reason))}
	d.Reject = fatal[reason[strings.LastIndexByte(reason, '.')+1:]]
	return d
}

// position turns milliseconds into an audio position; nil stays nil.
func position(ms *float64) (*time.Duration, error) {
	if ms == nil {
		return nil, nil
	}
	const longest = 1e9 // ms; far beyond any session, far below overflow
	if !(*ms >= 0 && *ms <= longest) {
		return nil, errors.New("audio position is out of range")
	}
	d := time.Duration(*ms * float64(time.Millisecond))
	return &d, nil
}
