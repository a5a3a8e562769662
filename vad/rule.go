package vad

import (
	"fmt"
	"time"
)

// SampleRate is the only sampling rate the package takes, in samples per second.
const SampleRate = 16000

// Window is the number of samples that get one probability: 32 ms.
const Window = 512

const windowDuration = Window * time.Second / SampleRate

// lowerBy is how far the threshold that ends speech lies under the one that
// starts it; fixed, as in VADIterator.
const lowerBy = 0.15

// The limits of Params. Below minThreshold the lower threshold comes so near to
// zero that turns do not end in noise any more.
const (
	minThreshold = 0.2
	maxThreshold = 0.95
	maxSpan      = 10 * time.Second
)

// Params are the settings of the turn rule. They are comparable.
type Params struct {
	// Threshold is the probability at which speech starts, in [0.2, 0.95].
	// Speech ends below Threshold − 0.15.
	Threshold float64
	// MinSilence is how long a silence must last to end a turn, in [0, 10 s].
	MinSilence time.Duration
	// MinSpeech is the length that a turn must exceed to count, in [0, 10 s].
	MinSpeech time.Duration
}

// DefaultParams returns threshold 0.5, MinSilence 200 ms and MinSpeech 250 ms.
func DefaultParams() Params {
	return Params{Threshold: 0.5, MinSilence: 200 * time.Millisecond, MinSpeech: 250 * time.Millisecond}
}

// Validate reports the first setting that is out of range.
func (p Params) Validate() error {
	switch {
	case !(p.Threshold >= minThreshold && p.Threshold <= maxThreshold): // so that NaN fails
		return fmt.Errorf("vad threshold %v is outside %v to %v", p.Threshold, minThreshold, maxThreshold)
	case p.MinSilence < 0 || p.MinSilence > maxSpan:
		return fmt.Errorf("vad minimum silence %v is outside 0s to %v", p.MinSilence, maxSpan)
	case p.MinSpeech < 0 || p.MinSpeech > maxSpan:
		return fmt.Errorf("vad minimum speech %v is outside 0s to %v", p.MinSpeech, maxSpan)
	}
	return nil
}

// Hangover returns the shortest possible EOS − SE on the grid of 32 ms: 256 ms
// for a MinSilence of 200 ms. A turn's own hangover is longer only when the
// silence contains windows between the two thresholds.
func (p Params) Hangover() time.Duration {
	windows := (p.MinSilence + windowDuration - 1) / windowDuration
	return (windows + 1) * windowDuration
}

// Turn is one stretch of speech. Start < SE < EOS.
type Turn struct {
	// Start is the start of the first window that reached the threshold.
	Start time.Duration
	// SE, the speech end, is the start of the window that begins the closing
	// silence. It may lie past the end of the audio.
	SE time.Duration
	// EOS is the first position at which a causal detector knows that the
	// turn is over.
	EOS time.Duration

	// SELow and SEHigh are the earliest and the latest SE of this turn under
	// neighbouring thresholds; SELow ≤ SE ≤ SEHigh. See [Turns].
	SELow, SEHigh time.Duration
	// SERules is the number of thresholds behind SELow and SEHigh: up to
	// seven, and 1 (with SELow = SE = SEHigh) for a turn from a live
	// [Detector], which cannot know yet.
	SERules int
}

// Hangover returns EOS − SE: the price of the endpointing policy.
func (t Turn) Hangover() time.Duration { return t.EOS - t.SE }

// Turns applies the rule to the probabilities of consecutive windows, the first
// of which starts at position 0, and returns the turns that ended. A turn that
// is still open after the last probability is not among them. Params must be
// valid.
//
// Each turn gets an uncertainty of its SE: the rule is run again with the
// threshold moved by −0.15, −0.10 … +0.15 (0.35 … 0.65 by default; the lower
// threshold moves along; values outside the range of [Params] are left out).
// The turn that matches under a moved threshold is the last one that overlaps
// [Start, SE), whatever its length, and SELow and SEHigh are the extremes of the
// matching SEs. A turn still open at the end of the probabilities matches with
// the start of its silence if one has begun. A threshold is left out for a turn
// when nothing matches (the turn vanished), and when the match reaches into the
// next turn (they merged, so it says nothing about where this one ends). SERules
// says how many thresholds remained. Unlike the turns themselves, the
// uncertainty is not causal: it may change with what follows EOS.
func Turns(probs []float32, p Params) []Turn {
	turns, _, _ := split(probs, p)
	return turns
}

// split applies the rule and parts the turns into those that count and those
// that are too short. open says that a turn is still open at the end.
func split(probs []float32, p Params) (turns, short []Turn, open bool) {
	r := newRule(p)
	for _, prob := range probs {
		t, ended := r.next(prob)
		switch {
		case !ended:
		case r.counts(t):
			turns = append(turns, t)
		default:
			short = append(short, t)
		}
	}
	addSpread(turns, probs, p)
	return turns, short, r.triggered
}

// rule is the state of the decision. It knows probabilities only, no audio.
type rule struct {
	params Params
	lower  float64

	windows   int // seen so far
	triggered bool
	start     int // window at which the open turn started
	quiet     int // window at which its pending silence began, -1 without one
}

func newRule(p Params) rule {
	return rule{params: p, lower: p.Threshold - lowerBy, quiet: -1}
}

// next takes the probability of the next window. It returns a turn if that
// window ends one, however short the turn is.
func (r *rule) next(prob float32) (t Turn, ended bool) {
	at, p := r.windows, float64(prob)
	r.windows++
	switch {
	case p >= r.params.Threshold:
		if !r.triggered {
			r.triggered, r.start = true, at
		}
		r.quiet = -1
	case p < r.lower && r.triggered:
		if r.quiet < 0 {
			r.quiet = at
		}
		if position(at-r.quiet) >= r.params.MinSilence {
			t = newTurn(r.start, r.quiet, r.windows)
			r.triggered, r.quiet = false, -1
			return t, true
		}
	}
	return Turn{}, false
}

// counts says whether the turn is long enough.
func (r *rule) counts(t Turn) bool { return t.SE-t.Start > r.params.MinSpeech }

// pending returns the open turn as far as it is known. ok is false without an
// open turn and while its silence has not begun.
func (r *rule) pending() (t Turn, ok bool) {
	if !r.triggered || r.quiet < 0 {
		return Turn{}, false
	}
	return newTurn(r.start, r.quiet, r.windows), true
}

func newTurn(start, se, eos int) Turn {
	return Turn{
		Start: position(start), SE: position(se), EOS: position(eos),
		SELow: position(se), SEHigh: position(se), SERules: 1,
	}
}

// position returns where a window starts.
func position(window int) time.Duration { return time.Duration(window) * windowDuration }
