package calibrate

import (
	"bytes"
	"strconv"
	"time"
)

// Sample is a reading of the machine's counters.
type Sample struct {
	Mono    int64         // CLOCK_MONOTONIC, ns
	CPU     time.Duration // used by this process so far
	Machine *MachineTime  // nil where the system does not tell
}

// MachineTime is what the processors of the machine did so far, in ticks of the
// kernel.
type MachineTime struct {
	Total uint64
	Busy  uint64 // without steal
	Steal uint64 // a virtual processor wanted to run, and the host did not let it
}

// parseStat reads the first line of /proc/stat (proc(5)): user, nice, system,
// idle, iowait, irq, softirq, steal. Guests are counted in user and nice already.
func parseStat(text []byte) *MachineTime {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return nil
	}
	var m MachineTime
	for i, field := range fields[1:9] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return nil
		}
		m.Total += n
		switch i {
		case 3, 4: // idle, iowait
		case 7:
			m.Steal = n
		default:
			m.Busy += n
		}
	}
	return &m
}
