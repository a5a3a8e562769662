//go:build !linux

package streamer

import (
	"net"
	"time"
)

// machineMono has no portable form: records of such machines cannot be joined
// with truth logs.
func machineMono() int64 { return 0 }

// roundTrip is not read here.
func roundTrip(net.Conn) time.Duration { return 0 }

// processTime and machineTicks are not read here.
func processTime() time.Duration          { return 0 }
func machineTicks() (steal, total uint64) { return 0, 0 }
