package vad

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"
)

// Result is what the detector found in one recording, with everything needed to
// say how, and to find it again under other parameters.
type Result struct {
	// Turns are the turns in order of time.
	Turns []Turn
	// Dropped are the turns that did not count because they were not longer
	// than MinSpeech.
	Dropped []Turn
	// Probs are the probabilities of all windows, each in [0, 1]. The windows
	// after Duration are appended silence.
	Probs []float32
	// Samples is the length of the audio.
	Samples int
	Params  Params
	// AudioHash and ModelHash are SHA-256 sums in hexadecimal: of the samples
	// as 16-bit little-endian integers, and of the model file.
	AudioHash string
	ModelHash string
	// RuntimeVersion is the version of ONNX Runtime; probabilities may differ
	// in the last digits between versions.
	RuntimeVersion string
}

// Duration returns the length of the audio, without appended silence.
func (r *Result) Duration() time.Duration {
	return time.Duration(r.Samples) * (time.Second / SampleRate)
}

// Analyze finds the turns in a whole recording: 16 kHz mono, full scale 32768.
// The audio is followed by silence, as it is when it is streamed; see
// [Detector.Finish], also for the error. Analyze may be called concurrently.
func (m *Model) Analyze(ctx context.Context, samples []int16, p Params) (*Result, error) {
	d, err := m.NewDetector(p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	const step = 64 * Window // two seconds of audio, some 10 ms of work
	for chunk := range slices.Chunk(samples, step) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := d.Feed(chunk); err != nil {
			return nil, err
		}
	}
	if _, err := d.Finish(); err != nil {
		return nil, err
	}
	r := &Result{
		Probs: d.probs, Samples: len(samples), Params: p,
		AudioHash: hashAudio(samples), ModelHash: m.hash, RuntimeVersion: m.runtime,
	}
	r.Turns, r.Dropped, _ = split(r.Probs, p)
	return r, nil
}

func hashAudio(samples []int16) string {
	h := sha256.New()
	buf := make([]byte, 0, 2*8192)
	for chunk := range slices.Chunk(samples, 8192) {
		buf = buf[:0]
		for _, s := range chunk {
			buf = binary.LittleEndian.AppendUint16(buf, uint16(s))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}
