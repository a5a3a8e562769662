package emulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toy is a small protocol for tests: binary messages are audio, the text "force"
// forces, "finish" ends, "lockstep" and "idle" do what they say. Answers are
// "partial: …", "final: …" and, where the answer is closed, "ack: …".
type toy struct{}

func (toy) Accept(r *http.Request, _ *rand.Rand) (*Accepted, *Refusal) {
	if !GoodKey(r.Header.Get("Key")) {
		return nil, &Refusal{Status: 401, Header: http.Header{"Toy": {"no"}}, Body: []byte("bad key")}
	}
	return &Accepted{Stream: &toyStream{}, Header: http.Header{"Toy": {"yes"}}}, nil
}

func (toy) Refuse(_ *http.Request, _ *rand.Rand, status int) *Refusal {
	return &Refusal{Status: status, Body: []byte("refused")}
}

type toyStream struct{ idle *Timer }

func (s *toyStream) Open(c *Call) { c.SendText([]byte("hello")) }

func (s *toyStream) Message(c *Call, m Message) {
	if m.Binary {
		c.Audio(m.Data)
		return
	}
	switch string(m.Data) {
	case "force":
		c.Force("id")
	case "finish":
		c.Finish()
	case "lockstep":
		c.Hear(Hearing{Lockstep: true, PartialEvery: NoPartials})
	case "idle":
		s.idle = c.After(time.Hour, func() { c.Abort() })
		s.idle.Reset(ms)
		c.After(2*time.Hour, func() {}).Stop()
	default:
		c.SendText([]byte("echo: " + string(m.Data)))
	}
}

func (s *toyStream) Partial(c *Call, h Hypothesis) { c.SendText([]byte("partial: " + h.Text())) }

func (s *toyStream) Final(c *Call, f Final) {
	kind := "final: "
	if f.Ack && f.Cause == CauseForce {
		kind = "ack: "
	}
	c.SendText([]byte(kind + f.Text()))
	if f.Cause == CauseFinish {
		c.Close(1000, "bye")
	}
}

func start(t *testing.T, set Settings) *Server {
	t.Helper()
	s, err := Start(context.Background(), toy{}, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func dial(t *testing.T, s *Server) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{}
	if pem := s.CertPEM(); pem != nil {
		d.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		d.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	conn, _, err := d.Dial(s.URL(), http.Header{"Key": {"good"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func send(t *testing.T, conn *websocket.Conn, messages ...any) {
	t.Helper()
	for _, m := range messages {
		var err error
		switch m := m.(type) {
		case string:
			err = conn.WriteMessage(websocket.TextMessage, []byte(m))
		case []byte:
			err = conn.WriteMessage(websocket.BinaryMessage, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads text messages until the stream ends, and how it ended.
func readAll(conn *websocket.Conn) (texts []string, end string) {
	for {
		_, data, err := conn.ReadMessage()
		var closed *websocket.CloseError
		switch {
		case err == nil:
			texts = append(texts, string(data))
			continue
		case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
			return texts, fmt.Sprint(closed.Code)
		}
		return texts, "broken"
	}
}

func armed(t *testing.T, names ...string) (all []Fault) {
	t.Helper()
	for _, name := range names {
		f, err := ParseFault(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		faults string // separated by blanks
		want   []string
		end    string
	}{
		{"", []string{"hello", "partial: one two three", "ack: one two three", "final: "}, "1000"},
		{"no-partials", []string{"hello", "ack: one two three", "final: "}, "1000"},
		{"no-ack", []string{"hello", "partial: one two three", "final: one two three", "final: "}, "1000"},
		{"empty-ack", []string{"hello", "partial: one two three", "ack: ", "final: "}, "1000"},
		{"no-ack empty-ack", []string{"hello", "partial: one two three", "final: "}, "1000"},
		{"split-final=20ms", []string{"hello", "partial: one two three", "final: one", "ack: two three", "final: "}, "1000"},
		{"final-before-force", []string{"hello", "final: one two three", "ack: ", "final: "}, "1000"},
		{"final-before-force no-ack", []string{"hello", "final: one two three", "final: "}, "1000"},
		{"duplicate-final", []string{"hello", "partial: one two three", "ack: one two three", "ack: one two three", "final: "}, "1000"},
		{"silent", nil, "1000"},
		{"abrupt-close", []string{"hello", "partial: one two three"}, "broken"},
		{"abrupt-close=1s", []string{"hello"}, "broken"},
		{"close=1011", []string{"hello", "partial: one two three"}, "1011"},
		{"garbage=2", []string{
			"hello", `{"type":"garbage","text":`, "partial: one two three",
			"ack: one two three", `{"type":"garbage","text":`, "final: ",
		}, "1000"},
		{"unknown-type=2", []string{
			"hello", `{"type":"emulator.unknown","number":2}`, "partial: one two three",
			"ack: one two three", `{"type":"emulator.unknown","number":4}`, "final: ",
		}, "1000"},
		{"unsolicited-final", []string{"hello", "partial: one two three", "ack: one two three", "final: thank you", "final: "}, "1000"},
		{"unsolicited-final=before", []string{"hello", "final: one two three", "ack: ", "final: "}, "1000"},
		{"half-open=1s", []string{"hello"}, "broken"},
		{"reset", []string{"hello", "partial: one two three"}, "broken"},
		{"close=4008:1s", []string{"hello"}, "4008"},
		{"no-partials duplicate-final split-final=1ms", []string{
			"hello", "final: one", "final: one", "ack: two three", "ack: two three", "final: ",
		}, "1000"},
	} {
		t.Run(strings.ReplaceAll(test.faults, " ", "+"), func(t *testing.T) {
			s := start(t, Settings{Script: Say("one two three"), Faults: armed(t, strings.Fields(test.faults)...)})
			conn := dial(t, s)
			// A connection that breaks may refuse the later ones.
			for _, m := range []any{silence(time.Second), "force", "finish"} {
				kind, data := websocket.TextMessage, []byte(fmt.Sprint(m))
				if pcm, ok := m.([]byte); ok {
					kind, data = websocket.BinaryMessage, pcm
				}
				_ = conn.WriteMessage(kind, data)
			}
			if test.end == "broken" {
				_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // half-open sockets do not end by themselves
			}
			got, end := readAll(conn)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if end != test.end {
				t.Errorf("ended with %s, want %s", end, test.end)
			}
		})
	}
}

func TestHandshakeRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		key    string
		faults []string
		status int
		body   string
	}{
		{"no key", "", nil, 401, "bad key"},
		{"bad key", "bad1", nil, 401, "bad key"},
		{"fault", "good", []string{"refuse=429"}, 429, "refused"},
	} {
		s := start(t, Settings{Faults: armed(t, test.faults...)})
		_, resp, err := websocket.DefaultDialer.Dial(s.URL(), http.Header{"Key": {test.key}})
		if err == nil || resp == nil {
			t.Fatalf("%s: dial gives %v", test.name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != test.status || string(body) != test.body {
			t.Errorf("%s: refused with %d %q", test.name, resp.StatusCode, body)
		}
	}
	// Plain HTTP gets an answer, too.
	s := start(t, Settings{})
	req, _ := http.NewRequest("GET", strings.Replace(s.URL(), "ws:", "http:", 1), nil)
	req.Header.Set("Key", "good")
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain GET: status %d", resp.StatusCode)
	}
}

func TestStartRefuses(t *testing.T) {
	for _, test := range []struct {
		set  Settings
		want string
	}{
		{Settings{Listen: "0.0.0.0:0"}, "not on loopback"},
		{Settings{Listen: "example.org:80"}, "not on loopback"},
		{Settings{Listen: "nonsense"}, "host:port"},
		{Settings{PartialLag: -1}, "partial lag"},
		{Settings{WordErrorRate: 1.5}, "word error rate"},
		{Settings{Faults: []Fault{{Name: "x"}}}, "unknown fault"},
		{Settings{Script: &Script{}}, "no words"},
		{Settings{Faults: []Fault{{Name: "revised-final"}}}, "never changes"},
		{Settings{Faults: []Fault{{Name: "plain-tls"}}}, "needs a server with TLS"},
	} {
		s, err := Start(context.Background(), toy{}, test.set)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want one with %q", test.set, err, test.want)
		}
	}
}

// A lockstep server looks at nothing while an answer is outstanding; others go
// on with control messages and keep order among answers.
func TestLockstep(t *testing.T) {
	s := start(t, Settings{Script: Say("one two"), FinalDelay: Delay{Base: 30 * ms}})
	free := dial(t, s)
	send(t, free, silence(300*ms), "force", "x", silence(300*ms), "force", "finish")
	got, _ := readAll(free)
	want := []string{"hello", "partial: one", "echo: x", "ack: one", "ack: two", "final: "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("free: %s", diff)
	}
	locked := dial(t, s)
	send(t, locked, "lockstep", silence(300*ms), "force", "x", silence(300*ms), "force", "finish")
	got, _ = readAll(locked)
	want = []string{"hello", "ack: one", "echo: x", "ack: two", "final: "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lockstep: %s", diff)
	}
}

func TestTimers(t *testing.T) {
	conn := dial(t, start(t, Settings{}))
	send(t, conn, "idle")
	if _, end := readAll(conn); end != "broken" {
		t.Errorf("ended with %s", end)
	}
}

func TestLimits(t *testing.T) {
	s := start(t, Settings{FinalDelay: Delay{Base: time.Minute}})
	conn := dial(t, s)
	send(t, conn, make([]byte, maxMessage+1))
	if _, end := readAll(conn); end != "1009" && end != "broken" {
		t.Errorf("message over the limit: ended with %s", end)
	}
	conn = dial(t, s)
	for range maxPending + 1 {
		send(t, conn, "force")
	}
	if _, end := readAll(conn); end != "1008" {
		t.Errorf("flood of forces: ended with %s", end)
	}
}

// The truth log holds every message, and its stamps agree with the delay.
func TestTruth(t *testing.T) {
	var log bytes.Buffer
	s := start(t, Settings{Script: Say("one two three"), FinalDelay: Delay{Base: 25 * ms}, Truth: &log})
	conn := dial(t, s)
	send(t, conn, silence(time.Second), "force")
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(data), "ack") {
			break
		}
	}
	send(t, conn, "finish")
	readAll(conn)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := ReadTruth(bytes.NewReader(log.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var force, answer Truth
	for _, l := range all {
		got = append(got, fmt.Sprintf("%s %s %s %d %v", l.Event, l.Kind, l.Op, l.Bytes, l.Audio))
		if l.Conn != 1 || l.At <= 0 {
			t.Errorf("line without connection or stamp: %+v", l)
		}
		switch {
		case l.Kind == TruthForce:
			force = l
		case l.Kind == TruthFinal && l.Force == 1:
			answer = l
		}
	}
	want := []string{
		"accept   0 0s", "send control text 5 0s",
		"send partial text 22 1s", "receive audio binary 32000 1s",
		"receive force text 5 1s", "send final text 18 1s",
		"receive finish text 6 1s", "send final text 7 1s", "close   0 1s", "gone   0 1s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	received := force.At
	if force.Kernel != 0 {
		received = force.Kernel
		if d := time.Duration(force.At - force.Kernel); d < 0 || d > time.Second {
			t.Errorf("kernel stamp lies %v before the read", d)
		}
	}
	if due := received + int64(25*ms); force.Due != due || answer.Due != due {
		t.Errorf("due %d and %d, want receipt plus delay %d", force.Due, answer.Due, due)
	}
	if late := time.Duration(answer.At - answer.Due); late < 0 || late > 250*ms || answer.Done < answer.At {
		t.Errorf("answer left %v after it was due; done %d, at %d", late, answer.Done, answer.At)
	}
}

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTruthWriteErrorIsReported(t *testing.T) {
	s := start(t, Settings{Truth: badWriter{}})
	conn := dial(t, s)
	send(t, conn, "finish")
	readAll(conn)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("close gives %v", err)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Start(ctx, toy{}, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s)
	send(t, conn, "x")
	if _, data, err := conn.ReadMessage(); string(data) != "hello" {
		t.Fatal(data, err)
	}
	cancel()
	if _, end := readAll(conn); end != "1001" {
		t.Errorf("ended with %s", end)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "ws://")); err == nil {
		t.Error("still listening")
	}
}

// A server with a seed says the same again, connection by connection, and
// connections do not disturb each other.
func TestConcurrentStreamsAreReproducible(t *testing.T) {
	const streams = 20
	run := func() []string {
		s := start(t, Settings{WordErrorRate: 0.3, Seed: 5, FinalDelay: Delay{Base: 5 * ms, Spread: "uniform", Width: 5 * ms}})
		defer s.Close()
		texts := make([]string, streams)
		var all sync.WaitGroup
		for i := range streams {
			conn := dial(t, s) // in order: the number of a connection picks its errors
			all.Go(func() {
				for range 100 {
					_ = conn.WriteMessage(websocket.BinaryMessage, silence(200*ms))
				}
				_ = conn.WriteMessage(websocket.TextMessage, []byte("force"))
				_ = conn.WriteMessage(websocket.TextMessage, []byte("finish"))
				got, _ := readAll(conn)
				texts[i] = strings.Join(got, "\n")
			})
		}
		all.Wait()
		return texts
	}
	first, second := run(), run()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if slices.Sort(first); len(slices.Compact(first)) < streams {
		t.Error("connections share their errors")
	}
}

// Answers to forces leave when they are due. The test's own limit is loose; run
// it with -v for the figures of this machine.
func TestDelayAccuracy(t *testing.T) {
	var log bytes.Buffer
	s := start(t, Settings{FinalDelay: Delay{Base: 20 * ms, Spread: "uniform", Width: 10 * ms}, Truth: &log})
	conn := dial(t, s)
	for range 40 {
		send(t, conn, silence(400*ms), "force")
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(data, []byte("ack")) {
				break
			}
		}
	}
	s.Close()
	var late []time.Duration
	dec := json.NewDecoder(&log)
	for {
		var l Truth
		if dec.Decode(&l) != nil {
			break
		}
		if l.Event == TruthSend && l.Force > 0 {
			late = append(late, time.Duration(l.At-l.Due))
		}
	}
	slices.Sort(late)
	if len(late) != 40 || late[0] < 0 {
		t.Fatalf("%d answers, the first %v after it was due", len(late), late[0])
	}
	t.Logf("answers left late by p50 %v, p90 %v, max %v", late[20], late[36], late[39])
	if late[20] > 10*ms {
		t.Errorf("half the answers left more than %v late", late[20])
	}
}
