package emulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Settings say how an emulator behaves. The zero value is a prompt and faultless
// recogniser that says [DefaultScript].
type Settings struct {
	// Listen is the address, host:port on loopback; "" means a free port of
	// 127.0.0.1, which also stands in for an empty host.
	Listen string
	// Script is what every session hears; nil means DefaultScript.
	Script *Script
	// Manifest, where there is one, finds the script of each session by its sound;
	// Script is then heard in audio that belongs to no item, and nil is nothing.
	Manifest *Manifest
	// PartialLag is how far recognition trails behind the audio (audio time). It
	// holds for partials and natural finals; a force looks past it.
	PartialLag time.Duration
	// FinalDelay is drawn for each forced endpoint and each graceful end: the time
	// from its receipt (the kernel's stamp where there is one) to the answer.
	FinalDelay Delay
	// WordErrorRate in [0,1] is the probability that a script word is misheard.
	WordErrorRate float64
	// Seed fixes ids, delays and errors: connection n of a server with a given seed
	// always draws the same.
	Seed uint64
	// Faults are armed together.
	Faults []Fault
	// TLS serves wss with a certificate made at the start; see [Server.CertPEM].
	TLS bool
	// Truth receives the truth log as JSON Lines of [Truth]; nil means none. It is
	// complete when Close has returned.
	Truth io.Writer
}

// Server is a running emulator.
type Server struct {
	vendor   Vendor
	settings Settings
	faults   faults
	clock    clock
	truth    *truthLog
	listener net.Listener
	cert     *certificate // nil without TLS
	http     *http.Server
	ctx      context.Context
	cancel   context.CancelFunc

	mu     sync.Mutex
	conns  int // accepted so far
	closed bool
	work   sync.WaitGroup // handlers and their streams; Add under mu

	closeOnce sync.Once
	closeErr  error
}

// Start listens and serves until ctx is done or [Server.Close] is called. Errors
// are those of the settings and of the listener.
func Start(ctx context.Context, vendor Vendor, settings Settings) (*Server, error) {
	s := &Server{vendor: vendor, settings: settings, clock: newClock()}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	addr, err := loopback(settings.Listen)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	if settings.TLS {
		if s.cert, err = newCertificate(addr); err != nil {
			return nil, fmt.Errorf("emulator: %w", err)
		}
	}
	if s.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	s.truth = newTruthLog(settings.Truth)
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	var listener net.Listener = stampingListener{s.listener, s.clock}
	if s.cert != nil && !s.faults.plainTLS {
		listener = tls.NewListener(listener, s.cert.config())
	}
	go func() { _ = s.http.Serve(listener) }()
	context.AfterFunc(s.ctx, func() { _ = s.Close() })
	return s, nil
}

// check completes the settings and refuses what makes no sense.
func (s *Server) check() error {
	set := &s.settings
	if set.Script == nil && set.Manifest == nil {
		set.Script = DefaultScript()
	}
	if set.Script != nil {
		if err := set.Script.check(); err != nil {
			return err
		}
	}
	if set.PartialLag < 0 || set.PartialLag > maxDelay {
		return fmt.Errorf("partial lag %s is not between 0 and %s", set.PartialLag, maxDelay)
	}
	if !(set.WordErrorRate >= 0 && set.WordErrorRate <= 1) {
		return fmt.Errorf("word error rate %v is not between 0 and 1", set.WordErrorRate)
	}
	for _, f := range set.Faults {
		if err := s.faults.arm(f); err != nil {
			return err
		}
	}
	if _, ok := s.vendor.(Reviser); s.faults.revised && !ok {
		return errors.New("fault revised-final: a final of this vendor never changes")
	}
	if s.faults.plainTLS && !set.TLS {
		return errors.New("fault plain-tls: needs a server with TLS")
	}
	return nil
}

// loopback completes an address and refuses those that others could reach: an
// emulator checks no key and is no public service.
func loopback(addr string) (string, error) {
	if addr == "" {
		addr = ":0"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("listen address %q: want host:port such as 127.0.0.1:9000", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("listen address %q is not on loopback; use 127.0.0.1:%s", addr, port)
	}
	return net.JoinHostPort(host, port), nil
}

// URL is where the emulator listens, ws://host:port without a path, or wss.
func (s *Server) URL() string {
	if s.cert != nil {
		return "wss://" + s.listener.Addr().String()
	}
	return "ws://" + s.listener.Addr().String()
}

// CertPEM is the certificate of a server with TLS, for clients to trust: it is its
// own authority. It is nil without TLS.
func (s *Server) CertPEM() []byte {
	if s.cert == nil {
		return nil
	}
	return s.cert.pem
}

// Close stops listening, closes all streams with code 1001, waits for them and
// completes the truth log, whose error it returns. It may be called more than
// once.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel()
		_ = s.http.Close()
		s.work.Wait()
		s.closeErr = s.truth.close()
	})
	return s.closeErr
}

// enter admits a handler and numbers its connection, unless the server closes.
func (s *Server) enter() (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	s.conns++
	s.work.Add(1)
	return s.conns, true
}

// What the random streams of a connection are for.
const (
	drawIDs = iota
	drawDelays
	drawErrors
	drawNoise
	draws
)

func (s *Server) rand(conn, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(s.settings.Seed, uint64(conn*draws+purpose)))
}

// serve handles one handshake and then its stream.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	n, ok := s.enter()
	if !ok {
		http.Error(w, "the emulator is closing", http.StatusServiceUnavailable)
		return
	}
	defer s.work.Done()
	at := s.clock.now()
	if s.faults.hang {
		s.hang(r, n)
	}
	ids := s.rand(n, drawIDs)
	accepted, refusal := s.judge(r, ids)
	if refusal != nil {
		s.truth.add(Truth{At: at, Conn: n, Event: TruthRefuse, Status: refusal.Status})
		for key, values := range refusal.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(refusal.Status)
		_, _ = w.Write(refusal.Body)
		return
	}
	up := websocket.Upgrader{
		// Plain loopback clients have no origin that means anything.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	if s.faults.huge > 0 {
		up.WriteBufferSize = hugePiece
	}
	if accepted.Subprotocol != "" {
		up.Subprotocols = []string{accepted.Subprotocol}
	}
	conn, err := up.Upgrade(w, r, accepted.Header)
	if err != nil { // Upgrade has answered
		status := http.StatusInternalServerError
		if errors.As(err, new(websocket.HandshakeError)) {
			status = http.StatusBadRequest
		}
		s.truth.add(Truth{At: at, Conn: n, Event: TruthRefuse, Status: status})
		return
	}
	s.truth.add(Truth{At: at, Done: s.clock.now(), Conn: n, Event: TruthAccept})
	// On a goroutine of its own, where net/http does not swallow a panic.
	s.work.Go(func() { newCall(s, n, conn, accepted.Stream, ids).run(s.ctx) })
}

// hang holds a handshake until the client gives up or the server closes. It does
// not return.
func (s *Server) hang(r *http.Request, n int) {
	select {
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	s.truth.add(Truth{At: s.clock.now(), Conn: n, Event: TruthGone})
	panic(http.ErrAbortHandler)
}

func (s *Server) judge(r *http.Request, ids *rand.Rand) (*Accepted, *Refusal) {
	f := &s.faults
	if f.refuse == 0 {
		return s.vendor.Accept(r, ids)
	}
	refusal := s.vendor.Refuse(r, ids, f.refuse)
	if f.retryAfter > 0 {
		if refusal.Header == nil {
			refusal.Header = make(http.Header)
		}
		refusal.Header.Set("Retry-After", strconv.Itoa(int(f.retryAfter.Seconds())))
	}
	return nil, refusal
}
