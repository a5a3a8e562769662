package main

import (
	"context"
	"strings"
	"time"

	"sttbench/cmd/sttlocal/internal/pocketsphinx"
)

const (
	sampleRate = pocketsphinx.SampleRate

	// preRoll is the audio before the start of speech that still belongs to
	// the utterance: onset detection is late and a first consonant is quiet.
	preRoll = 300 * time.Millisecond

	// partialEvery bounds the cost of partials, each of which walks the
	// search back through the whole utterance.
	partialEvery = 100 * time.Millisecond
)

// decoder is what the recogniser needs of PocketSphinx. It is an interface so
// that the protocol is tested on machines without the library.
type decoder interface {
	Start() error
	Process(samples []int16) error
	Hypothesis() string
	End() ([]pocketsphinx.Word, error)
	Close()
}

// recognizer cuts the audio of one connection into utterances. The decoder
// runs only while somebody speaks, so silence costs next to nothing.
type recognizer struct {
	dec  decoder
	ends *endpointer

	heard  int     // samples since the start of the connection
	recent []int16 // the last preRoll of audio, while no utterance runs

	running   bool
	start     int // sample at which the utterance begins
	partial   string
	partialAt int // sample at which partial was asked for
}

func newRecognizer(d decoder) *recognizer {
	return &recognizer{dec: d, ends: newEndpointer()}
}

// accept takes the audio of one message. It returns the words of the utterance
// and true when the utterance ended with it. Like Vosk it looks for the end
// once per message, so that a message never ends two utterances.
func (r *recognizer) accept(ctx context.Context, samples []int16) ([]pocketsphinx.Word, bool, error) {
	if !r.running {
		var err error
		if samples, err = r.awaitSpeech(samples); err != nil || !r.running {
			return nil, false, err
		}
	}
	if err := r.feed(ctx, samples); err != nil {
		return nil, false, err
	}
	if r.ends.silence() < endSilence && position(r.heard-r.start) < maxUtterance {
		return nil, false, nil
	}
	words, err := r.finish()
	return words, true, err
}

// awaitSpeech consumes samples up to the start of speech, opens an utterance
// there and returns the rest.
func (r *recognizer) awaitSpeech(samples []int16) ([]int16, error) {
	for len(samples) > 0 {
		n := min(len(samples), frameSamples)
		r.ends.add(samples[:n])
		r.recent = append(r.recent, samples[:n]...)
		if extra := len(r.recent) - count(preRoll); extra > 0 {
			r.recent = append(r.recent[:0], r.recent[extra:]...)
		}
		r.heard += n
		samples = samples[n:]
		if r.ends.speech() {
			return samples, r.open()
		}
	}
	return nil, nil
}

// open starts an utterance with the recent audio.
func (r *recognizer) open() error {
	if err := r.dec.Start(); err != nil {
		return err
	}
	r.running = true
	r.start = r.heard - len(r.recent)
	r.partial, r.partialAt = "", r.start
	err := r.dec.Process(r.recent)
	r.recent = r.recent[:0]
	return err
}

// feed gives samples to the running utterance, in pieces that keep a long
// message from outliving ctx.
func (r *recognizer) feed(ctx context.Context, samples []int16) error {
	for len(samples) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(samples), count(partialEvery))
		r.ends.add(samples[:n])
		if err := r.dec.Process(samples[:n]); err != nil {
			return err
		}
		r.heard += n
		samples = samples[n:]
	}
	return nil
}

// hypothesis returns the text of the running utterance so far, at most
// partialEvery of audio old.
func (r *recognizer) hypothesis() string {
	if r.running && r.heard-r.partialAt >= count(partialEvery) {
		r.partial = strings.TrimSpace(r.dec.Hypothesis())
		r.partialAt = r.heard
	}
	return r.partial
}

// finish ends the running utterance, if there is one, and returns its words
// with times from the start of the connection.
func (r *recognizer) finish() ([]pocketsphinx.Word, error) {
	r.recent = r.recent[:0] // it belongs to what ends here
	r.ends.restart()
	if !r.running {
		return nil, nil
	}
	r.running, r.partial = false, ""
	words, err := r.dec.End()
	base := position(r.start)
	for i := range words {
		words[i].Start += base
		words[i].End += base
	}
	return words, err
}

// position is the time of a sample; count is the opposite.
func position(samples int) time.Duration {
	return time.Duration(samples) * time.Second / sampleRate
}

func count(d time.Duration) int { return int(d * sampleRate / time.Second) }
