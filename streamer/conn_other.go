//go:build !linux

package streamer

import (
	"errors"
	"net"
)

// rawConn exists on Linux only; elsewhere reads are stamped in user space and
// writes block.
type rawConn struct{}

func newRawConn(net.Conn, clock) *rawConn { return nil }

func (*rawConn) read([]byte, *stamp) (int, error) { return 0, errors.ErrUnsupported }
func (*rawConn) write([]byte) (int, error)        { return 0, errors.ErrUnsupported }
