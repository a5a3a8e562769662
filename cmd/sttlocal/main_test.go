package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"sttbench/cmd/sttlocal/internal/pocketsphinx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDecoder "recognises" one word for each second of an utterance.
type fakeDecoder struct {
	samples    int
	running    bool
	hypotheses int // calls of Hypothesis
	fail       error
}

func (d *fakeDecoder) Start() error {
	if d.running {
		return errors.New("started twice")
	}
	d.running, d.samples = true, 0
	return d.fail
}

func (d *fakeDecoder) Process(samples []int16) error {
	if !d.running {
		return errors.New("not started")
	}
	d.samples += len(samples)
	return nil
}

func (d *fakeDecoder) Hypothesis() string {
	d.hypotheses++
	return strings.TrimSpace(strings.Repeat("word ", d.samples/sampleRate))
}

func (d *fakeDecoder) End() ([]pocketsphinx.Word, error) {
	if !d.running {
		return nil, errors.New("not started")
	}
	d.running = false
	var words []pocketsphinx.Word
	for i := range d.samples / sampleRate {
		at := time.Duration(i) * time.Second
		words = append(words, pocketsphinx.Word{Text: "word", Start: at, End: at + time.Second/2, Confidence: 1})
	}
	return words, nil
}

func (d *fakeDecoder) Close() {}

func fakeLoad() (decoder, error) { return &fakeDecoder{}, nil }

// realLoad returns the loader of the installed library, or skips the test.
func realLoad(t testing.TB) func() (decoder, error) {
	t.Helper()
	load, err := loader("")
	if err != nil {
		if os.Getenv("STTBENCH_REQUIRE_DEPS") == "1" {
			t.Fatalf("STTBENCH_REQUIRE_DEPS is set, but %v: run make deps", err)
		}
		t.Skipf("skipped: %v: run make deps", err)
	}
	return load
}

// recording returns one of the LibriVox recordings that Debian packages with
// PocketSphinx, or skips the test.
func recording(t testing.TB, number string) []int16 {
	t.Helper()
	name := filepath.Join("/usr/share/pocketsphinx/test/data/librivox", "sense_and_sensibility_01_austen_64kb-"+number+".wav")
	data, err := os.ReadFile(name)
	if err != nil {
		if os.Getenv("STTBENCH_REQUIRE_DEPS") == "1" {
			t.Fatalf("STTBENCH_REQUIRE_DEPS is set, but %v: run make deps", err)
		}
		t.Skipf("skipped: %v: run make deps", err)
	}
	_, data, ok := bytes.Cut(data, []byte("data"))
	if !ok || len(data) < 4 {
		t.Fatalf("%s is not a WAV file", name)
	}
	data = data[4:]
	samples := make([]int16, len(data)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return samples
}

// tone returns a 300 Hz tone at -14 dBFS, which the endpointer takes for
// speech, and silence returns digital silence.
func tone(d time.Duration) []int16 {
	s := make([]int16, count(d))
	for i := range s {
		s[i] = int16(9000 * math.Sin(2*math.Pi*300*float64(i)/sampleRate))
	}
	return s
}

func silence(d time.Duration) []int16 { return make([]int16, count(d)) }

func pcm(samples []int16) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// startServer serves on loopback until the test ends or stop is called. Stop
// fails the test unless the server stops cleanly.
func startServer(t *testing.T, srv *server) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.serve(ctx, l) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		srv.decoders.close()
	}
	t.Cleanup(stop)
	return "ws://" + l.Addr().String(), stop
}

func testServer(t *testing.T, load func() (decoder, error), sessions int) *server {
	t.Helper()
	srv := newServer(load, sessions, log.New(t.Output(), "", 0))
	if err := srv.warmUp(); err != nil {
		t.Fatal(err)
	}
	return srv
}

// client is one connection to a server under test.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func dial(t *testing.T, url string) *client {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	return &client{t, conn}
}

func (c *client) send(kind int, data []byte) {
	c.t.Helper()
	if err := c.conn.WriteMessage(kind, data); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read() string {
	c.t.Helper()
	kind, data, err := c.conn.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	if kind != websocket.TextMessage {
		c.t.Fatalf("reply of kind %d, want text", kind)
	}
	return string(data)
}

func (c *client) text(s string) string {
	c.t.Helper()
	c.send(websocket.TextMessage, []byte(s))
	return c.read()
}

func (c *client) audio(samples []int16) string {
	c.t.Helper()
	c.send(websocket.BinaryMessage, pcm(samples))
	return c.read()
}

// closed reads the close frame of the server.
func (c *client) closed() (code int, reason string) {
	c.t.Helper()
	_, data, err := c.conn.ReadMessage()
	var ce *websocket.CloseError
	if !errors.As(err, &ce) {
		c.t.Fatalf("got message %q and error %v, want a close frame", data, err)
	}
	return ce.Code, ce.Text
}

func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // in standard error
	}{
		{"unknown flag", []string{"--nope"}, exitUsage, "unknown flag --nope"},
		{"no sessions", []string{"--max-sessions=0"}, exitUsage, "at least 1"},
		{"all interfaces", []string{"--listen=:0"}, exitUsage, "--allow-remote"},
		{"other interface", []string{"--listen=192.0.2.1:0"}, exitUsage, "--allow-remote"},
		{"no port", []string{"--listen=127.0.0.1"}, exitUsage, "missing port"},
		{"no model", []string{"--model=testdata/none"}, exitConfig, "en-us.lm.bin is missing or empty: run make deps"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if stdout.Len() != 0 || !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("stdout %q, stderr %q, want only %q", &stdout, &stderr, tt.want)
			}
		})
	}
}

func TestRunHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]string{"--help": "--max-sessions", "--version": "sttlocal "} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), []string{flag}, &stdout, &stderr); code != exitOK {
			t.Errorf("%s: exit code %d: %s", flag, code, &stderr)
		}
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s prints %q, want %q in it", flag, &stdout, want)
		}
	}
}

// TestRunServes drives the whole program: the line on standard output, one
// exchange, and the stop.
func TestRunServes(t *testing.T) {
	realLoad(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout := make(lines, 1)
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"--listen", "localhost:0"}, stdout, t.Output()) }()
	url, ok := strings.CutPrefix(<-stdout, "listening ")
	if !ok {
		t.Fatalf("first line does not start with listening: %q", url)
	}
	c := dial(t, strings.TrimSpace(url))
	if got := c.text(resetCommand); got != emptyFinal {
		t.Errorf("reset before audio: %q, want %q", got, emptyFinal)
	}
	cancel()
	if code, _ := c.closed(); code != websocket.CloseGoingAway {
		t.Errorf("close code %d at the stop, want %d", code, websocket.CloseGoingAway)
	}
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d, want %d", got, exitOK)
	}
}

// lines is a writer that passes every write on.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
