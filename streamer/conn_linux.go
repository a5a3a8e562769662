package streamer

import (
	"encoding/binary"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawConn reads a TCP socket together with the kernel's receive stamps and writes
// to it without blocking. Its buffers and functions are made once: a read or write
// allocates nothing.
type rawConn struct {
	rc    syscall.RawConn
	clock clock
	local net.Addr

	// Arguments and results of the functions below, one set for each direction.
	in       []byte
	msg      unix.Msghdr
	iov      unix.Iovec
	oob      [128]byte
	n        int
	readErr  syscall.Errno
	readOnce func(fd uintptr) bool

	out       []byte
	wrote     int
	writeErr  error
	writeOnce func(fd uintptr) bool
}

// newRawConn asks the kernel for stamps; nil where conn is no TCP socket or the
// kernel refuses.
func newRawConn(conn net.Conn, c clock) *rawConn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	var serr error
	err = rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || serr != nil {
		return nil
	}
	r := &rawConn{rc: rc, clock: c, local: conn.LocalAddr()}
	r.msg.Iov, r.msg.Iovlen = &r.iov, 1
	r.msg.Control = &r.oob[0]
	r.readOnce = func(fd uintptr) bool {
		for {
			r.msg.SetControllen(len(r.oob))
			// unix.Recvmsg would allocate an address for each call.
			n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.msg)), 0)
			if r.n, r.readErr = int(n), errno; errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	}
	r.writeOnce = func(fd uintptr) bool {
		for {
			r.wrote, r.writeErr = unix.Write(int(fd), r.out)
			if r.writeErr != unix.EINTR {
				return true
			}
		}
	}
	return r
}

// read reads once and stamps what came.
func (r *rawConn) read(p []byte, s *stamp) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.in = p
	r.iov.Base = &p[0]
	r.iov.SetLen(len(p))
	err := r.rc.Read(r.readOnce)
	r.in, r.iov.Base = nil, nil
	switch {
	case err != nil:
		return 0, err
	case r.readErr != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: r.local, Err: r.readErr}
	case r.n == 0:
		return 0, io.EOF
	}
	s.user = r.clock.now()
	s.kernel, s.hasKernel = r.kernelStamp()
	return r.n, nil
}

// kernelStamp reads the stamp out of the control message. It is of the last
// segment in the read, on the wall clock, and is moved to ours by an offset that is
// measured anew each time, so that a slewed or stepped wall clock does no harm.
func (r *rawConn) kernelStamp() (time.Duration, bool) {
	if int(r.msg.Controllen) < unix.CmsgLen(16) {
		return 0, false
	}
	level := binary.NativeEndian.Uint32(r.oob[8:])
	kind := binary.NativeEndian.Uint32(r.oob[12:])
	if level != unix.SOL_SOCKET || kind != unix.SO_TIMESTAMPNS {
		return 0, false
	}
	sec := int64(binary.NativeEndian.Uint64(r.oob[16:]))
	nsec := int64(binary.NativeEndian.Uint64(r.oob[24:]))
	offset, ok := r.clock.wallOffset()
	if !ok {
		return 0, false
	}
	return time.Duration(sec*int64(time.Second) + nsec - offset), true
}

// write writes what the socket takes at once; the rest is not an error.
func (r *rawConn) write(p []byte) (int, error) {
	r.out, r.wrote, r.writeErr = p, 0, nil
	if err := r.rc.Write(r.writeOnce); err != nil {
		return 0, err
	}
	switch r.writeErr {
	case nil:
		return r.wrote, nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, &net.OpError{Op: "write", Net: "tcp", Addr: r.local, Err: r.writeErr}
}
