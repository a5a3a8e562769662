package streamer

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// maxBacklog is how much a peer may leave unread before the session gives up: half
// a minute of 16 kHz audio, 22 s of base64 at 24 kHz.
const maxBacklog = 1 << 20

// errBacklog tells that the peer does not read what it is sent.
var errBacklog = errors.New("the peer does not read")

// stamp says when a read brought bytes: by the kernel's clock where it tells, and
// by ours when the read returned.
type stamp struct {
	kernel, user time.Duration
	hasKernel    bool
}

// stampedConn sits between the socket and everything else, TLS included.
//
// It stamps each read, before anybody parses what it brought. Reads happen on one
// goroutine at a time: first the dial's, then the reader's.
//
// Its writes never block where the socket allows it: what the kernel does not take
// at once goes to a bounded backlog that a goroutine of its own drains. That is
// what lets one thread pace many sessions: the slow peer of one session cannot
// delay another's chunks.
type stampedConn struct {
	net.Conn
	clock clock
	raw   *rawConn // nil where the socket gives no access
	read  stamp    // of the last read that brought bytes
	// limit is how many more bytes may be read; 0 is no limit. It bounds the answer
	// to the handshake, of which net/http reads headers without end.
	limit int

	mu       sync.Mutex
	backlog  []byte        // not yet taken by the kernel
	draining bool          // the drain goroutine runs
	drained  chan struct{} // closed when it ends
	emptyAt  time.Duration // when the backlog was last drained
	err      error         // of a failed write; final
	aborted  bool
}

func newStampedConn(conn net.Conn, c clock) *stampedConn {
	return &stampedConn{Conn: conn, clock: c, raw: newRawConn(conn, c), limit: maxHandshake}
}

// Read implements net.Conn.
func (c *stampedConn) Read(p []byte) (int, error) {
	if c.raw != nil {
		return c.counted(c.raw.read(p, &c.read))
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.read = stamp{user: c.clock.now()}
	}
	return c.counted(n, err)
}

// errHandshake tells that the answer to the handshake has no end.
var errHandshake = errors.New("the answer to the handshake is larger than 1 MiB")

const maxHandshake = 1 << 20

func (c *stampedConn) counted(n int, err error) (int, error) {
	if c.limit > 0 {
		if c.limit -= n; c.limit <= 0 {
			c.limit = 1 // every further read fails as well
			return 0, errHandshake
		}
	}
	return n, err
}

// Write implements net.Conn. Where it does not block it takes all bytes at once;
// an error of bytes taken earlier is returned by a later call.
func (c *stampedConn) Write(p []byte) (int, error) {
	if c.raw == nil {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	n := 0
	// While a drain is under way the socket belongs to it: only append.
	if !c.draining {
		var err error
		if n, err = c.raw.write(p); err != nil {
			c.err = err
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	if len(c.backlog)+len(p)-n > maxBacklog {
		c.err = fmt.Errorf("%w: %d KiB wait to be sent", errBacklog, maxBacklog>>10)
		return n, c.err
	}
	c.backlog = append(c.backlog, p[n:]...)
	if !c.draining {
		c.draining, c.drained = true, make(chan struct{})
		go c.drain()
	}
	return len(p), nil
}

// drain writes the backlog with ordinary, blocking writes.
func (c *stampedConn) drain() {
	for {
		c.mu.Lock()
		if len(c.backlog) == 0 || c.err != nil {
			c.draining = false
			c.emptyAt = c.clock.now()
			close(c.drained)
			c.mu.Unlock()
			return
		}
		p := slices.Clone(c.backlog)
		c.backlog = c.backlog[:0]
		if !c.aborted {
			_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
		c.mu.Unlock()
		if _, err := c.Conn.Write(p); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
		}
	}
}

// state tells whether bytes wait for the peer to read, and when last they did not
// any more.
func (c *stampedConn) state() (emptyAt time.Duration, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.emptyAt, c.draining
}

// abort makes pending and later reads and writes fail.
func (c *stampedConn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	_ = c.Conn.SetDeadline(time.Unix(1, 0))
}

// SetWriteDeadline implements net.Conn. Writes that do not block have none.
func (c *stampedConn) SetWriteDeadline(t time.Time) error {
	if c.raw != nil {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn and waits for the drain to end.
func (c *stampedConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	drained := c.drained
	c.mu.Unlock()
	if drained != nil {
		<-drained
	}
	return err
}
