//go:build !linux

package emulator

import "net"

// stampReads does nothing: only Linux stamps TCP segments.
func stampReads(conn net.Conn, _ clock) net.Conn { return conn }
