package emulator

import (
	"math"
	"time"
)

// loudness is the mean square above which 10 ms of audio count as sound:
// −45 dBFS.
var loudness = math.Pow(32768*math.Pow(10, -45.0/20), 2)

// level counts PCM (signed 16 bit little endian mono) and finds the sound in it.
type level struct {
	rate  int
	bytes int64
	// base is the position at which rate was set, of baseBytes.
	base      time.Duration
	baseBytes int64

	low  int // pending low byte of a sample cut in two, or -1
	sum  float64
	n    int
	ever bool
	last time.Duration // end of the last loud frame that loudBefore has passed
	// ahead holds the loud stretches not passed yet, in order.
	ahead []stretch
}

type stretch struct{ start, end time.Duration }

func (l *level) setRate(rate int) {
	if l.rate == rate {
		return
	}
	l.base, l.baseBytes = l.position(), l.bytes
	l.rate, l.low, l.sum, l.n = rate, -1, 0, 0
}

func (l *level) position() time.Duration {
	if l.rate == 0 {
		return 0
	}
	samples := (l.bytes - l.baseBytes) / 2
	rate := int64(l.rate)
	return l.base + time.Duration(samples/rate)*time.Second + time.Duration(samples%rate)*time.Second/time.Duration(rate)
}

func (l *level) add(pcm []byte) {
	frame := max(1, l.rate/100)
	for _, b := range pcm {
		l.bytes++
		if l.low < 0 {
			l.low = int(b)
			continue
		}
		sample := float64(int16(uint16(l.low) | uint16(b)<<8))
		l.low = -1
		l.sum += sample * sample
		if l.n++; l.n == frame {
			if l.sum/float64(frame) >= loudness {
				l.loud(l.position())
			}
			l.sum, l.n = 0, 0
		}
	}
}

// loud notes a loud frame that ends at the given position.
func (l *level) loud(end time.Duration) {
	const frame = 10 * time.Millisecond
	l.ever = true
	if n := len(l.ahead); n > 0 && end-l.ahead[n-1].end <= frame+time.Millisecond {
		l.ahead[n-1].end = end
		return
	}
	l.ahead = append(l.ahead, stretch{end - frame, end})
}

// loudBefore is the end of the last sound before at (at itself inside a sound),
// and whether there ever was any. Positions asked for must not go back.
func (l *level) loudBefore(at time.Duration) (time.Duration, bool) {
	for len(l.ahead) > 0 && l.ahead[0].end <= at {
		l.last = l.ahead[0].end
		l.ahead = l.ahead[1:]
	}
	if len(l.ahead) > 0 && l.ahead[0].start < at {
		return at, true
	}
	return l.last, l.ever
}
