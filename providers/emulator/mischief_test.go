package emulator

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
)

// speak gives the toy's messages while "one two three" is spoken in steps.
func speak(t *testing.T, vendor Vendor, faults ...string) []string {
	t.Helper()
	s, err := Start(t.Context(), vendor, Settings{Script: Say("one two three"), Faults: armed(t, faults...)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn := dial(t, s)
	send(t, conn, silence(300*ms), silence(300*ms), silence(300*ms), "force", "finish")
	texts, _ := readAll(conn)
	return texts[1:] // without the greeting
}

type changingToy struct{ toy }

func (changingToy) Revises() {}

func TestFaultsOfText(t *testing.T) {
	for _, test := range []struct {
		faults string
		vendor Vendor
		want   []string
	}{
		{"out-of-order-partials", toy{}, []string{
			"partial: one", "partial: one two", "partial: one", "partial: one two three", "partial: one two", "ack: one two three", "final: "}},
		{"unsolicited-final=both", toy{}, []string{
			"final: one", "partial: two", "partial: two three", "ack: two three", "final: thank you", "final: "}},
		{"revised-final no-partials", changingToy{}, []string{"ack: one two banana", "ack: one two three", "final: "}},
		{"revised-final split-final=1ms no-partials", changingToy{}, []string{"final: one", "ack: two banana", "ack: two three", "final: "}},
		{"revised-final empty-ack no-partials", changingToy{}, []string{"ack: ", "final: "}},
	} {
		t.Run(test.faults, func(t *testing.T) {
			if diff := cmp.Diff(test.want, speak(t, test.vendor, strings.Fields(test.faults)...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A stream that asks by itself is told old words after new ones, once.
func TestReorder(t *testing.T) {
	words := Say("one two").Words
	var m Call
	var got []int
	for _, n := range []int{0, 1, 1, 2, 2, 2} {
		got = append(got, len(m.reorder(Hypothesis{Words: words[:n]}).Words))
	}
	if diff := cmp.Diff([]int{0, 1, 1, 2, 1, 2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBinaryGarbageIsSeeded(t *testing.T) {
	run := func(seed uint64) (all []string) {
		s := start(t, Settings{Seed: seed, Faults: armed(t, "binary-garbage=1")})
		conn := dial(t, s)
		send(t, conn, "a", "b", "finish")
		for {
			kind, data, err := conn.ReadMessage()
			if err != nil {
				return all
			}
			if kind == websocket.BinaryMessage {
				all = append(all, string(data))
			}
		}
	}
	first := run(3)
	if diff := cmp.Diff(first, run(3)); diff != "" || len(first) != 4 {
		t.Errorf("%d messages, the second time: %s", len(first), diff)
	}
	if cmp.Equal(first, run(4)) {
		t.Error("another seed sends the same bytes")
	}
}

// A reset is an error of the socket, an abrupt close is an end of file.
func TestReset(t *testing.T) {
	for _, secure := range []bool{false, true} {
		conn := dial(t, start(t, Settings{TLS: secure, Faults: armed(t, "reset")}))
		send(t, conn, "force")
		for err := error(nil); ; {
			if _, _, err = conn.ReadMessage(); err == nil {
				continue
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("tls %v: ended with %v", secure, err)
			}
			break
		}
	}
}

// A half-open stream answers neither a ping nor a close.
func TestHalfOpen(t *testing.T) {
	conn := dial(t, start(t, Settings{Faults: armed(t, "half-open")}))
	pongs := make(chan struct{}, 1000)
	conn.SetPongHandler(func(string) error { pongs <- struct{}{}; return nil })
	end := make(chan string)
	go func() {
		_, how := readAll(conn)
		end <- how
	}()
	control := func(kind int, data []byte) {
		if err := conn.WriteControl(kind, data, time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() bool {
		control(websocket.PingMessage, nil)
		select {
		case <-pongs:
			return true
		case <-time.After(300 * ms):
			return false
		}
	}
	if !answered() {
		t.Error("no pong before the force")
	}
	send(t, conn, "force", silence(time.Second), "finish")
	for n := 0; answered(); n++ { // the server's reader may be a little ahead of the force
		if n == 1000 {
			t.Fatal("pings are still answered")
		}
	}
	control(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
	if how := <-end; how != "broken" {
		t.Errorf("ended with %s", how)
	}
}

func TestSlowAndNoReading(t *testing.T) {
	const size = 30_000
	for _, test := range []struct {
		fault string
		least time.Duration
	}{
		{"slow-read=100000", 250 * ms},
		{"slow-read=1000000000", 0},
	} {
		conn := dial(t, start(t, Settings{Faults: armed(t, test.fault)}))
		began := time.Now()
		send(t, conn, make([]byte, size), "finish")
		if texts, end := readAll(conn); end != "1000" || len(texts) < 2 {
			t.Errorf("%s: %q, ended with %s", test.fault, texts, end)
		}
		if took := time.Since(began); took < test.least {
			t.Errorf("%s: %d bytes were read within %v", test.fault, size, took)
		}
	}
	// Whoever writes without end to a server that does not read is held back.
	s := start(t, Settings{Faults: armed(t, "never-read")})
	conn := dial(t, s)
	sent := 0
	for ; sent < 64; sent++ {
		_ = conn.SetWriteDeadline(time.Now().Add(500 * ms))
		if err := conn.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if sent == 64 {
		t.Error("64 MiB were taken by a server that does not read")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A huge message costs neither side more than a piece of it.
func TestHugeMessage(t *testing.T) {
	const size = 64 << 20
	s := start(t, Settings{Faults: armed(t, "huge-message")})
	conn := dial(t, s)
	if _, _, err := conn.ReadMessage(); err != nil { // the greeting
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	send(t, conn, "force")
	_, r, err := conn.NextReader()
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	runtime.ReadMemStats(&after)
	if n != size || err != nil {
		t.Errorf("%d bytes, %v; want %d", n, err, size)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d KiB allocated for the message", got>>10)
	}
	if _, data, err := conn.ReadMessage(); !strings.HasPrefix(string(data), "ack") {
		t.Errorf("after it came %q, %v", data, err)
	}
}

func TestHangingHandshake(t *testing.T) {
	s := start(t, Settings{Faults: armed(t, "hang-handshake")})
	d := websocket.Dialer{HandshakeTimeout: 200 * ms}
	if _, _, err := d.Dial(s.URL(), http.Header{"Key": {"good"}}); err == nil {
		t.Error("the handshake was answered")
	}
	// One that nobody gives up ends with the server.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if data, _ := io.ReadAll(conn); len(data) > 0 {
		t.Errorf("answer %q", data)
	}
}

func TestRetryAfter(t *testing.T) {
	s := start(t, Settings{Faults: armed(t, "refuse=503:7s")})
	_, resp, err := websocket.DefaultDialer.Dial(s.URL(), http.Header{"Key": {"good"}})
	if err == nil || resp == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("%v: %+v", err, resp)
	}
}

func TestTLS(t *testing.T) {
	for _, listen := range []string{"", "localhost:0", "127.0.0.2:0"} {
		s := start(t, Settings{TLS: true, Listen: listen})
		if !strings.HasPrefix(s.URL(), "wss://") {
			t.Errorf("url %s", s.URL())
		}
		conn := dial(t, s)
		send(t, conn, "finish")
		if texts, end := readAll(conn); end != "1000" || len(texts) != 2 {
			t.Errorf("%s: %q, ended with %s", s.URL(), texts, end)
		}
		_, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "wss://"), nil)
		if unknown := new(x509.UnknownAuthorityError); !errors.As(err, unknown) {
			t.Errorf("a client that does not know the certificate gets %v", err)
		}
	}
	if s := start(t, Settings{}); s.CertPEM() != nil {
		t.Error("a certificate without TLS")
	}
	s := start(t, Settings{TLS: true, Faults: armed(t, "plain-tls")})
	var header tls.RecordHeaderError
	if _, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "wss://"), nil); !errors.As(err, &header) {
		t.Errorf("plain text on a TLS port gives %v", err)
	}
}

// TLS does not hide the kernel's stamps.
func TestStampsBelowTLS(t *testing.T) {
	stamped := func(secure bool) bool {
		var log bytes.Buffer
		s := start(t, Settings{TLS: secure, Truth: &log})
		conn := dial(t, s)
		send(t, conn, "finish")
		readAll(conn)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := ReadTruth(&log)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Event == TruthReceive {
				return l.Kernel != 0
			}
		}
		t.Fatal("nothing was received")
		return false
	}
	if plain, secure := stamped(false), stamped(true); plain != secure {
		t.Errorf("kernel stamps: %v in plain text, %v over TLS", plain, secure)
	}
}
