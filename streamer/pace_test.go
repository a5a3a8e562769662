package streamer

import (
	"math/rand/v2"
	"testing"
	"time"

	"sttbench/record"
)

func TestDueNeverDrifts(t *testing.T) {
	for _, c := range []struct {
		k     int
		chunk time.Duration
		want  time.Duration
	}{
		{0, 20 * time.Millisecond, 20 * time.Millisecond},
		{49, 20 * time.Millisecond, time.Second},
		{179_999, 20 * time.Millisecond, time.Hour},
		{0, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		if got := due(c.k, c.chunk); got != c.want {
			t.Errorf("chunk %d of %v is due at %v, want %v", c.k, c.chunk, got, c.want)
		}
	}
}

// Positions and bytes are inverse at every sample of every rate, and never
// overflow within a day of audio.
func TestBytesAndPositionsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		rate := []int{8000, 11025, 16000, 22050, 24000, 44100, 48000}[rnd.IntN(7)]
		samples := rnd.IntN(rate * 86400)
		at := pcmDuration(2*samples, rate)
		// A position is cut to whole nanoseconds, so it may lie just before its sample.
		if got := bytesAt(at, rate); got != 2*samples && got != 2*(samples-1) {
			t.Fatalf("%d samples at %d Hz end at %v, which is byte %d", samples, rate, at, got)
		}
	}
	if got := bytesAt(20*time.Millisecond, 16000); got != 640 {
		t.Errorf("20 ms at 16 kHz are %d bytes, want 640", got)
	}
}

func TestSummary(t *testing.T) {
	var chunks []record.Chunk
	for i := range 200 {
		d := due(i, 20*time.Millisecond)
		start := d + time.Duration(i)*time.Microsecond
		chunks = append(chunks, record.Chunk{Due: d, Start: start, Return: start + 7})
	}
	var got record.Sent
	summary(&got, chunks)
	want := record.Sent{LateP50: 99 * time.Microsecond, LateP99: 197 * time.Microsecond, LateMax: 199 * time.Microsecond,
		BlockedP50: 7, BlockedP99: 7, BlockedMax: 7}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	summary(&got, nil)
}
