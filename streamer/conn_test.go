package streamer

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sttbench/record"
)

// tcpPair is a connection of ours and its peer, over loopback.
func tcpPair(t *testing.T) (*stampedConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); peer.Close() })
	return newStampedConn(ours, newClock()), peer
}

func TestReadsAreStamped(t *testing.T) {
	c, peer := tcpPair(t)
	buf := make([]byte, 64)
	for range 20 {
		before := c.clock.now()
		if _, err := peer.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(buf); n != 5 || err != nil {
			t.Fatal(n, err)
		}
		after := c.clock.now()
		s := c.read
		if s.user < before || s.user > after {
			t.Errorf("user stamp %v outside [%v, %v]", s.user, before, after)
		}
		if runtime.GOOS == "linux" && !s.hasKernel {
			t.Fatal("no kernel stamp on Linux")
		}
		// The two clocks are compared by a bracket of at most 20 µs.
		if s.hasKernel && (s.kernel < before-50*time.Microsecond || s.kernel > s.user+50*time.Microsecond) {
			t.Errorf("kernel stamp %v outside [%v, %v]", s.kernel, before, s.user)
		}
	}
	peer.Close()
	if _, err := c.Read(buf); err != io.EOF {
		t.Errorf("end of the stream: %v, want EOF", err)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	c, peer := tcpPair(t)
	buf, msg := make([]byte, 64), []byte("hello")
	n := testing.AllocsPerRun(100, func() {
		_, _ = peer.Write(msg)
		_, _ = c.Read(buf)
	})
	if n > 0 {
		t.Errorf("%v allocations for a read", n)
	}
	if n = testing.AllocsPerRun(100, func() { _, _ = c.Write(msg) }); n > 0 {
		t.Errorf("%v allocations for a write", n)
	}
}

// A peer that does not read delays nobody and loses nothing.
func TestWritesNeverBlock(t *testing.T) {
	c, peer := tcpPair(t)
	if c.raw == nil {
		t.Skip("writes block on this system")
	}
	chunk := make([]byte, 32<<10)
	for i := range chunk {
		chunk[i] = byte(i)
	}
	total := 0
	waiting := func() bool { _, w := c.state(); return w }
	for !waiting() {
		n, err := c.Write(chunk)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	for range 5 {
		n, err := c.Write(chunk)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	got := make(chan int)
	go func() {
		sum := 0
		buf := make([]byte, 64<<10)
		for sum < total {
			n, err := peer.Read(buf)
			for i := range n {
				if buf[i] != byte((sum+i)%len(chunk)) {
					sum = -1 << 40
				}
			}
			sum += n
			if err != nil {
				break
			}
		}
		got <- sum
	}()
	c.mu.Lock()
	drained := c.drained
	c.mu.Unlock()
	<-drained
	if at, waiting := c.state(); waiting || at == 0 {
		t.Errorf("after the drain: waiting %v, empty at %v", waiting, at)
	}
	if sum := <-got; sum != total {
		t.Errorf("peer read %d bytes in order, want %d", sum, total)
	}
}

func TestBacklogIsBounded(t *testing.T) {
	c, _ := tcpPair(t)
	if c.raw == nil {
		t.Skip("writes block on this system")
	}
	chunk := make([]byte, 256<<10)
	var err error
	for range 1000 {
		if _, err = c.Write(chunk); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("250 MiB were taken for a peer that never reads")
	}
	if len(c.backlog) > maxBacklog {
		t.Errorf("backlog of %d bytes", len(c.backlog))
	}
	c.Close()
}

func BenchmarkWebSocketSend(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			defer c.Close()
			_, _ = io.Copy(io.Discard, c.NetConn())
		}
	}))
	defer srv.Close()
	p := &phases{clock: newClock(), dial: new(net.Dialer).DialContext}
	dialer := websocket.Dialer{NetDialContext: p.dialPlain, WriteBufferSize: writeBuffer}
	ws, _, err := dialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ws.Close()
	chunk := make([]byte, 640)
	b.ReportAllocs()
	for b.Loop() {
		if err := ws.WriteMessage(websocket.BinaryMessage, chunk); err != nil {
			b.Fatal(err)
		}
		if _, waiting := p.conn.state(); waiting { // a benchmark outruns any peer
			<-p.conn.drained
		}
	}
}

func BenchmarkLatenessSummary(b *testing.B) {
	chunks := make([]record.Chunk, 3000)
	b.ReportAllocs()
	for b.Loop() {
		var s record.Sent
		summary(&s, chunks)
	}
}
