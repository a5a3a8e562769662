package deepgram

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
	"unicode"

	"sttbench/providers/emulator"
)

// Emulator plays Deepgram's live protocol v1. It implements [emulator.Vendor].
//
// It is strict where the vendor is documented to be: unknown and contradictory
// query parameters get HTTP 400, keys 401, a control message in a binary frame
// is audio, an empty binary frame ends the stream, and 10 s without audio or
// KeepAlive end it with 1011 NET-0001. Windows of results are contiguous. It
// understands linear16 mono only, and says so with HTTP 400.
type Emulator struct {
	// Idle is the time without audio and KeepAlive that ends a stream; 0 means
	// the vendor's 10 s.
	Idle time.Duration
	// Interim is the step of audio between interim results; 0 means 1 s.
	Interim time.Duration
	// Window is the longest stretch without a final result; 0 means 4 s. The
	// vendor says "every few seconds", logs show 3 to 5 s.
	Window time.Duration
}

// Accept implements emulator.Vendor.
func (e Emulator) Accept(r *http.Request, rnd *rand.Rand) (*emulator.Accepted, *emulator.Refusal) {
	id := uuid(rnd)
	if r.URL.Path != "/v1/listen" {
		return nil, refusal(id, http.StatusNotFound, "NOT_FOUND", "Requested path does not exist; this emulator serves /v1/listen.")
	}
	subprotocol, ok := authorise(r)
	if !ok {
		return nil, refusal(id, http.StatusUnauthorized, "INVALID_AUTH", "Invalid credentials.")
	}
	opts, bad := parseOptions(r.URL.Query())
	if bad != nil {
		return nil, refusal(id, bad.status, bad.code, bad.text)
	}
	return &emulator.Accepted{
		Stream: &stream{
			id: id, opts: opts, sha: sha256.New(),
			idle:    cmp.Or(e.Idle, 10*time.Second),
			interim: cmp.Or(e.Interim, time.Second),
			window:  cmp.Or(e.Window, 4*time.Second),
		},
		Header:      http.Header{"Dg-Request-Id": {id}},
		Subprotocol: subprotocol,
	}, nil
}

// Refuse implements emulator.Vendor.
func (e Emulator) Refuse(_ *http.Request, rnd *rand.Rand, status int) *emulator.Refusal {
	code, text := "INTERNAL_SERVER_ERROR", "Service temporarily unavailable."
	switch status {
	case http.StatusBadRequest:
		code, text = "Bad Request", "Invalid request."
	case http.StatusUnauthorized:
		code, text = "INVALID_AUTH", "Invalid credentials."
	case http.StatusPaymentRequired:
		code, text = "ASR_PAYMENT_REQUIRED", "Project does not have enough credits for an ASR request and does not have an overage agreement."
	case http.StatusForbidden:
		code, text = "INSUFFICIENT_PERMISSIONS", noModel
	case http.StatusTooManyRequests:
		code, text = "TOO_MANY_REQUESTS", "Too many requests. Please try again later"
	}
	return refusal(uuid(rnd), status, code, text)
}

const noModel = "Project does not have access to the requested model."

func refusal(id string, status int, code, text string) *emulator.Refusal {
	body, _ := json.Marshal(map[string]string{"err_code": code, "err_msg": text, "request_id": id})
	return &emulator.Refusal{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json"}, "Dg-Request-Id": {id}, "Dg-Error": {text}},
		Body:   body,
	}
}

// authorise finds the key: "Token KEY", "Bearer JWT", or the same as a pair of
// subprotocols, of which the first is then chosen. A plain key is no bearer.
func authorise(r *http.Request) (subprotocol string, ok bool) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme == "" {
		var offered []string
		for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
			for p := range strings.SplitSeq(line, ",") {
				offered = append(offered, strings.TrimSpace(p))
			}
		}
		if len(offered) < 2 {
			return "", false
		}
		scheme, key, subprotocol = offered[0], offered[1], offered[0]
	}
	switch key = strings.TrimSpace(key); strings.ToLower(scheme) {
	case "token":
		return subprotocol, emulator.GoodKey(key)
	case "bearer":
		return subprotocol, emulator.GoodKey(key) && strings.Count(key, ".") == 2
	}
	return "", false
}

// uuid is a random UUID (version 4).
func uuid(rnd *rand.Rand) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// stream is one connection.
type stream struct {
	id      string
	opts    options
	idle    time.Duration
	interim time.Duration
	window  time.Duration

	timer    *emulator.Timer // NET-0001
	heard    bool            // audio has come
	sha      hash.Hash
	created  time.Time
	speaking bool          // SpeechStarted was said
	lastWord time.Duration // end of the last word in a result
	gapSaid  time.Duration // the lastWord that UtteranceEnd was last said for
}

// Open implements emulator.Stream. The protocol has no greeting.
func (s *stream) Open(c *emulator.Call) {
	s.created = c.Wall()
	hearing := emulator.Hearing{
		SampleRate:   s.opts.sampleRate,
		PartialEvery: emulator.NoPartials,
		Endpointing:  s.opts.endpointing,
		Window:       s.window,
	}
	if s.opts.interim {
		hearing.PartialEvery = s.interim
	}
	c.Hear(hearing)
	s.timer = c.After(s.idle, func() {
		c.Close(1011, "NET-0001: no audio or KeepAlive message arrived within the idle limit")
	})
}

// Message implements emulator.Stream.
func (s *stream) Message(c *emulator.Call, m emulator.Message) {
	if m.Binary {
		s.timer.Reset(s.idle)
		if len(m.Data) == 0 {
			c.Finish()
			return
		}
		s.heard = true
		s.sha.Write(m.Data)
		c.Audio(m.Data)
		s.notice(c)
		return
	}
	// Before the first audio nothing but audio keeps the stream open.
	if s.heard {
		s.timer.Reset(s.idle)
	}
	var control struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(m.Data, &control); err != nil {
		s.complain(c, "PARSE", "Failed to parse the control message as JSON.")
		return
	}
	switch control.Type {
	case "Finalize":
		c.Force("")
	case "CloseStream":
		c.Finish()
	case "KeepAlive", "Configure":
	default:
		s.complain(c, "UNPARSABLE_CLIENT_MESSAGE", "Unknown control message type.")
	}
}

func (s *stream) complain(c *emulator.Call, variant, text string) {
	c.SendJSON(map[string]string{"type": "Error", "variant": variant, "description": text, "message": text})
}

// notice says the two optional events that go with audio. UtteranceEnd comes
// when the words heard leave a gap after the last one that a result has told.
func (s *stream) notice(c *emulator.Call) {
	if !s.opts.vadEvents && s.opts.utteranceEnd == 0 {
		return
	}
	h := c.Hypothesis()
	if n := len(h.Words); n > 0 {
		if s.opts.vadEvents && !s.speaking {
			s.speaking = true
			c.SendJSON(map[string]any{"type": "SpeechStarted", "channel": []int{0, 1}, "timestamp": h.Words[0].Start.Seconds()})
		}
		if h.Words[n-1].End > s.lastWord {
			return
		}
	}
	if gap := s.opts.utteranceEnd; gap > 0 && s.lastWord > s.gapSaid && h.End-s.lastWord >= gap {
		s.gapSaid = s.lastWord
		c.SendJSON(map[string]any{"type": "UtteranceEnd", "channel": []int{0, 1}, "last_word_end": s.lastWord.Seconds()})
	}
}

// Partial implements emulator.Stream.
func (s *stream) Partial(c *emulator.Call, h emulator.Hypothesis) {
	s.say(c, h.Words, h.Start, h.End, flags{})
}

// Final implements emulator.Stream.
func (s *stream) Final(c *emulator.Call, f emulator.Final) {
	if f.Cause != emulator.CauseFinish || f.End > f.Start {
		s.say(c, f.Words, f.Start, f.End, flags{
			final:        true,
			speechFinal:  f.Cause == emulator.CauseEndpoint,
			fromFinalize: f.Cause == emulator.CauseForce && f.Ack,
		})
	}
	s.speaking = false
	if f.Cause == emulator.CauseFinish {
		c.SendJSON(s.metadata(c))
		c.Close(1000, "")
	}
}

type flags struct{ final, speechFinal, fromFinalize bool }

// say sends one Results message.
func (s *stream) say(c *emulator.Call, words []emulator.Word, start, end time.Duration, f flags) {
	type wireWord struct {
		Word           string  `json:"word"`
		Start          float64 `json:"start"`
		End            float64 `json:"end"`
		Confidence     float64 `json:"confidence"`
		PunctuatedWord string  `json:"punctuated_word,omitempty"`
	}
	list := make([]wireWord, 0, len(words))
	var texts []string
	for _, w := range words {
		word := wireWord{Word: plain(w.Text), Start: w.Start.Seconds(), End: w.End.Seconds(), Confidence: 0.98}
		text := word.Word
		if s.opts.punctuate {
			word.PunctuatedWord, text = w.Text, w.Text
		}
		if text == "" { // a script word of punctuation only
			continue
		}
		list, texts = append(list, word), append(texts, text)
		s.lastWord = max(s.lastWord, w.End)
	}
	confidence := 0.0
	if len(list) > 0 {
		confidence = 0.98
	}
	c.SendJSON(map[string]any{
		"type": "Results", "channel_index": []int{0, 1},
		"start": start.Seconds(), "duration": (end - start).Seconds(),
		"is_final": f.final, "speech_final": f.speechFinal, "from_finalize": f.fromFinalize,
		"channel": map[string]any{"alternatives": []any{map[string]any{
			"transcript": strings.Join(texts, " "), "confidence": confidence, "words": list,
		}}},
		"metadata": map[string]any{"request_id": s.id, "model_info": s.modelInfo(), "model_uuid": modelUUID},
	})
}

const modelUUID = "1f0e5b1c-0000-4000-8000-00656d756c61"

func (s *stream) modelInfo() map[string]string {
	return map[string]string{"name": "emulated-" + s.opts.model, "version": "2026-01-01.0", "arch": s.opts.model}
}

func (s *stream) metadata(c *emulator.Call) any {
	return map[string]any{
		"type": "Metadata", "transaction_key": "deprecated", "request_id": s.id,
		"sha256":   hex.EncodeToString(s.sha.Sum(nil)),
		"created":  s.created.UTC().Format("2006-01-02T15:04:05.000Z"),
		"duration": c.Received().Seconds(), "channels": 1,
		"models": []string{modelUUID}, "model_info": map[string]any{modelUUID: s.modelInfo()},
	}
}

// plain is a word as it comes without punctuate and smart_format: lower case,
// without punctuation at its ends.
func plain(word string) string {
	return strings.ToLower(strings.TrimFunc(word, func(r rune) bool {
		return unicode.IsPunct(r) || unicode.IsSpace(r)
	}))
}
