package vosk

import (
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

func dial(t *testing.T, set emulator.Settings) client {
	t.Helper()
	s, err := emulator.Start(t.Context(), Emulator{}, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, _, err := websocket.DefaultDialer.Dial(s.URL()+"/any/path", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return client{t, conn}
}

func (c client) text(data string) {
	c.t.Helper()
	if err := c.conn.WriteMessage(websocket.TextMessage, []byte(data)); err != nil {
		c.t.Fatal(err)
	}
}

// audio sends one message of silence at 16 kHz.
func (c client) audio(d time.Duration) {
	c.t.Helper()
	if err := c.conn.WriteMessage(websocket.BinaryMessage, make([]byte, d*32000/time.Second)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next message, or "close CODE".
func (c client) read() string {
	c.t.Helper()
	_, data, err := c.conn.ReadMessage()
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		return fmt.Sprintf("close %d", ce.Code)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

func (c client) want(want ...string) {
	c.t.Helper()
	for i, w := range want {
		if diff := cmp.Diff(w, c.read()); diff != "" {
			c.t.Errorf("message %d (-want +got):\n%s", i, diff)
		}
	}
}

const config16k = `{"config":{"sample_rate":16000}}`

func TestEmulatorLockstep(t *testing.T) {
	// The replies to the audio behind the reset wait for the reset's, although it
	// is delayed; nothing answers the configuration.
	c := dial(t, emulator.Settings{Script: emulator.Say("turn on"), FinalDelay: emulator.Delay{Base: 50 * time.Millisecond}})
	c.text(config16k)
	c.audio(100 * time.Millisecond)
	c.audio(250 * time.Millisecond)
	c.audio(300 * time.Millisecond)
	c.text(resetText)
	c.audio(100 * time.Millisecond)
	c.text(`{"reset" : 1}`)
	c.audio(100 * time.Millisecond)
	c.text(`{"eof" : 1}`)
	c.want(
		`{"text": ""}`,
		"{\n  \"partial\" : \"turn\"\n}",
		"{\n  \"partial\" : \"turn on\"\n}",
		`{
  "result" : [{
      "conf" : 1.000000,
      "end" : 0.300000,
      "start" : 0.000000,
      "word" : "turn"
    }, {
      "conf" : 1.000000,
      "end" : 0.600000,
      "start" : 0.300000,
      "word" : "on"
    }],
  "text" : "turn on"
}`,
		`{"text": ""}`,
		`{"text": ""}`,
		`{"text": ""}`,
		`{"text": ""}`,
		"close 1000",
	)
}

func TestEmulatorEndpoint(t *testing.T) {
	c := dial(t, emulator.Settings{Script: emulator.Say("turn")})
	c.text(`{"config":{"sample_rate":16000,"words":0}}`)
	c.audio(300 * time.Millisecond)
	c.audio(400 * time.Millisecond)
	c.audio(100 * time.Millisecond)
	c.audio(100 * time.Millisecond)
	c.audio(100 * time.Millisecond)
	c.want(
		"{\n  \"partial\" : \"turn\"\n}",
		"{\n  \"partial\" : \"turn\"\n}",
		"{\n  \"text\" : \"turn\"\n}",
		`{"text": ""}`,
		"{\n  \"partial\" : \"\"\n}",
	)
}

func TestEmulatorAlternatives(t *testing.T) {
	c := dial(t, emulator.Settings{Script: emulator.Say("turn")})
	c.text(`{"config":{"sample_rate":16000,"max_alternatives":2}}`)
	c.audio(300 * time.Millisecond)
	c.text(`{"reset" : 1}`)
	c.text(`{"reset" : 1}`)
	c.want(
		"{\n  \"partial\" : \"turn\"\n}",
		`{
  "alternatives" : [{
      "confidence" : 100.000000,
      "result" : [{
          "end" : 0.300000,
          "start" : 0.000000,
          "word" : "turn"
        }],
      "text" : "turn"
    }]
}`,
		`{"alternatives" : [{"text": "", "confidence" : 1.0}] }`,
	)
}

// Without a configuration the server takes the audio for 8000 Hz: 150 ms at
// 16 kHz are heard as the first word's 300 ms. A later configuration changes
// nothing.
func TestEmulatorDefaultRate(t *testing.T) {
	c := dial(t, emulator.Settings{Script: emulator.Say("turn on")})
	c.audio(150 * time.Millisecond)
	c.text(config16k)
	c.audio(150 * time.Millisecond)
	c.want("{\n  \"partial\" : \"turn\"\n}", "{\n  \"partial\" : \"turn on\"\n}")
}

func TestEmulatorCloses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"eof without blanks", `{"eof":1}`, "close 1011"},
		{"reset without blanks", `{"reset":1}`, "close 1011"},
		{"other text", "hello", "close 1011"},
		{"configuration is not JSON", "config", "close 1011"},
		{"no key config", `{"x":"config"}`, "close 1011"},
		{"rate is no number", `{"config":{"sample_rate":"16k"}}`, "close 1011"},
		{"too long", strings.Repeat(" ", serverLimit+1), "close 1009"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, emulator.Settings{})
			c.text(tt.text)
			c.want(tt.want)
		})
	}
}

func TestEmulatorFaults(t *testing.T) {
	turnOn := "{\n  \"text\" : \"turn on\"\n}"
	tests := []struct {
		fault string
		want  []string // after the reset
	}{
		{"split-final=20ms", []string{turnOn, `{"text": ""}`}}, // still one reply
		{"empty-ack", []string{`{"text": ""}`, `{"text": ""}`}},
		{"no-ack", []string{"{\n  \"partial\" : \"\"\n}"}},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			fault, err := emulator.ParseFault(tt.fault)
			if err != nil {
				t.Fatal(err)
			}
			c := dial(t, emulator.Settings{Script: emulator.Say("turn on"), Faults: []emulator.Fault{fault}})
			c.text(`{"config":{"sample_rate":16000,"words":false}}`)
			c.audio(600 * time.Millisecond)
			c.want("{\n  \"partial\" : \"turn on\"\n}")
			c.text(`{"reset" : 1}`)
			c.audio(100 * time.Millisecond)
			c.want(tt.want...)
		})
	}
}

func TestEmulatorRefuses(t *testing.T) {
	fault, err := emulator.ParseFault("refuse=503")
	if err != nil {
		t.Fatal(err)
	}
	s, err := emulator.Start(t.Context(), Emulator{}, emulator.Settings{Faults: []emulator.Fault{fault}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, resp, err := websocket.DefaultDialer.Dial(s.URL(), nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %v, %v; want status 503", resp, err)
	}
}
