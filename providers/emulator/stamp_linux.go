package emulator

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampedConn reads with recvmsg, to get the kernel's receive stamps
// (SO_TIMESTAMPNS): they do not contain the time until this process was woken.
// The kernel gives the stamp of the last segment that a read returned.
type stampedConn struct {
	*net.TCPConn
	raw    syscall.RawConn
	clock  clock
	oob    []byte
	offset int64 // realtime − monotonic
	last   int64
}

// stampReads turns the stamps on; a connection that cannot have them is returned
// as it is.
func stampReads(conn net.Conn, clk clock) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || set != nil {
		return conn
	}
	return &stampedConn{TCPConn: tcp, raw: raw, clock: clk, oob: make([]byte, 128)}
}

// Read implements net.Conn.
func (c *stampedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var n, oobn int
	var err error
	waited := c.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), p, c.oob, 0)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	switch {
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, os.NewSyscallError("recvmsg", err)
	case n == 0:
		return 0, io.EOF
	}
	c.last = c.stampOf(c.oob[:oobn])
	return n, nil
}

func (c *stampedConn) lastStamp() int64 { return c.last }

// stampOf finds the stamp in a control message and brings it to the monotonic
// clock.
func (c *stampedConn) stampOf(oob []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return ts.Nano() - c.realMinusMono()
		}
	}
	return 0
}

// realMinusMono follows the wall clock, which is steered all the time. Go reads
// its two clocks one right after the other; a reading that jumps is taken again,
// because the process may have been interrupted in between.
func (c *stampedConn) realMinusMono() int64 {
	const jump = int64(5 * time.Microsecond)
	for range 4 {
		now := time.Now()
		offset := now.UnixNano() - c.clock.at(now)
		moved := offset - c.offset
		c.offset = offset
		if -jump < moved && moved < jump {
			break
		}
	}
	return c.offset
}
