package streamer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"sttbench/providers"
	"sttbench/record"
)

const (
	maxSteps    = 8        // of connecting, so that a dialect cannot loop
	maxBody     = 64 << 10 // of an HTTP answer while connecting
	maxMessage  = 8 << 20  // of one received message
	writeBuffer = 64 << 10 // above the largest chunk: gorilla splits messages that do not fit
)

// connectError is a failure to open the stream, and where it happened.
type connectError struct {
	phase record.Phase
	err   error
}

func (e *connectError) Error() string { return fmt.Sprintf("%s: %v", e.phase, e.err) }
func (e *connectError) Unwrap() error { return e.err }

// connection is an open stream.
type connection struct {
	ws   *websocket.Conn
	conn *stampedConn
	dial *providers.Dial
}

// connect walks through the dialect's steps until the stream is open, and times
// the phases into c.
func (s *Streamer) connect(ctx context.Context, session providers.Session, c *record.Connect) (*connection, error) {
	var resp *providers.Response
	for range maxSteps {
		step, err := session.Next(time.Now(), resp)
		if err != nil {
			phase := record.PhasePrepare
			if resp != nil && c.Upgrade > 0 {
				phase = record.PhaseUpgrade
			}
			return nil, &connectError{phase, err}
		}
		switch {
		case step.Request != nil:
			start := s.clock.now()
			resp, err = s.request(ctx, step.Request)
			c.Prepare += s.clock.now() - start
			if err != nil {
				return nil, &connectError{record.PhasePrepare, err}
			}
		case step.Dial != nil:
			var open *connection
			if open, resp, err = s.dial(ctx, step.Dial, c); err != nil {
				return nil, err
			}
			if open != nil {
				return open, nil
			}
		default:
			return nil, &connectError{record.PhasePrepare, errors.New("dialect gave an empty step")}
		}
	}
	return nil, &connectError{record.PhasePrepare, fmt.Errorf("no stream after %d steps", maxSteps)}
}

// request makes one HTTP request of the preparation.
func (s *Streamer) request(ctx context.Context, r *providers.Request) (*providers.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, bareURLError(err)
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	transport := &http.Transport{TLSClientConfig: s.TLS, DialContext: s.DialContext,
		MaxResponseHeaderBytes: maxHandshake}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, bareURLError(err)
	}
	return readResponse(resp)
}

// bareURLError drops the URL that net/http and net/url put into their errors: a
// query may hold a token.
func bareURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func readResponse(resp *http.Response) (*providers.Response, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, err
	}
	return &providers.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// dial opens the WebSocket. A refusal with an HTTP answer is no error here: the
// dialect reads it.
func (s *Streamer) dial(ctx context.Context, d *providers.Dial, c *record.Connect) (*connection, *providers.Response, error) {
	p := &phases{clock: s.clock, tls: s.TLS, dial: s.DialContext, now: record.PhaseDNS}
	dialer := websocket.Dialer{
		NetDialContext:    p.dialPlain,
		NetDialTLSContext: p.dialTLS,
		Subprotocols:      d.Subprotocols,
		WriteBufferSize:   writeBuffer,
		ReadBufferSize:    writeBuffer,
	}
	ws, resp, err := dialer.DialContext(ctx, d.URL, d.Header)
	if p.unwatch != nil {
		p.unwatch()
	}
	c.DNS, c.TCP, c.TLS = p.dns, p.tcp, p.tlsTime
	if p.upgradeStart > 0 {
		c.Upgrade = s.clock.now() - p.upgradeStart
	}
	if p.conn != nil {
		c.Address = p.conn.RemoteAddr().String()
	}
	if errors.Is(err, websocket.ErrBadHandshake) && resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		answer, err := readResponse(resp)
		if err != nil {
			return nil, nil, &connectError{record.PhaseUpgrade, err}
		}
		return nil, answer, nil
	}
	if err != nil {
		return nil, nil, &connectError{p.now, bareURLError(err)}
	}
	p.conn.limit = 0
	c.RTT = roundTrip(p.conn.Conn)
	c.Warm = s.warm(c.Address)
	ws.SetReadLimit(maxMessage)
	return &connection{ws: ws, conn: p.conn, dial: d}, nil, nil
}

// phases times the parts of a dial and remembers which of them was reached.
type phases struct {
	clock clock
	tls   *tls.Config
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)

	now               record.Phase
	dns, tcp, tlsTime time.Duration
	upgradeStart      time.Duration
	conn              *stampedConn
	unwatch           func() bool // ends the watch over the context
}

func (p *phases) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.dialTCP(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.upgradeStart, p.now = p.clock.now(), record.PhaseUpgrade
	return conn, nil
}

func (p *phases) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.dialTCP(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.now = record.PhaseTLS
	start := p.clock.now()
	cfg := &tls.Config{}
	if p.tls != nil {
		cfg = p.tls.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	cfg.NextProtos = []string{"http/1.1"} // a WebSocket upgrade over h2 is refused
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	p.tlsTime = p.clock.now() - start
	p.upgradeStart, p.now = p.clock.now(), record.PhaseUpgrade
	return secure, nil
}

func (p *phases) dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	start := p.clock.now()
	var dnsStart time.Duration
	trace := &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { dnsStart = p.clock.now() },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			p.dns = p.clock.now() - dnsStart
			if i.Err == nil {
				p.now = record.PhaseTCP
			}
		},
	}
	host, _, _ := net.SplitHostPort(addr)
	if net.ParseIP(host) != nil {
		p.now = record.PhaseTCP
	}
	conn, err := p.dial(httptrace.WithClientTrace(ctx, trace), network, addr)
	if err != nil {
		return nil, err
	}
	p.now = record.PhaseTCP
	p.tcp = p.clock.now() - start - p.dns
	p.conn = newStampedConn(conn, p.clock)
	// gorilla obeys the context's deadline while it waits for the handshake, but not
	// its cancellation.
	p.unwatch = context.AfterFunc(ctx, p.conn.abort)
	return p.conn, nil
}
