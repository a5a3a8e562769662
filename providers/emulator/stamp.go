package emulator

import "net"

// stampingListener hands out connections that stamp what they read, where the
// system can.
type stampingListener struct {
	net.Listener
	clock clock
}

// Accept implements net.Listener.
func (l stampingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return stampReads(conn, l.clock), nil
}

// kernelStamp is the kernel's stamp, on the machine's monotonic clock, of the
// last segment that the last read of conn returned; 0 where there is none.
func kernelStamp(conn net.Conn) int64 {
	if s, ok := belowTLS(conn).(interface{ lastStamp() int64 }); ok {
		return s.lastStamp()
	}
	return 0
}
