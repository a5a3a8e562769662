package emulator

import "golang.org/x/sys/unix"

// machineMono reads CLOCK_MONOTONIC in nanoseconds.
func machineMono() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
