package vad

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxTail is how much silence beyond MinSilence is appended to end an open
// turn. The model needs a few windows; one that needs more is broken.
const maxTail = 10 * time.Second

// ErrUnended says that a turn did not end in the silence appended to the audio,
// although there were 10 s more of it than MinSilence.
var ErrUnended = errors.New("turn did not end in appended silence")

var (
	errDetectorClosed = errors.New("vad detector is closed")
	errFinished       = errors.New("vad detector was fed after its end")
)

// Detector finds turns in one stream of audio as it arrives. It is not safe for
// concurrent use; several detectors of one model may work at the same time.
type Detector struct {
	model *Model
	net   *network // nil when closed
	rule  rule
	buf   [Window]int16 // the incomplete window
	n     int           // samples in buf
	probs []float32
	err   error // sticky
}

// NewDetector returns a detector at position 0. Close it after use.
func (m *Model) NewDetector(p Params) (*Detector, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	net, err := m.take()
	if err != nil {
		return nil, err
	}
	return &Detector{model: m, net: net, rule: newRule(p)}, nil
}

// Feed takes the next samples, in chunks of any length: 16 kHz mono, full scale
// 32768. It returns the turns that ended in them, those of at most MinSpeech
// left out, and keeps an incomplete window for the next call. After an error the
// detector only repeats the error.
func (d *Detector) Feed(samples []int16) ([]Turn, error) {
	var turns []Turn
	for len(samples) > 0 && d.err == nil {
		k := copy(d.buf[d.n:], samples)
		samples = samples[k:]
		d.n += k
		if d.n == Window {
			d.window(&turns)
		}
	}
	return turns, d.err
}

// Finish ends the stream. It appends zeros to fill an incomplete window and
// then, if a turn is open, until that turn ends; it returns the turns that ended
// so. The error is [ErrUnended] if the turn does not end. The detector takes no
// audio afterwards.
func (d *Detector) Finish() ([]Turn, error) {
	if d.err != nil {
		return nil, d.err
	}
	var turns []Turn
	if d.n > 0 {
		d.zeros(&turns)
	}
	limit := d.rule.windows + tailWindows(d.rule.params)
	for d.rule.triggered && d.err == nil {
		if d.rule.windows == limit {
			d.err = fmt.Errorf("%w: open since %v, audio and silence until %v", ErrUnended, position(d.rule.start), position(limit))
			return turns, d.err
		}
		d.zeros(&turns)
	}
	if d.err != nil {
		return turns, d.err
	}
	d.err = errFinished
	return turns, nil
}

// tailWindows returns how many windows of silence Finish appends at most after
// the audio's last window.
func tailWindows(p Params) int { return int((p.MinSilence + maxTail) / windowDuration) }

// zeros fills the window with silence and decides on it.
func (d *Detector) zeros(turns *[]Turn) {
	clear(d.buf[d.n:])
	d.window(turns)
}

// window decides on the complete window in buf.
func (d *Detector) window(turns *[]Turn) {
	p, err := d.net.prob(d.buf[:])
	if err != nil {
		d.err = fmt.Errorf("vad at %v: %w", position(d.rule.windows), err)
		return
	}
	d.n = 0
	d.probs = append(d.probs, p)
	if t, ended := d.rule.next(p); ended && d.rule.counts(t) {
		*turns = append(*turns, t)
	}
}

// Probs returns a copy of the probabilities so far, one per complete window
// (4 bytes per 32 ms of audio are kept).
func (d *Detector) Probs() []float32 { return slices.Clone(d.probs) }

// Close gives the detector's session back to the model. Closing twice is
// allowed. The error is always nil.
func (d *Detector) Close() error {
	if d.net != nil {
		d.model.give(d.net)
		d.net, d.err = nil, errDetectorClosed
	}
	return nil
}
