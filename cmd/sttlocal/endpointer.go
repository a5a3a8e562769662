package main

import (
	"math"
	"time"
)

// The rule by which the server tells speech from silence. It is an energy
// rule on 10 ms frames, in decibels below full scale: a frame is speech when
// it is speechMargin louder than the noise floor, which follows the quietest
// frames down at once and up slowly.
const (
	frameSamples = sampleRate / 100 // 10 ms
	speechMargin = 12.0             // dB above the floor
	floorStart   = -60.0            // dBFS, before anything was heard
	floorMin     = -75.0            // digital silence counts as this
	floorMax     = -40.0            // louder noise is taken for speech
	floorRise    = 0.02             // dB a frame, 2 dB a second
	onsetFrames  = 3                // frames in a row that start speech
)

// Natural endpointing: an utterance ends after this much silence, or when it
// is this long.
const (
	endSilence   = 700 * time.Millisecond
	maxUtterance = 20 * time.Second
)

// endpointer follows speech and silence through a stream of samples.
type endpointer struct {
	floor   float64 // dBFS
	energy  float64 // sum of squares of the incomplete frame
	samples int     // samples in the incomplete frame
	onset   int     // speech frames in a row
	silent  int     // frames since the last speech frame
}

func newEndpointer() *endpointer {
	return &endpointer{floor: floorStart}
}

// add takes the next samples, any number of them.
func (e *endpointer) add(samples []int16) {
	for _, s := range samples {
		e.energy += float64(s) * float64(s)
		e.samples++
		if e.samples == frameSamples {
			e.frame(10 * math.Log10(e.energy/frameSamples/(32768*32768)))
			e.energy, e.samples = 0, 0
		}
	}
}

// frame takes the level of the next frame in dBFS; -Inf is digital silence.
func (e *endpointer) frame(level float64) {
	e.floor = min(max(min(level, e.floor+floorRise), floorMin), floorMax)
	if level > e.floor+speechMargin {
		e.onset++
		e.silent = 0
		return
	}
	e.onset = 0
	e.silent++
}

// speech reports whether speech has just begun.
func (e *endpointer) speech() bool { return e.onset >= onsetFrames }

// silence returns for how long nothing was said.
func (e *endpointer) silence() time.Duration {
	return time.Duration(e.silent) * 10 * time.Millisecond
}

// restart forgets the speech heard so far but keeps the noise floor.
func (e *endpointer) restart() { e.onset, e.silent = 0, 0 }
