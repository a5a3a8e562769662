package pocketsphinx

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"time"
)

// SampleRate is the only sample rate, in hertz, that the en-us model hears.
const SampleRate = 16000

// frame is the library's time grid: its default frame rate is 100 Hz.
const frame = 10 * time.Millisecond

// Word is one recognised word of an utterance.
type Word struct {
	Text       string
	Start, End time.Duration // from the start of the utterance, in steps of 10 ms
	Confidence float64       // posterior probability, in [0,1]
}

// Decoder recognises one utterance at a time. It is not safe for concurrent
// use; different decoders are independent of each other.
type Decoder struct {
	lib    *Library
	handle uintptr
}

// NewDecoder loads the model into a new decoder, which takes some tenths of a
// second and about 100 MB, most of it shared by memory mapping. The caller
// closes it. Settings are pairs of PocketSphinx options and values that are
// added to the defaults, such as "-topn", "2".
func (l *Library) NewDecoder(m Model, settings ...string) (*Decoder, error) {
	args := append([]string{
		"sttlocal",
		"-hmm", m.Acoustic,
		"-lm", m.Language,
		"-dict", m.Dictionary,
	}, settings...)
	argv := make([]*byte, 0, len(args)+1)
	var pins runtime.Pinner
	defer pins.Unpin()
	for _, arg := range args {
		p := &append([]byte(arg), 0)[0]
		pins.Pin(p)
		argv = append(argv, p)
	}
	argv = append(argv, nil)
	pins.Pin(&argv[0])

	config := l.parseArgs(0, l.args(), int32(len(args)), &argv[0], 1)
	if config == 0 {
		return nil, errors.New("pocketsphinx refuses its settings " + strings.Join(settings, " "))
	}
	handle := l.initDecoder(config)
	l.freeConfig(config) // the decoder holds its own reference
	if handle == 0 {
		return nil, errors.New("pocketsphinx cannot load the model " + m.Acoustic)
	}
	return &Decoder{lib: l, handle: handle}, nil
}

// Close frees the decoder. A second call does nothing.
func (d *Decoder) Close() {
	if d.handle != 0 {
		d.lib.free(d.handle)
		d.handle = 0
	}
}

// Start begins an utterance. It also starts a new stream, without which the
// library would count word times from the first utterance of the decoder.
func (d *Decoder) Start() error {
	if d.lib.startStream(d.handle) < 0 || d.lib.startUtt(d.handle) < 0 {
		return errors.New("pocketsphinx cannot start an utterance")
	}
	return nil
}

// Process feeds samples to the utterance and searches them. Outside an
// utterance the library drops them without an error.
func (d *Decoder) Process(samples []int16) error {
	if len(samples) == 0 {
		return nil
	}
	if d.lib.processRaw(d.handle, &samples[0], uintptr(len(samples)), 0, 0) < 0 {
		return errors.New("pocketsphinx cannot process audio")
	}
	return nil
}

// Hypothesis returns the words found so far, separated by single spaces.
func (d *Decoder) Hypothesis() string {
	return d.lib.hypothesis(d.handle, nil)
}

// End finishes the utterance and returns its words, without silence and noise.
func (d *Decoder) End() ([]Word, error) {
	if d.lib.endUtt(d.handle) < 0 {
		return nil, errors.New("pocketsphinx cannot end an utterance")
	}
	var words []Word
	logmath := d.lib.logmath(d.handle)
	for seg := d.lib.segIter(d.handle); seg != 0; seg = d.lib.segNext(seg) {
		text := spoken(d.lib.segWord(seg))
		if text == "" {
			continue
		}
		var start, end, acoustic, language, backoff int32
		d.lib.segFrames(seg, &start, &end)
		prob := d.lib.expLog(logmath, d.lib.segProb(seg, &acoustic, &language, &backoff))
		words = append(words, Word{
			Text:       text,
			Start:      time.Duration(start) * frame,
			End:        time.Duration(end+1) * frame,
			Confidence: math.Min(prob, 1),
		})
	}
	return words, nil
}

// spoken turns an entry of the dictionary into the word itself: fillers such
// as <sil> and [NOISE] become "", and "the(2)", a second pronunciation,
// becomes "the".
func spoken(entry string) string {
	if strings.HasPrefix(entry, "<") || strings.HasPrefix(entry, "[") || strings.HasPrefix(entry, "++") {
		return ""
	}
	word, _, _ := strings.Cut(entry, "(")
	return word
}
