package streamer

import (
	"net"
	"time"
)

// stampedConn sits between the socket and everything else, TLS included, and
// stamps each read when it returns, before anybody parses what it brought.
// Reads happen on one goroutine at a time: first the dial's, then the reader's.
type stampedConn struct {
	net.Conn
	clock clock
	read  time.Duration // stamp of the last read that brought bytes
}

func (c *stampedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.read = c.clock.now()
	}
	return n, err
}
