package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"sttbench/providers/emulator"
)

// client is a raw WebSocket client, so that the emulator is judged without the
// dialect.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

const transcriptionPath = "/v1/realtime?intent=transcription"

func start(t *testing.T, e Emulator, set emulator.Settings) string {
	t.Helper()
	s, err := emulator.Start(t.Context(), e, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

func dial(t *testing.T, url string, header http.Header) client {
	t.Helper()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Authorization", "Bearer good")
	conn, _, err := websocket.DefaultDialer.Dial(url, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return client{t, conn}
}

// session24k opens a session and configures its input.
func session24k(t *testing.T, e Emulator, set emulator.Settings, input string) client {
	t.Helper()
	c := dial(t, start(t, e, set)+transcriptionPath, nil)
	c.want("session.created")
	c.update(input)
	c.want("session.updated")
	return c
}

func (c client) send(data string) {
	c.t.Helper()
	if err := c.conn.WriteMessage(websocket.TextMessage, []byte(data)); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) update(input string) {
	c.t.Helper()
	c.send(`{"type":"session.update","event_id":"u","session":{"type":"transcription","audio":{"input":` + input + `}}}`)
}

func (c client) audio(d time.Duration) {
	c.t.Helper()
	pcm := make([]byte, d*48000/time.Second)
	c.send(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm) + `"}`)
}

func (c client) commit(id string) {
	c.t.Helper()
	c.send(`{"type":"input_audio_buffer.commit","event_id":"` + id + `"}`)
}

// event is what the tests look at.
type event struct {
	Type         string `json:"type"`
	EventID      string `json:"event_id"`
	ItemID       string `json:"item_id"`
	Previous     string `json:"previous_item_id"`
	Delta        string `json:"delta"`
	Transcript   string `json:"transcript"`
	AudioStartMS int    `json:"audio_start_ms"`
	AudioEndMS   int    `json:"audio_end_ms"`
	Logprobs     []any  `json:"logprobs"`
	Usage        struct {
		Type string `json:"type"`
	} `json:"usage"`
	Item struct {
		ID string `json:"id"`
	} `json:"item"`
	Error struct {
		Code, Message, Param string
		EventID              string `json:"event_id"`
	} `json:"error"`
	Session json.RawMessage `json:"session"`
}

// line shortens an event to what it says.
func (e event) line() string {
	short := strings.TrimPrefix(e.Type, "conversation.item.input_audio_transcription.")
	short = strings.TrimPrefix(short, "input_audio_buffer.")
	switch short {
	case "delta":
		return "delta " + e.Delta
	case "completed":
		return "completed " + e.Transcript
	case "speech_started":
		return fmt.Sprintf("speech_started %d", e.AudioStartMS)
	case "speech_stopped":
		return fmt.Sprintf("speech_stopped %d", e.AudioEndMS)
	case "error":
		return "error " + e.Error.Code
	}
	return short
}

// read returns the next event; a close frame is an event of type "close CODE".
func (c client) read() event {
	c.t.Helper()
	_, data, err := c.conn.ReadMessage()
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		return event{Type: strings.TrimSpace(fmt.Sprintf("close %d %s", ce.Code, ce.Text))}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		c.t.Fatalf("%s: %v", data, err)
	}
	return e
}

// want reads as many events as there are lines and compares them.
func (c client) want(lines ...string) []event {
	c.t.Helper()
	var events []event
	var got []string
	for range lines {
		e := c.read()
		events, got = append(events, e), append(got, e.line())
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		c.t.Fatalf("events (-want +got):\n%s", diff)
	}
	return events
}

const (
	live = `{"transcription":{"model":"gpt-live-transcribe"},"turn_detection":null}`
	mini = `{"transcription":{"model":"gpt-4o-mini-transcribe"},"turn_detection":null}`
)

var committed = []string{"committed", "conversation.item.added", "conversation.item.done"}

func TestEmulatorStreams(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn the lamp off")}, live)
	c.audio(300 * time.Millisecond)
	c.audio(400 * time.Millisecond)
	first := c.want("delta turn", "delta  the")
	c.commit("c1")
	second := append(c.want(committed...), c.want("completed turn the")...)
	item := first[0].ItemID
	for _, e := range append(first, second...) {
		if e.ItemID != item && e.Item.ID != item {
			t.Errorf("%s is about item %q%q, want %q", e.Type, e.ItemID, e.Item.ID, item)
		}
	}
	if second[3].Usage.Type != "duration" {
		t.Errorf("usage %q, want duration", second[3].Usage.Type)
	}
	c.audio(600 * time.Millisecond)
	c.commit("c2")
	c.want("delta lamp", "delta  off")
	if e := c.want(committed...)[0]; e.Previous != item || e.ItemID == item {
		t.Errorf("second item %q follows %q, want a new one that follows %q", e.ItemID, e.Previous, item)
	}
	c.want("completed lamp off")
	c.audio(200 * time.Millisecond)
	c.commit("c3")
	c.want(committed...)
	c.want("completed ")
}

// Words that partials trail behind come as deltas after the commit, and nothing
// but the commit's own events comes before the final delay is over.
func TestEmulatorLateDeltas(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{
		Script:     emulator.Say("turn the lamp off"),
		PartialLag: 400 * time.Millisecond,
		FinalDelay: emulator.Delay{Base: 100 * time.Millisecond},
	}, live)
	c.audio(900 * time.Millisecond)
	c.want("delta turn")
	before := time.Now()
	c.commit("c1")
	c.want(committed...)
	c.want("delta  the", "delta  lamp", "completed turn the lamp")
	if waited := time.Since(before); waited < 100*time.Millisecond {
		t.Errorf("completed after %s, want 100ms at least", waited)
	}
}

func TestEmulatorAfterCommit(t *testing.T) {
	tests := []struct {
		model string
		want  []string
		usage string
	}{
		{"gpt-4o-mini-transcribe", []string{"delta turn", "delta  the", "completed turn the"}, "tokens"},
		{"gpt-transcribe", []string{"delta turn", "delta  the", "completed turn the"}, "tokens"},
		{"whisper-1", []string{"delta turn the", "completed turn the"}, "duration"},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn the")},
				`{"transcription":{"model":"`+tt.model+`"},"turn_detection":null}`)
			c.audio(600 * time.Millisecond)
			c.commit("c1")
			c.want(committed...)
			events := c.want(tt.want...)
			if got := events[len(events)-1].Usage.Type; got != tt.usage {
				t.Errorf("usage %q, want %q", got, tt.usage)
			}
		})
	}
}

func TestEmulatorCommitEmpty(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn")}, mini)
	c.audio(99 * time.Millisecond)
	c.commit("c1")
	e := c.want("error input_audio_buffer_commit_empty")[0]
	const message = "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has 99.00ms of audio."
	if e.Error.Message != message || e.Error.EventID != "c1" {
		t.Errorf("got %q for %q", e.Error.Message, e.Error.EventID)
	}
	c.audio(time.Millisecond) // what was refused is still there
	c.commit("c2")
	c.want(committed...)
	c.want("completed ")
	c.commit("c3")
	c.want("error input_audio_buffer_commit_empty")
	c.audio(300 * time.Millisecond)
	c.send(`{"type":"input_audio_buffer.clear"}`)
	c.want("cleared")
	c.commit("c4")
	c.want("error input_audio_buffer_commit_empty")
	c.audio(100 * time.Millisecond)
	c.commit("c5")
	c.want(committed...)
	c.want("completed ") // without the word that was cleared
}

// Audio that comes before the session is configured is lost.
func TestEmulatorEarlyAudio(t *testing.T) {
	c := dial(t, start(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn")})+transcriptionPath, nil)
	c.want("session.created")
	c.audio(300 * time.Millisecond)
	c.commit("c1")
	c.want("error input_audio_buffer_commit_empty")
}

func TestEmulatorTurnDetection(t *testing.T) {
	script := &emulator.Script{Words: []emulator.Word{
		{Text: "turn", Start: 400 * time.Millisecond, End: 600 * time.Millisecond},
		{Text: "off", Start: 600 * time.Millisecond, End: 900 * time.Millisecond},
		{Text: "please", Start: 1700 * time.Millisecond, End: 2000 * time.Millisecond},
	}}
	// server_vad is the default of a model that allows it.
	c := session24k(t, Emulator{}, emulator.Settings{Script: script}, `{"transcription":{"model":"whisper-1"}}`)
	for range 25 {
		c.audio(100 * time.Millisecond)
	}
	events := c.want("speech_started 100", "speech_stopped 1400",
		committed[0], committed[1], committed[2], "delta turn off", "completed turn off",
		"speech_started 1400", "speech_stopped 2500",
		committed[0], committed[1], committed[2], "delta please", "completed please")
	if events[0].ItemID == "" || events[0].ItemID != events[6].ItemID || events[7].ItemID != events[13].ItemID {
		t.Error("the events of an utterance are about different items")
	}
	// The server has just committed, so the client's commit finds nothing.
	c.commit("c1")
	c.want("error input_audio_buffer_commit_empty")
}

// gpt-transcribe takes server_vad but waits for a commit all the same.
func TestEmulatorTurnDetectionInVain(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn")}, `{"transcription":{"model":"gpt-transcribe"}}`)
	for range 20 {
		c.audio(100 * time.Millisecond)
	}
	c.commit("c1")
	c.want(committed...)
	c.want("delta turn", "completed turn")
}

func TestEmulatorSwap(t *testing.T) {
	c := session24k(t, Emulator{Swap: true}, emulator.Settings{
		Script:     emulator.Say("one two three"),
		FinalDelay: emulator.Delay{Base: 200 * time.Millisecond},
	}, `{"transcription":{"model":"whisper-1"},"turn_detection":null}`)
	c.audio(300 * time.Millisecond)
	c.commit("c1")
	c.audio(300 * time.Millisecond)
	c.commit("c2")
	c.want(append(committed, committed...)...)
	c.want("delta one", "delta two", "completed two", "completed one")
	c.audio(300 * time.Millisecond)
	c.commit("c3")
	c.want(committed...)
	c.want("delta three", "completed three") // nothing behind it to wait for
}

func TestEmulatorUpdates(t *testing.T) {
	const transcription = "session.audio.input.transcription"
	tests := []struct {
		name, input, wantCode, wantParam string
	}{
		{"streaming model with turn detection", `{"transcription":{"model":"gpt-realtime-whisper"},"turn_detection":{"type":"server_vad"}}`, "invalid_value", "session.audio.input.turn_detection"},
		{"rate", `{"format":{"type":"audio/pcm","rate":16000}}`, "invalid_value", "session.audio.input.format"},
		{"model", `{"transcription":{"model":"gpt-5"}}`, "model_not_found", transcription + ".model"},
		{"no model", `{"transcription":{}}`, "missing_required_parameter", transcription + ".model"},
		{"empty languages", `{"transcription":{"model":"gpt-live-transcribe","languages":[]}}`, "invalid_value", transcription},
		{"null languages", `{"transcription":{"model":"gpt-live-transcribe","languages":null}}`, "invalid_value", transcription},
		{"both languages", `{"transcription":{"model":"gpt-live-transcribe","language":"en","languages":["en"]}}`, "invalid_value", transcription + ".languages"},
		{"languages of whisper", `{"transcription":{"model":"whisper-1","languages":["en"]}}`, "invalid_value", transcription + ".languages"},
		{"keywords of whisper", `{"transcription":{"model":"whisper-1","keywords":["x"]}}`, "invalid_value", transcription + ".keywords"},
		{"prompt of live whisper", `{"transcription":{"model":"gpt-realtime-whisper","prompt":"x"}}`, "invalid_value", transcription + ".prompt"},
		{"delay of whisper", `{"transcription":{"model":"whisper-1","delay":"low"}}`, "invalid_value", transcription + ".delay"},
		{"delay", `{"transcription":{"model":"gpt-live-transcribe","delay":"none"}}`, "invalid_value", transcription},
		{"unknown field", `{"transcription":{"model":"whisper-1","temperature":0}}`, "unknown_parameter", transcription + ".temperature"},
		{"noise", `{"noise_reduction":{"type":"on"}}`, "invalid_value", "session.audio.input.noise_reduction.type"},
		{"eager server_vad", `{"transcription":{"model":"whisper-1"},"turn_detection":{"type":"server_vad","eagerness":"low"}}`, "invalid_value", "session.audio.input.turn_detection"},
		{"threshold", `{"transcription":{"model":"whisper-1"},"turn_detection":{"type":"server_vad","threshold":2}}`, "invalid_value", "session.audio.input.turn_detection.threshold"},
	}
	url := start(t, Emulator{}, emulator.Settings{}) + transcriptionPath
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, url, nil)
			c.want("session.created")
			c.update(tt.input)
			e := c.want("error " + tt.wantCode)[0]
			if e.Error.Param != tt.wantParam || e.Error.EventID != "u" {
				t.Errorf("param %q of %q, want %q of u", e.Error.Param, e.Error.EventID, tt.wantParam)
			}
			c.update(live) // the refused update has left nothing behind
			c.want("session.updated")
		})
	}
}

// A session.update is merged: what is left out stays, null clears.
func TestEmulatorMerge(t *testing.T) {
	c := dial(t, start(t, Emulator{}, emulator.Settings{})+transcriptionPath, nil)
	c.want("session.created")
	input := func(e event) string {
		var s struct {
			Audio struct{ Input json.RawMessage }
		}
		if err := json.Unmarshal(e.Session, &s); err != nil {
			t.Fatal(err)
		}
		return string(s.Audio.Input)
	}
	steps := []struct{ update, want string }{
		{`{"transcription":{"model":"whisper-1","language":"en"},"noise_reduction":{"type":"near_field"}}`,
			`{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"whisper-1","language":"en"},"noise_reduction":{"type":"near_field"},"turn_detection":{"type":"server_vad","threshold":0.5,"prefix_padding_ms":300,"silence_duration_ms":500}}`},
		{`{"transcription":{"prompt":"x"},"turn_detection":null}`,
			`{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"whisper-1","language":"en","prompt":"x"},"noise_reduction":{"type":"near_field"},"turn_detection":null}`},
		{`{"noise_reduction":null}`,
			`{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"whisper-1","language":"en","prompt":"x"},"noise_reduction":null,"turn_detection":null}`},
	}
	for _, step := range steps {
		c.update(step.update)
		if diff := cmp.Diff(step.want, input(c.want("session.updated")[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.update, diff)
		}
	}
}

func TestEmulatorHandshakes(t *testing.T) {
	url := start(t, Emulator{}, emulator.Settings{})
	tests := []struct {
		name, path, auth string
		want             int
	}{
		{"no key", transcriptionPath, "", 401},
		{"no bearer", transcriptionPath, "good", 401},
		{"bad key", transcriptionPath, "Bearer bad-key", 401},
		{"transcription path", "/v1/realtime/transcription", "Bearer good", 403},
		{"other path", "/realtime", "Bearer good", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			if tt.auth != "" {
				header.Set("Authorization", tt.auth)
			}
			conn, resp, err := websocket.DefaultDialer.Dial(url+tt.path, header)
			if err == nil {
				conn.Close()
				t.Fatal("accepted")
			}
			if resp == nil || resp.StatusCode != tt.want {
				t.Errorf("got %v, %v; want status %d", resp, err, tt.want)
			}
		})
	}
}

func TestEmulatorRefusedSessions(t *testing.T) {
	url := start(t, Emulator{}, emulator.Settings{})
	beta := dial(t, url+transcriptionPath, http.Header{"Openai-Beta": {"realtime=v1"}})
	beta.want("error beta_api_shape_disabled", "close 4000 invalid_request_error.beta_api_shape_disabled")

	neither := dial(t, url+"/v1/realtime", nil)
	neither.want("error missing_model", "close 3000 invalid_request_error.missing_model")

	// A model in the URL makes a conversation, which cannot be changed.
	conversation := dial(t, url+transcriptionPath+"&model=whisper-1", nil)
	conversation.want("session.created")
	conversation.update(live)
	conversation.want("error invalid_model")
}

func TestEmulatorBadMessages(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{}, live)
	tests := []struct{ message, want string }{
		{`{"type":`, "error invalid_json"},
		{`{"type":"response.create"}`, "error invalid_value"},
		{`{"type":"input_audio_buffer.append"}`, "error missing_required_parameter"},
		{`{"type":"input_audio_buffer.append","audio":"!"}`, "error invalid_value"},
		{`{"type":"session.update"}`, "error invalid_value"},
		{`{"type":"session.update","session":{}}`, "error missing_required_parameter"},
		{`{"type":"session.update","session":{"type":"realtime"}}`, "error invalid_value"},
		{`{"type":"session.update","session":{"type":"transcription","include":["all"]}}`, "error invalid_value"},
	}
	for _, tt := range tests {
		c.send(tt.message)
		c.want(tt.want)
	}
	if err := c.conn.WriteMessage(websocket.BinaryMessage, make([]byte, 960)); err != nil {
		t.Fatal(err)
	}
	c.want("error invalid_json")
}

func TestEmulatorLogprobs(t *testing.T) {
	c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("turn on")}, live)
	c.send(`{"type":"session.update","session":{"type":"transcription","include":["item.input_audio_transcription.logprobs"]}}`)
	c.want("session.updated")
	c.audio(600 * time.Millisecond)
	c.commit("c1")
	events := append(c.want("delta turn", "delta  on"), c.want(committed...)...)
	events = append(events, c.want("completed turn on")...)
	if len(events[0].Logprobs) != 1 || len(events[5].Logprobs) != 2 {
		t.Errorf("log probabilities: %v, %v; want one and two", events[0].Logprobs, events[5].Logprobs)
	}
}

func TestEmulatorExpires(t *testing.T) {
	c := dial(t, start(t, Emulator{MaxSession: time.Millisecond}, emulator.Settings{})+transcriptionPath, nil)
	c.want("session.created", "error session_expired", "close 1001")
}

func TestEmulatorFaults(t *testing.T) {
	tests := []struct {
		fault string
		want  []string // after what announces the first item
		next  []string // after what announces the second
	}{
		{"split-final=20ms", []string{"delta one", "delta  two", "completed one two"}, []string{"completed "}},
		{"empty-ack", []string{"completed "}, []string{"completed "}},
		{"no-ack", []string{"delta one", "delta  two"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			fault, err := emulator.ParseFault(tt.fault)
			if err != nil {
				t.Fatal(err)
			}
			c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("one two"), Faults: []emulator.Fault{fault}}, mini)
			c.audio(600 * time.Millisecond)
			c.commit("c1")
			c.want(committed...)
			c.want(tt.want...)
			c.audio(100 * time.Millisecond)
			c.commit("c2")
			c.want(committed...)
			c.want(tt.next...)
		})
	}
}

// Under the fault final-before-force the server commits by itself.
func TestEmulatorEarlyFinal(t *testing.T) {
	fault, err := emulator.ParseFault("final-before-force")
	if err != nil {
		t.Fatal(err)
	}
	c := session24k(t, Emulator{}, emulator.Settings{Script: emulator.Say("one"), Faults: []emulator.Fault{fault}}, live)
	c.audio(300 * time.Millisecond)
	c.want(append(committed, "delta one", "completed one")...)
	c.audio(50 * time.Millisecond)
	c.commit("c1")
	c.want("error input_audio_buffer_commit_empty")
}
