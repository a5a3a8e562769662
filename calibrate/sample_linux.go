package calibrate

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// TakeSample reads the counters now.
func TakeSample() (Sample, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return Sample{}, fmt.Errorf("read CPU time: %w", err)
	}
	s := Sample{Mono: clock(unix.CLOCK_MONOTONIC), CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano())}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		s.Machine = parseStat(text)
	}
	return s, nil
}

// clock reads one of the clocks that every Linux has.
func clock(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// StreamLimit is how many streams this process can have: MaxStreams, or fewer
// where the system limits open files.
func StreamLimit() int {
	const others = 64 // files besides the streams
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil || files.Cur > MaxStreams+others {
		return MaxStreams
	}
	return max(0, int(files.Cur)-others)
}
