package deepgram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"sttbench/providers/emulator"
)

// These tests speak to the emulator with a plain WebSocket client and read its
// messages as generic JSON: they must not depend on the dialect.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms   = time.Millisecond
	base = "/v1/listen?model=nova-3&encoding=linear16&sample_rate=16000"
)

func serve(t *testing.T, e Emulator, set emulator.Settings) *emulator.Server {
	t.Helper()
	s, err := emulator.Start(context.Background(), e, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fault(t *testing.T, text string) []emulator.Fault {
	t.Helper()
	f, err := emulator.ParseFault(text)
	if err != nil {
		t.Fatal(err)
	}
	return []emulator.Fault{f}
}

func dial(t *testing.T, s *emulator.Server, target string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	if header == nil {
		header = http.Header{"Authorization": {"Token k1"}}
	}
	conn, resp, err := websocket.DefaultDialer.Dial(s.URL()+target, header)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	}
	return conn, resp, err
}

// talk opens a stream, sends messages (text as string, silence as a duration,
// binary as bytes) and reads until the end: one line per message, and the close.
func talk(t *testing.T, s *emulator.Server, target string, messages ...any) []string {
	t.Helper()
	conn, _, err := dial(t, s, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		switch m := m.(type) {
		case string:
			err = conn.WriteMessage(websocket.TextMessage, []byte(m))
		case time.Duration:
			err = conn.WriteMessage(websocket.BinaryMessage, make([]byte, m*32000/time.Second))
		case []byte:
			err = conn.WriteMessage(websocket.BinaryMessage, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) {
				t.Fatal(err)
			}
			reason, _, _ := strings.Cut(closed.Text, ":")
			return append(lines, strings.TrimSpace(fmt.Sprintf("close %d %s", closed.Code, reason)))
		}
		lines = append(lines, summary(t, data))
	}
}

// summary is a message as "[start,end] flags transcript", or its type.
func summary(t *testing.T, data []byte) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return "garbage"
	}
	switch m["type"] {
	case "Results":
	case "UtteranceEnd":
		return fmt.Sprintf("UtteranceEnd %v", m["last_word_end"])
	case "SpeechStarted":
		return fmt.Sprintf("SpeechStarted %v", m["timestamp"])
	case "Metadata":
		return fmt.Sprintf("Metadata %v", m["duration"])
	case "Error":
		return fmt.Sprintf("Error %v", m["variant"])
	default:
		t.Fatalf("unknown message %s", data)
	}
	var flags []string
	for _, flag := range []string{"is_final", "speech_final", "from_finalize"} {
		if m[flag] == true {
			flags = append(flags, flag)
		}
	}
	start := m["start"].(float64)
	alternative := m["channel"].(map[string]any)["alternatives"].([]any)[0].(map[string]any)
	end := math.Round((start+m["duration"].(float64))*1e6) / 1e6
	line := fmt.Sprintf("[%v,%v] %s: %v", start, end, strings.Join(flags, " "), alternative["transcript"])
	words := alternative["words"].([]any)
	if n := len(strings.Fields(alternative["transcript"].(string))); n != len(words) {
		t.Errorf("%d words for the transcript of %s", len(words), data)
	}
	if (alternative["confidence"].(float64) > 0) != (len(words) > 0) {
		t.Errorf("confidence of %s", data)
	}
	return line
}

const (
	fin  = `{"type":"Finalize"}`
	done = `{"type":"CloseStream"}`
)

func TestStreams(t *testing.T) {
	four := emulator.Say("Turn the lights off.")
	spaced := &emulator.Script{Words: []emulator.Word{
		{Text: "one", Start: 100 * ms, End: 300 * ms}, {Text: "two", Start: 1700 * ms, End: 2000 * ms},
	}}
	for _, test := range []struct {
		name   string
		query  string
		fault  string
		script *emulator.Script
		send   []any
		want   []string
	}{
		{"finalize closes the window", "&interim_results=true&endpointing=false", "", four,
			[]any{1000 * ms, 200 * ms, fin, 300 * ms, fin, done},
			[]string{
				"[0,1] : turn the lights",
				"[0,1.2] is_final from_finalize: turn the lights off",
				"[1.2,1.5] is_final from_finalize: ",
				"Metadata 1.5", "close 1000",
			}},
		{"no interims unless asked for", "&endpointing=false", "", four,
			[]any{1000 * ms, done},
			[]string{"[0,1] is_final: turn the lights", "Metadata 1", "close 1000"}},
		{"formatting keeps the script's spelling", "&endpointing=false&smart_format=true", "", four,
			[]any{1200 * ms, fin, done},
			[]string{"[0,1.2] is_final from_finalize: Turn the lights off.", "Metadata 1.2", "close 1000"}},
		{"window limit", "&endpointing=false", "", emulator.DefaultScript(),
			[]any{2000 * ms, 2250 * ms, 250 * ms, fin, done},
			[]string{
				"[0,4.2] is_final: turn the lights off in the kitchen please turn the lights off in the",
				"[4.2,4.5] is_final from_finalize: kitchen", "Metadata 4.5", "close 1000",
			}},
		{"the vendor's default endpointing is 10 ms", "", "", spaced,
			[]any{300 * ms, 20 * ms, 1980 * ms, done},
			[]string{
				"[0,0.32] is_final speech_final: one", "[0.32,2.3] is_final speech_final: two",
				"Metadata 2.3", "close 1000",
			}},
		{"optional events", "&interim_results=true&endpointing=300&utterance_end_ms=1000&vad_events=true", "", spaced,
			[]any{300 * ms, 300 * ms, 400 * ms, 400 * ms, done},
			[]string{
				"SpeechStarted 0.1", "[0,0.6] is_final speech_final: one", "[0.6,1] : ",
				"UtteranceEnd 0.3", "[0.6,1.4] is_final: ", "Metadata 1.4", "close 1000",
			}},
		{"an empty binary frame ends the stream", "&endpointing=false", "", four,
			[]any{600 * ms, []byte{}},
			[]string{"[0,0.6] is_final: turn the", "Metadata 0.6", "close 1000"}},
		{"control in a binary frame is audio", "&endpointing=false", "", four,
			[]any{600 * ms, []byte(fin + " "), done},
			[]string{"[0,0.600625] is_final: turn the", "Metadata 0.600625", "close 1000"}},
		{"nothing heard", "", "", four,
			[]any{done},
			[]string{"Metadata 0", "close 1000"}},
		{"bad control messages", "", "", four,
			[]any{"{", `{"type":"ForceEndTurn"}`, `{"type":"KeepAlive"}`, `{"type":"Configure","features":{"numerals":true}}`, done},
			[]string{"Error PARSE", "Error UNPARSABLE_CLIENT_MESSAGE", "Metadata 0", "close 1000"}},
		{"no-ack", "&endpointing=false", "no-ack", four,
			[]any{600 * ms, fin, 100 * ms, fin, done},
			// The second force left nothing to say and is not answered at all.
			[]string{"[0,0.6] is_final: turn the", "Metadata 0.7", "close 1000"}},
		{"empty-ack", "&endpointing=false", "empty-ack", four,
			[]any{600 * ms, fin, done},
			[]string{"[0,0.6] is_final from_finalize: ", "Metadata 0.6", "close 1000"}},
		{"split-final", "&endpointing=false", "split-final=5ms", four,
			[]any{1000 * ms, fin, done},
			[]string{
				"[0,0.3] is_final: turn", "[0.3,1] is_final from_finalize: the lights", "Metadata 1", "close 1000",
			}},
		{"final-before-force", "&endpointing=false", "final-before-force", four,
			[]any{350 * ms, 350 * ms, fin, done},
			[]string{
				"[0,0.35] is_final: turn", "[0.35,0.7] is_final: the", "[0.7,0.7] is_final from_finalize: ",
				"Metadata 0.7", "close 1000",
			}},
		{"duplicate-final", "&endpointing=false", "duplicate-final", four,
			[]any{300 * ms, fin, done},
			[]string{
				"[0,0.3] is_final from_finalize: turn", "[0,0.3] is_final from_finalize: turn", "Metadata 0.3", "close 1000",
			}},
		{"garbage", "&endpointing=false", "garbage=2", four,
			[]any{300 * ms, fin, done},
			[]string{"[0,0.3] is_final from_finalize: turn", "garbage", "Metadata 0.3", "close 1000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := emulator.Settings{Script: test.script}
			if test.fault != "" {
				set.Faults = fault(t, test.fault)
			}
			got := talk(t, serve(t, Emulator{}, set), base+test.query, test.send...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIdleLimit(t *testing.T) {
	s := serve(t, Emulator{Idle: 300 * ms}, emulator.Settings{})
	if diff := cmp.Diff([]string{"close 1011 NET-0001"}, talk(t, s, base)); diff != "" {
		t.Errorf("no audio: %s", diff)
	}
	conn, _, err := dial(t, s, base+"&endpointing=false", nil)
	if err != nil {
		t.Fatal(err)
	}
	// Audio has come, so KeepAlive holds the stream open past the limit.
	begin := time.Now()
	_ = conn.WriteMessage(websocket.BinaryMessage, make([]byte, 640))
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for time.Since(begin) < 900*ms {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"KeepAlive"}`))
			<-time.After(20 * ms)
		}
	}()
	_, _, err = conn.ReadMessage()
	<-stop
	if held := time.Since(begin); held < 900*ms || !websocket.IsCloseError(err, 1011) {
		t.Errorf("closed after %v with %v, want 1011 after the last KeepAlive", held, err)
	}
}

func TestKeepAliveAloneHoldsNothing(t *testing.T) {
	s := serve(t, Emulator{Idle: 200 * ms}, emulator.Settings{})
	conn, _, err := dial(t, s, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * ms):
				_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"KeepAlive"}`))
			}
		}
	}()
	_, _, err = conn.ReadMessage()
	close(stop)
	<-ended
	if !websocket.IsCloseError(err, 1011) {
		t.Errorf("ended with %v, want 1011", err)
	}
}

func TestHandshake(t *testing.T) {
	s := serve(t, Emulator{}, emulator.Settings{})
	token := func(v string) http.Header { return http.Header{"Authorization": {v}} }
	for _, test := range []struct {
		name   string
		target string
		header http.Header
		status int
		code   string
	}{
		{"good", base, nil, 101, ""},
		{"lower-case scheme", base, token("token k1"), 101, ""},
		{"JWT", base, token("Bearer a.b.c"), 101, ""},
		{"key as subprotocol", base, http.Header{"Sec-Websocket-Protocol": {"token, k1"}}, 101, ""},
		{"custom model", strings.Replace(base, "nova-3", "0f1d7a52-6a0b-4b52-9d0e-53a8f1c1b001", 1), nil, 101, ""},
		{"repeated keyterm", base + "&keyterm=a&keyterm=b", nil, 101, ""},
		{"no key", base, http.Header{}, 401, "INVALID_AUTH"},
		{"bad key", base, token("Token bad"), 401, "INVALID_AUTH"},
		{"plain key as bearer", base, token("Bearer k1"), 401, "INVALID_AUTH"},
		{"wrong scheme", base, token("Basic k1"), 401, "INVALID_AUTH"},
		{"other path", "/v2/listen", nil, 404, "NOT_FOUND"},
		{"unknown parameter", base + "&eot_threshold=0.7", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"bad switch", base + "&interim_results=1", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"bad endpointing", base + "&endpointing=off", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"utterance end alone", base + "&utterance_end_ms=1000", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"utterance end too short", base + "&interim_results=true&utterance_end_ms=999", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"no sample rate", "/v1/listen?model=nova-3&encoding=linear16", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"encoding", "/v1/listen?model=nova-3&encoding=opus&sample_rate=16000", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"stereo", base + "&channels=2", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"keywords on nova-3", base + "&keywords=a", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"keyterm on nova-2", strings.Replace(base, "nova-3", "nova-2", 1) + "&keyterm=a", nil, 400, "INVALID_QUERY_PARAMETER"},
		{"flux", strings.Replace(base, "nova-3", "flux-general-en", 1), nil, 400, "INVALID_QUERY_PARAMETER"},
		{"unknown model", strings.Replace(base, "nova-3", "supernova", 1), nil, 403, "INSUFFICIENT_PERMISSIONS"},
	} {
		_, resp, err := dial(t, s, test.target, test.header)
		if resp == nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if resp.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", test.name, resp.StatusCode, test.status)
		}
		if len(resp.Header.Get("dg-request-id")) != 36 {
			t.Errorf("%s: dg-request-id %q", test.name, resp.Header.Get("dg-request-id"))
		}
		if err == nil {
			continue
		}
		var body map[string]string
		data, _ := io.ReadAll(resp.Body)
		if json.Unmarshal(data, &body) != nil || body["err_code"] != test.code ||
			body["err_msg"] != resp.Header.Get("dg-error") || body["request_id"] != resp.Header.Get("dg-request-id") {
			t.Errorf("%s: body %s, want code %s", test.name, data, test.code)
		}
	}
}

func TestRefuseFault(t *testing.T) {
	for status, code := range map[string]string{
		"400": "Bad Request", "401": "INVALID_AUTH", "402": "ASR_PAYMENT_REQUIRED",
		"403": "INSUFFICIENT_PERMISSIONS", "429": "TOO_MANY_REQUESTS", "503": "INTERNAL_SERVER_ERROR",
	} {
		s := serve(t, Emulator{}, emulator.Settings{Faults: fault(t, "refuse="+status)})
		_, resp, err := dial(t, s, base, nil)
		if err == nil || resp == nil {
			t.Fatalf("%s: %v", status, err)
		}
		data, _ := io.ReadAll(resp.Body)
		if fmt.Sprint(resp.StatusCode) != status || !strings.Contains(string(data), code) {
			t.Errorf("refused with %d %s, want %s", resp.StatusCode, data, status)
		}
	}
}

// The emulator has its own table of parameters, and must know what we send.
func TestEmulatorKnowsTheDialectsParameters(t *testing.T) {
	switches, others := queryNames()
	known := strings.Join(append(switches, others...), " ") + " "
	for _, p := range params() {
		if !strings.Contains(known, p.name+" ") {
			t.Errorf("the emulator refuses %s", p.name)
		}
	}
}
