package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"sttbench/providers"
	"sttbench/providers/deepgram"
	"sttbench/record"
	"sttbench/streamer"
)

// FinalDelay is the emulator's delay, as its flag is written. It varies by less
// than the time between two forces, so that no answer waits for the one before.
const FinalDelay = "60ms~20ms"

// Bounds of a plan.
const (
	MaxStreams  = 1000
	MinDuration = time.Second
	// MaxAudio bounds streams × duration, because every write is kept.
	MaxAudio = 1000 * time.Minute
)

const (
	sampleRate = 16000
	// settle is the time between the start of the last stream and the counting:
	// what is sent while others still connect is late by milliseconds.
	settle   = time.Second
	deadline = 5 * time.Second
)

// Plan is one measurement.
type Plan struct {
	Streams  int           // at the same time, 1 to MaxStreams
	Duration time.Duration // that counts
}

// Check refuses plans that cannot be carried out.
func (p Plan) Check() error {
	switch {
	case p.Streams < 1 || p.Streams > MaxStreams:
		return fmt.Errorf("%d streams: want 1 to %d", p.Streams, MaxStreams)
	case p.Duration < MinDuration || p.Duration > MaxAudio:
		return fmt.Errorf("a duration of %v: want %v to %v", p.Duration, MinDuration, MaxAudio)
	case time.Duration(p.Streams) > MaxAudio/p.Duration:
		return fmt.Errorf("%d streams of %v: want at most %.0f minutes of audio in all", p.Streams, p.Duration, MaxAudio.Minutes())
	}
	return nil
}

// every is the time between two forces of one stream. The emulator waits awake
// for the last 1.5 ms before an answer; at 100 answers a second in all that is a
// sixth of a processor, and more would measure the emulator. Long runs have
// answers enough. At 3 s the emulator's own window of 4 s never cuts in.
func (p Plan) every() time.Duration {
	const shortest, longest, enough = 50 * time.Millisecond, 3 * time.Second, 1200
	return min(max(shortest, time.Duration(p.Streams)*10*time.Millisecond, p.Duration/enough), longest)
}

// ramp is how long connecting may take.
func (p Plan) ramp() time.Duration {
	return 2*time.Second + time.Duration(p.Streams)*10*time.Millisecond
}

// audio is the length of each stream.
func (p Plan) audio() time.Duration { return p.ramp() + settle + p.Duration }

// turns are the forces of stream i. The streams take turns. At the first there may
// be no text yet; it does not count.
func (p Plan) turns(i int) []record.Turn {
	every := p.every()
	first := every * time.Duration(i+1) / time.Duration(p.Streams)
	var list []record.Turn
	for at := first; at <= p.audio(); at += every {
		list = append(list, record.Turn{Start: max(0, at-every), SE: at, EOS: at, SELow: at, SEHigh: at})
	}
	return list
}

// Script is the script that the emulator must follow: there is new text at every
// force. The force is sent up to a chunk later than asked for, hence two words.
func (p Plan) Script() []byte {
	type word struct {
		Text string  `json:"w"`
		End  float64 `json:"end_s"`
	}
	script := struct {
		Words  []word `json:"words"`
		Repeat bool   `json:"repeat"`
	}{Repeat: true}
	for i, w := range []string{"left", "right"} {
		script.Words = append(script.Words, word{w, float64(i+1) * (p.every() / 2).Seconds()})
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(script); err != nil {
		panic(err) // plain data always marshals
	}
	return b.Bytes()
}

// pcm is what all streams send: faint noise, because the emulator listens to a
// script.
func (p Plan) pcm() []byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, int(p.audio()*sampleRate/time.Second)*2)
	for i := 0; i < len(b); i += 2 {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// job is the session of stream i.
func (p Plan) job(i int, endpoint string, pcm []byte) streamer.Job {
	about := deepgram.Dialect{}.Describe()
	return streamer.Job{
		Open: record.Open{
			Session: fmt.Sprintf("calibrate/%d.1", i+1),
			Repeat:  1,
			Target: record.Target{
				Name: "calibrate", Provider: about.Name, Dialect: about.Version, Endpoint: endpoint,
				Forced: true, EveryTurn: true, SampleRate: sampleRate, Deadline: deadline,
			},
		},
		Turns:   record.Turns{List: p.turns(i)},
		PCM:     pcm,
		Dialect: deepgram.Dialect{},
		Config: providers.Config{
			Endpoint: endpoint, SampleRate: sampleRate, Forced: true, Key: providers.NewSecret("calibrate"),
		},
		Trace: true,
		Rand:  rand.New(rand.NewPCG(2, uint64(i))),
	}
}
