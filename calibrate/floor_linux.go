package calibrate

import (
	"context"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bareConn is a TCP connection without anything on top. It stamps as the streamer
// does: by the monotonic clock before a write, by the kernel's stamp of a read.
type bareConn struct {
	conn net.Conn
	raw  syscall.RawConn
	oob  []byte
}

func dialBare(ctx context.Context, addr string) (*bareConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		conn.Close()
		return nil, err
	}
	// Without the stamps user space's are taken, which roundTrip tells.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	return &bareConn{conn: conn, raw: raw, oob: make([]byte, 128)}, nil
}

func (b *bareConn) close() { b.conn.Close() }

// roundTrip sends one message and waits for its echo.
func (b *bareConn) roundTrip() (trip time.Duration, kernel bool, err error) {
	start := clock(unix.CLOCK_MONOTONIC)
	if _, err := b.conn.Write(message[:]); err != nil {
		return 0, false, err
	}
	var at int64
	var buf [len(message)]byte
	for got := 0; got < len(buf); {
		n, stamp, ok, err := b.read(buf[got:])
		if err != nil {
			return 0, false, err
		}
		got, at, kernel = got+n, stamp, ok
	}
	return time.Duration(at - start), kernel, nil
}

func (b *bareConn) read(p []byte) (n int, at int64, kernel bool, err error) {
	var oobn int
	waited := b.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), p, b.oob, 0)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	switch {
	case waited != nil:
		return 0, 0, false, waited
	case err != nil:
		return 0, 0, false, err
	case n == 0:
		return 0, 0, false, io.ErrUnexpectedEOF
	}
	if wall, ok := kernelStamp(b.oob[:oobn]); ok {
		return n, wall - realMinusMono(), true, nil
	}
	return n, clock(unix.CLOCK_MONOTONIC), false, nil
}

func kernelStamp(oob []byte) (wall int64, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano(), true
		}
	}
	return 0, false
}

// realMinusMono is the distance of the two clocks: of a few readings the one that
// was least interrupted.
func realMinusMono() int64 {
	var offset int64
	least := int64(1<<63 - 1)
	for range 3 {
		before := clock(unix.CLOCK_MONOTONIC)
		wall := clock(unix.CLOCK_REALTIME)
		after := clock(unix.CLOCK_MONOTONIC)
		if after-before < least {
			least, offset = after-before, wall-(before+after)/2
		}
	}
	return offset
}
