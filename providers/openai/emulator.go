package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"sttbench/providers/emulator"
)

// Emulator plays the Realtime API's transcription mode in its GA profile. Where
// an error's code or text is not known, it is of our making.
type Emulator struct {
	// MaxSession is how long a session may last; 0 means 60 minutes.
	MaxSession time.Duration
	// Swap completes an item only after the one committed behind it, where there
	// is one: the vendor promises no order.
	Swap bool
}

var _ emulator.Reviser = Emulator{}

// Revises implements [emulator.Reviser]: completed events set the transcript of an
// item, so that a second one changes it.
func (Emulator) Revises() {}

// minCommit is 100 ms of PCM at 24 kHz, in bytes.
const minCommit = 4800

// Accept implements [emulator.Vendor].
func (e Emulator) Accept(r *http.Request, _ *rand.Rand) (*emulator.Accepted, *emulator.Refusal) {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || !emulator.GoodKey(key) {
		return nil, refuse(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided.")
	}
	switch path := r.URL.Path; {
	case path == "/v1/realtime/transcription":
		return nil, refuse(http.StatusForbidden, "", "You do not have access to this path.")
	case path != "/v1/realtime":
		return nil, refuse(http.StatusNotFound, "", "Invalid URL (GET "+path+")")
	}
	s := &emulatorStream{settings: e}
	query := r.URL.Query()
	switch {
	case r.Header.Get("OpenAI-Beta") != "":
		s.refusal = &emulatorError{Code: "beta_api_shape_disabled", Message: "The beta shape of the Realtime API is no longer available."}
		s.refusalCode = 4000
	case query.Has("model"):
		s.conversation = true
	case query.Get("intent") != "transcription":
		s.refusal = &emulatorError{Code: "missing_model", Message: "You must provide a model parameter."}
		s.refusalCode = 3000
	}
	return &emulator.Accepted{Stream: s}, nil
}

// Refuse implements [emulator.Vendor].
func (Emulator) Refuse(_ *http.Request, _ *rand.Rand, status int) *emulator.Refusal {
	code := map[int]string{
		http.StatusUnauthorized:    "invalid_api_key",
		http.StatusPaymentRequired: "insufficient_quota",
		http.StatusTooManyRequests: "rate_limit_exceeded",
	}[status]
	return refuse(status, code, http.StatusText(status))
}

func refuse(status int, code, message string) *emulator.Refusal {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	body := map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}}
	if code != "" {
		body["error"].(map[string]any)["code"] = code
	}
	data, err := json.Marshal(body)
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return &emulator.Refusal{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: data}
}

// emulatorStream is the server's side of one connection.
type emulatorStream struct {
	settings     Emulator
	refusal      *emulatorError // of the whole session, after the upgrade
	refusalCode  int
	conversation bool // a model in the URL made it one

	id      string
	expires time.Time
	config  emulatorConfig
	pcm     []byte // decoded audio; reused

	buffered  int // bytes of PCM since the last commit or clear
	clearedAt time.Duration
	events    int
	open      *emulatorItem // takes what is heard; nil until it has an id
	items     map[string]*emulatorItem
	lastItem  string // committed last
	held      *emulatorItem
}

// emulatorItem is one utterance.
type emulatorItem struct {
	id      string
	started bool // speech_started is out
	words   []emulator.Word
	said    int // words that deltas have said
	start   time.Duration
	end     time.Duration
}

// Open implements [emulator.Stream].
func (s *emulatorStream) Open(c *emulator.Call) {
	s.items = map[string]*emulatorItem{}
	s.id = "sess_" + s.random(c)
	life := s.settings.MaxSession
	if life == 0 {
		life = time.Hour
	}
	s.expires = c.Wall().Add(life)
	s.config.Format = emulatorFormat{"audio/pcm", sampleRate}
	if s.refusal != nil {
		s.fail(c, *s.refusal)
		c.Close(s.refusalCode, "invalid_request_error."+s.refusal.Code)
		return
	}
	s.hear(c)
	s.sendSession(c, "session.created")
	c.After(life, func() {
		s.fail(c, emulatorError{Code: "session_expired",
			Message: fmt.Sprintf("Your session hit the maximum duration of %.0f minutes.", life.Minutes())})
		c.Close(1001, "")
	})
}

// hear sets the recogniser to what the session's configuration asks for.
func (s *emulatorStream) hear(c *emulator.Call) {
	h := emulator.Hearing{SampleRate: sampleRate, PartialEvery: emulator.NoPartials}
	if vad := s.config.TurnDetection; vad != nil {
		// What the recogniser hears first is the start of speech.
		h.PartialEvery = 0
		h.Endpointing = vad.silence()
	}
	if t := s.config.Transcription; t != nil && streams(t.Model) {
		h.PartialEvery = 0
	}
	if t := s.config.Transcription; t != nil && t.Model == "gpt-transcribe" {
		// It accepts turn detection but was seen to wait for a commit all the same.
		h.PartialEvery, h.Endpointing = emulator.NoPartials, 0
	}
	c.Hear(h)
}

// clientEvent is what all client messages have, and the fields of small ones.
type clientEvent struct {
	Type    string          `json:"type"`
	EventID string          `json:"event_id"`
	Audio   *string         `json:"audio"`
	Session json.RawMessage `json:"session"`
}

// Message implements [emulator.Stream].
func (s *emulatorStream) Message(c *emulator.Call, m emulator.Message) {
	if s.refusal != nil {
		return
	}
	var e clientEvent
	if m.Binary || json.Unmarshal(m.Data, &e) != nil {
		s.fail(c, emulatorError{Code: "invalid_json", Message: "We could not parse the JSON body of your message."})
		return
	}
	var err *emulatorError
	switch e.Type {
	case "session.update":
		err = s.update(c, e.Session)
	case "input_audio_buffer.append":
		err = s.append(c, e.Audio)
	case "input_audio_buffer.commit":
		err = s.commit(c)
	case "input_audio_buffer.clear":
		s.buffered, s.clearedAt, s.open = 0, c.Received(), nil
		s.send(c, map[string]any{"type": "input_audio_buffer.cleared"})
	default:
		err = &emulatorError{Code: "invalid_value", Param: "type", Message: fmt.Sprintf("Invalid value: '%s'.", e.Type)}
	}
	if err != nil {
		err.EventID = e.EventID
		s.fail(c, *err)
	}
}

func (s *emulatorStream) update(c *emulator.Call, patch json.RawMessage) *emulatorError {
	if s.conversation {
		return &emulatorError{Code: "invalid_model", Param: "session.type", Message: "A conversation session cannot become a transcription session."}
	}
	config, err := s.config.merge(patch)
	if err != nil {
		return err
	}
	s.config = config
	s.hear(c)
	s.sendSession(c, "session.updated")
	return nil
}

// append takes audio. Before the session was configured it is lost, as it was
// seen to be.
func (s *emulatorStream) append(c *emulator.Call, audio *string) *emulatorError {
	if audio == nil {
		return &emulatorError{Code: "missing_required_parameter", Param: "audio", Message: "Missing required parameter: 'audio'."}
	}
	pcm, err := base64.StdEncoding.AppendDecode(s.pcm[:0], []byte(*audio))
	if err != nil {
		return &emulatorError{Code: "invalid_value", Param: "audio", Message: "Invalid 'audio'. Expected base64-encoded audio bytes."}
	}
	s.pcm = pcm
	if s.config.Transcription == nil {
		return nil
	}
	s.buffered += len(pcm)
	c.Audio(pcm)
	return nil
}

func (s *emulatorStream) commit(c *emulator.Call) *emulatorError {
	if s.buffered < minCommit {
		return &emulatorError{
			Code: "input_audio_buffer_commit_empty",
			Message: fmt.Sprintf("Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %.2fms of audio.",
				float64(s.buffered)/(2*sampleRate)*1000),
		}
	}
	item := s.take(c)
	c.Force(item.id)
	s.announce(c, item)
	return nil
}

// current is the item that takes what is being heard.
func (s *emulatorStream) current(c *emulator.Call) *emulatorItem {
	if s.open == nil {
		s.open = &emulatorItem{id: "item_" + s.random(c)}
	}
	return s.open
}

// take commits the current item.
func (s *emulatorStream) take(c *emulator.Call) *emulatorItem {
	item := s.current(c)
	s.items[item.id] = item
	s.open, s.buffered = nil, 0
	return item
}

// announce says that the item was committed.
func (s *emulatorStream) announce(c *emulator.Call, item *emulatorItem) {
	var previous *string
	if s.lastItem != "" {
		last := s.lastItem
		previous = &last
	}
	s.lastItem = item.id
	s.send(c, map[string]any{"type": "input_audio_buffer.committed", "item_id": item.id, "previous_item_id": previous})
	for _, event := range []string{"conversation.item.added", "conversation.item.done"} {
		s.send(c, map[string]any{"type": event, "previous_item_id": previous, "item": map[string]any{
			"id": item.id, "type": "message", "object": "realtime.item", "status": "completed", "role": "user",
			"content": []any{map[string]any{"type": "input_audio", "transcript": nil}},
		}})
	}
}

// Partial implements [emulator.Stream].
func (s *emulatorStream) Partial(c *emulator.Call, h emulator.Hypothesis) {
	words := s.afterClear(h.Words)
	if len(words) == 0 {
		return
	}
	item := s.current(c)
	if s.config.TurnDetection != nil {
		s.speechStarted(c, item, words[0].Start)
	}
	if streams(s.config.Transcription.Model) {
		item.words = words
		s.deltas(c, item)
	}
}

func (s *emulatorStream) speechStarted(c *emulator.Call, item *emulatorItem, at time.Duration) {
	if item.started {
		return
	}
	item.started = true
	at = max(0, at-s.config.TurnDetection.padding())
	s.send(c, map[string]any{"type": "input_audio_buffer.speech_started", "item_id": item.id, "audio_start_ms": at.Milliseconds()})
}

// deltas says the words of the item that were not said yet: all at once where
// the model does it so, else one by one.
func (s *emulatorStream) deltas(c *emulator.Call, item *emulatorItem) {
	whole := s.config.Transcription.Model == "whisper-1"
	for item.said < len(item.words) {
		n := item.said + 1
		if whole {
			n = len(item.words)
		}
		text := ""
		for i := item.said; i < n; i++ {
			if i > 0 {
				text += " "
			}
			text += item.words[i].Text
		}
		item.said = n
		s.send(c, s.withLogprobs(map[string]any{
			"type": "conversation.item.input_audio_transcription.delta", "item_id": item.id, "content_index": 0, "delta": text,
		}, text))
	}
}

// Final implements [emulator.Stream].
func (s *emulatorStream) Final(c *emulator.Call, f emulator.Final) {
	f.Words = s.afterClear(f.Words)
	switch {
	case f.Revises && f.Ack:
		s.complete(c, &emulatorItem{id: f.ID, words: f.Words, start: f.Start, end: f.End})
	case f.Revises: // of an item that never was completed
	case f.Cause == emulator.CauseForce:
		s.answer(c, f)
	default:
		s.commitItself(c, f)
	}
}

// answer says what a committed item holds. The words of an answer in two parts
// come as deltas of their own, but the transcript is whole.
func (s *emulatorStream) answer(c *emulator.Call, f emulator.Final) {
	item := s.items[f.ID]
	if item == nil {
		return
	}
	if item.end == 0 {
		item.start, item.words = f.Start, nil
	}
	item.words = append(item.words, f.Words...)
	item.end = f.End
	s.deltas(c, item)
	if !f.Ack {
		return
	}
	delete(s.items, item.id)
	if s.settings.Swap && s.held == nil && len(s.items) > 0 {
		s.held = item
		return
	}
	s.complete(c, item)
	if s.held != nil {
		s.complete(c, s.held)
		s.held = nil
	}
}

// commitItself is what the vendor's turn detection does at the end of speech.
func (s *emulatorStream) commitItself(c *emulator.Call, f emulator.Final) {
	if len(f.Words) == 0 {
		return
	}
	item := s.take(c)
	if s.config.TurnDetection != nil {
		s.speechStarted(c, item, f.Words[0].Start)
		s.send(c, map[string]any{"type": "input_audio_buffer.speech_stopped", "item_id": item.id, "audio_end_ms": f.End.Milliseconds()})
	}
	s.announce(c, item)
	item.words, item.start, item.end = f.Words, f.Start, f.End
	s.deltas(c, item)
	delete(s.items, item.id)
	s.complete(c, item)
}

func (s *emulatorStream) complete(c *emulator.Call, item *emulatorItem) {
	text := emulator.Final{Words: item.words}.Text()
	seconds := (item.end - item.start).Seconds()
	var usage map[string]any
	model := s.config.Transcription.Model
	if streams(model) || model == "whisper-1" {
		usage = map[string]any{"type": "duration", "seconds": seconds}
	} else {
		heard, said := int(10*seconds), len(item.words)+2
		usage = map[string]any{"type": "tokens", "input_tokens": heard, "output_tokens": said, "total_tokens": heard + said,
			"input_token_details": map[string]any{"audio_tokens": heard, "text_tokens": 0}}
	}
	s.send(c, s.withLogprobs(map[string]any{
		"type": "conversation.item.input_audio_transcription.completed", "item_id": item.id, "content_index": 0,
		"transcript": text, "usage": usage,
	}, text))
}

// withLogprobs adds what the session's include option asks for.
func (s *emulatorStream) withLogprobs(event map[string]any, text string) map[string]any {
	if len(s.config.Include) == 0 {
		return event
	}
	list := []any{}
	for _, token := range strings.SplitAfter(text, " ") {
		var codes []int
		for _, b := range []byte(token) {
			codes = append(codes, int(b))
		}
		list = append(list, map[string]any{"token": token, "logprob": -0.01, "bytes": codes})
	}
	event["logprobs"] = list
	return event
}

// afterClear drops the words that were in the buffer when it was cleared.
func (s *emulatorStream) afterClear(words []emulator.Word) []emulator.Word {
	for len(words) > 0 && words[0].End <= s.clearedAt {
		words = words[1:]
	}
	return words
}

// streams tells whether a model sends deltas while audio comes in; such a model
// has no turn detection.
func streams(model string) bool {
	return model == "gpt-live-transcribe" || model == "gpt-realtime-whisper"
}

func (s *emulatorStream) sendSession(c *emulator.Call, event string) {
	kind := "transcription"
	if s.conversation {
		kind = "realtime"
	}
	s.send(c, map[string]any{"type": event, "session": map[string]any{
		"id": s.id, "object": "realtime." + kind + "_session", "type": kind, "expires_at": s.expires.Unix(),
		"audio": map[string]any{"input": s.config.emulatorInput}, "include": s.config.Include,
	}})
}

// emulatorError is the object in an error event.
type emulatorError struct {
	Code, Message, Param, EventID string
}

func (s *emulatorStream) fail(c *emulator.Call, e emulatorError) {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	s.send(c, map[string]any{"type": "error", "error": map[string]any{
		"type": "invalid_request_error", "code": e.Code, "message": e.Message, "param": orNull(e.Param), "event_id": orNull(e.EventID),
	}})
}

// send numbers an event and sends it, its type first, as the vendor does.
func (s *emulatorStream) send(c *emulator.Call, event map[string]any) {
	s.events++
	kind := event["type"]
	delete(event, "type")
	event["event_id"] = fmt.Sprintf("event_%04d", s.events)
	data, err := json.Marshal(event)
	if err != nil { // events are plain data
		panic(err)
	}
	data = bytes.TrimPrefix(data, []byte("{"))
	c.SendText(fmt.Appendf(nil, `{"type":"%s",%s`, kind, data))
}

func (s *emulatorStream) random(c *emulator.Call) string {
	return fmt.Sprintf("%016x", c.Rand().Uint64())
}
