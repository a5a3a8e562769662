package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Limits that keep one client from holding the server or its memory.
const (
	maxMessage   = 1 << 20          // bytes; the default of the Vosk server
	idleTimeout  = 60 * time.Second // without a message
	writeTimeout = 10 * time.Second // a client that does not read its replies
	closeTimeout = time.Second      // for the client's half of the closing handshake
	stopTimeout  = 5 * time.Second  // from the signal to the exit
)

// server serves sessions over WebSocket on any path.
type server struct {
	decoders *pool
	slots    chan struct{} // one token per running session
	log      *log.Logger
	idle     time.Duration

	sessions sync.WaitGroup
	running  atomic.Int64
}

// newServer returns a server that runs up to maxSessions sessions at once.
func newServer(load func() (decoder, error), maxSessions int, l *log.Logger) *server {
	return &server{
		decoders: &pool{load: load},
		slots:    make(chan struct{}, maxSessions),
		log:      l,
		idle:     idleTimeout,
	}
}

// warmUp proves that the model can decode and makes the first spare decoder.
func (s *server) warmUp() error {
	d, err := s.decoders.get()
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Start(); err != nil {
		return err
	}
	if err := d.Process(make([]int16, sampleRate/10)); err != nil {
		return err
	}
	if _, err := d.End(); err != nil {
		return err
	}
	s.decoders.refill()
	s.decoders.refills.Wait()
	return nil
}

// serve accepts connections on l until ctx ends; then it closes every session
// with code 1001 and returns within stopTimeout.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handle(ctx, w, r) }),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          s.log,
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := hs.Shutdown(limit); err != nil {
		hs.Close()
	}
	<-served
	finished := make(chan struct{})
	go func() { s.sessions.Wait(); close(finished) }()
	select {
	case <-finished:
		return nil
	case <-limit.Done():
		return fmt.Errorf("%d sessions did not stop within %v", s.running.Load(), stopTimeout)
	}
}

// handle turns a request into a session, if there is room for one.
func (s *server) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		http.Error(w, "this is a WebSocket server", http.StatusUpgradeRequired)
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "all "+strconv.Itoa(cap(s.slots))+" sessions are in use", http.StatusServiceUnavailable)
		return
	}
	s.sessions.Add(1)
	s.running.Add(1)
	defer func() {
		<-s.slots
		if s.running.Add(-1) == 0 && ctx.Err() == nil {
			s.decoders.refill()
		}
		s.sessions.Done()
	}()
	d, err := s.decoders.get()
	if err != nil {
		s.log.Print(err)
		http.Error(w, "the recogniser cannot be loaded", http.StatusInternalServerError)
		return
	}
	defer d.Close()
	upgrader := websocket.Upgrader{HandshakeTimeout: 5 * time.Second}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered the request
	}
	defer conn.Close()
	s.converse(ctx, conn, &session{rec: newRecognizer(d)})
}

// converse answers messages until the client leaves, one side ends the
// session, or ctx ends.
func (s *server) converse(ctx context.Context, conn *websocket.Conn, ses *session) {
	conn.SetReadLimit(maxMessage)
	// The end of ctx wakes a pending read.
	unwatch := context.AfterFunc(ctx, func() { conn.NetConn().SetReadDeadline(time.Now()) })
	defer unwatch()
	for {
		conn.SetReadDeadline(time.Now().Add(s.idle))
		if ctx.Err() != nil {
			s.end(conn, websocket.CloseGoingAway, "the server stops")
			return
		}
		kind, data, err := conn.ReadMessage()
		if err != nil {
			var timeout net.Error
			switch {
			case ctx.Err() != nil:
				s.end(conn, websocket.CloseGoingAway, "the server stops")
			case errors.As(err, &timeout) && timeout.Timeout():
				s.end(conn, websocket.CloseInternalServerErr, fmt.Sprintf("no message for %v", s.idle))
			case errors.Is(err, websocket.ErrReadLimit):
				s.end(conn, websocket.CloseMessageTooBig, "")
			}
			return
		}
		reply, done, err := ses.message(ctx, kind, data)
		if ctx.Err() != nil {
			s.end(conn, websocket.CloseGoingAway, "the server stops")
			return
		}
		if err != nil {
			s.end(conn, websocket.CloseInternalServerErr, err.Error())
			return
		}
		if reply != "" {
			conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err := conn.WriteMessage(websocket.TextMessage, []byte(reply)); err != nil {
				return
			}
		}
		if done {
			s.end(conn, websocket.CloseNormalClosure, "")
			return
		}
	}
}

// end sends a close frame and reads on for a moment, because closing a socket
// with unread data resets it and can take the last reply with it.
func (s *server) end(conn *websocket.Conn, code int, reason string) {
	if len(reason) > 120 { // a close frame has room for 123 bytes
		reason = reason[:120]
	}
	deadline := time.Now().Add(closeTimeout)
	err := conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) { // ReadMessage sends its own at the size limit
		return
	}
	nc := conn.NetConn()
	nc.SetReadDeadline(deadline)
	var skip [4096]byte
	for {
		if _, err := nc.Read(skip[:]); err != nil {
			return
		}
	}
}
