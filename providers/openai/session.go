package openai

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// session is one stream. The fields of its two halves are apart; what both read
// is set by newSession and never changes.
type session struct {
	url    string
	key    providers.Secret
	update []byte
	forced bool

	// The sending half.
	commits int
	text    []byte // of the latest audio frame; reused
	audio   [1]providers.Frame

	// The receiving half.
	created, ready bool
}

func newSession(url string, key providers.Secret, update []byte, forced bool) *session {
	return &session{url: url, key: key, update: update, forced: forced}
}

// Next implements [providers.Session].
func (s *session) Next(now time.Time, resp *providers.Response) (providers.Step, error) {
	if resp != nil {
		return providers.Step{}, refusal(resp, now)
	}
	header := http.Header{}
	if !s.key.Empty() {
		header.Set("Authorization", "Bearer "+s.key.Reveal())
	}
	return providers.Step{Dial: &providers.Dial{URL: s.url, Header: header, AwaitReady: true}}, nil
}

// refusal reads a handshake that was refused. The code in the body is more
// precise than the status: a used-up quota comes as 429 too, where waiting would
// not help. The message of a refused key is left out, since it quotes the key.
func refusal(resp *providers.Response, now time.Time) *providers.Rejection {
	var body struct {
		Error apiError `json:"error"`
	}
	// A body in another shape leaves the code empty, and the status decides.
	_ = json.Unmarshal(resp.Body, &body)
	detail := ""
	if resp.Status == http.StatusUnauthorized {
		detail = "the API key was not accepted"
	}
	r := providers.Reject(resp, detail, now)
	if reason, known := fatal[body.Error.Code]; known {
		r.Reason = reason
	}
	return r
}

const (
	appendHead = `{"type":"input_audio_buffer.append","audio":"`
	appendTail = `"}`
)

// Audio implements [providers.Session]. The frame's text is overwritten by the
// next call.
func (s *session) Audio(_ time.Time, pcm []byte, end time.Duration) ([]providers.Frame, error) {
	if len(pcm) == 0 {
		return nil, nil
	}
	s.text = append(s.text[:0], appendHead...)
	s.text = base64.StdEncoding.AppendEncode(s.text, pcm)
	s.text = append(s.text, appendTail...)
	s.audio[0] = providers.Frame{Op: record.Text, Data: s.text, AudioEnd: end}
	return s.audio[:], nil
}

// Turn implements [providers.Session]. The commit carries an id because a
// refusal names it, while an accepted commit is answered by an item's id.
func (s *session) Turn(_ time.Time, e providers.Edge, _ providers.Span) ([]providers.Frame, error) {
	if e != providers.End {
		return nil, nil
	}
	if !s.forced {
		return nil, providers.ErrUnsupported
	}
	s.commits++
	commit := `{"type":"input_audio_buffer.commit","event_id":"commit_` + strconv.Itoa(s.commits) + `"}`
	return []providers.Frame{providers.TextFrame(commit)}, nil
}

// KeepAlive implements [providers.Session]. The server pings; nothing is needed.
func (s *session) KeepAlive(time.Time) []providers.Frame { return nil }

// Finish implements [providers.Session]. The protocol has no end message: a
// client that has its last transcript closes.
func (s *session) Finish(time.Time) []providers.Frame {
	return []providers.Frame{{Op: record.CloseOp, Code: 1000}}
}
