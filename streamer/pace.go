package streamer

import (
	"slices"
	"time"

	"sttbench/record"
)

// due is when chunk k of length c is due, counted from t0. A microphone has a
// chunk only when it is complete, hence k+1; and it is a product, not a sum of
// sleeps, so that no lateness is ever passed on to the next chunk.
func due(k int, c time.Duration) time.Duration { return time.Duration(k+1) * c }

// bytesAt is the number of PCM bytes before an audio position, at 16 bit mono.
func bytesAt(at time.Duration, rate int) int {
	whole := int64(at / time.Second)
	rest := int64(at % time.Second)
	return 2 * int(whole*int64(rate)+rest*int64(rate)/int64(time.Second))
}

// pcmDuration is the length of 16 bit mono PCM.
func pcmDuration(bytes, rate int) time.Duration {
	samples := int64(bytes / 2)
	r := int64(rate)
	return time.Duration(samples/r)*time.Second + time.Duration(samples%r*int64(time.Second)/r)
}

// summary fills the lateness figures of the audio writes.
func summary(sent *record.Sent, chunks []record.Chunk) {
	late := make([]time.Duration, len(chunks))
	blocked := make([]time.Duration, len(chunks))
	for i, c := range chunks {
		late[i], blocked[i] = c.Start-c.Due, c.Return-c.Start
	}
	sent.LateP50, sent.LateP99, sent.LateMax = spread(late)
	sent.BlockedP50, sent.BlockedP99, sent.BlockedMax = spread(blocked)
}

// spread gives the median, the 99th percentile (nearest rank) and the maximum.
func spread(v []time.Duration) (p50, p99, worst time.Duration) {
	if len(v) == 0 {
		return 0, 0, 0
	}
	slices.Sort(v)
	rank := func(percent int) time.Duration { return v[(len(v)*percent+99)/100-1] }
	return rank(50), rank(99), v[len(v)-1]
}
