package emulator

import (
	"fmt"
	"math"
	"strings"
	"time"

	"sttbench/corpus"
)

// Manifest is a dataset that the recogniser knows by heart: it finds out by the
// sound which item a session streams, and then hears the item's reference.
//
// Protocols have no room for the name of an item, and the bytes differ with the
// sample rate, so the audio is compared by its envelope: the level of each 20 ms
// below about 800 Hz, which survives resampling. An item is recognised as soon
// as its envelope fits and no other's does, often within the first second of
// speech; partials wait until then. At a forced endpoint, or after 10 s, the
// best fit is taken if it is a fit at all. The session must start with the
// item's first sample.
//
// The words of the reference are spread over the item's sound (frames up to 30 dB
// below its loudest) in proportion to their lengths.
type Manifest struct {
	items []knownItem
}

type knownItem struct {
	id     string
	levels []uint8 // of the first maxFrames frames
	script *Script // no words where nothing is said
}

const (
	frameLength = 20 * time.Millisecond
	// maxFrames is how much of an item is compared, at most.
	maxFrames = int(10 * time.Second / frameLength)
	// levelFloor is the lowest level told apart, in dB below full scale.
	levelFloor = 60
	// speechRange is how far below an item's loudest frame speech may lie, in dB.
	speechRange = 30
	// An item fits early if its frames are closer than fit on average, and all
	// other items are further away than it by margin in sum; looseFit is enough
	// when a decision is due. All in dB.
	fit, looseFit, margin = 2.0, 5.0, 60
)

// LoadManifest reads a dataset's manifest and all its audio.
func LoadManifest(path string) (*Manifest, error) {
	set, err := corpus.Load(path)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	for _, item := range set.Items {
		audio, err := corpus.Decode(item.Audio)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", item.ID, err)
		}
		m.items = append(m.items, learn(item.ID, item.Reference, audio))
	}
	return m, nil
}

func learn(id, reference string, audio corpus.Audio) knownItem {
	var e envelope
	e.setRate(audio.Rate)
	for _, s := range audio.Samples {
		e.add(float64(s))
	}
	return knownItem{
		id:     id,
		levels: append([]uint8(nil), e.levels[:min(len(e.levels), maxFrames)]...),
		script: spread(strings.Fields(reference), e.levels),
	}
}

// spread gives words their times: each gets a share of the sounding frames by
// its length, one letter being added for the join.
func spread(words []string, levels []uint8) *Script {
	var loudest uint8
	for _, l := range levels {
		loudest = max(loudest, l)
	}
	var sounding []int
	for i, l := range levels {
		if l > 0 && int(l) >= int(loudest)-speechRange {
			sounding = append(sounding, i)
		}
	}
	total := 0
	for _, w := range words {
		total += len(w) + 1
	}
	s := new(Script)
	if len(sounding) == 0 {
		return s
	}
	// at is the position after a share of the sound, with the given frame being
	// the one it falls in: where it falls between two, a word ends with the first
	// and starts with the second.
	at := func(share float64, frame float64) time.Duration {
		i := min(max(int(frame), 0), len(sounding)-1)
		return time.Duration((float64(sounding[i]-i) + share) * float64(frameLength))
	}
	letters := 0
	share := func() float64 { return float64(len(sounding)) * float64(letters) / float64(total) }
	for _, w := range words {
		start := at(share(), math.Floor(share()))
		letters += len(w) + 1
		s.Words = append(s.Words, Word{Text: w, Start: start, End: at(share(), math.Ceil(share())-1)})
	}
	return s
}

// envelope is the level of each frame of a signal, in dB above levelFloor, after
// a low pass that makes sample rates comparable.
type envelope struct {
	rate   int
	alpha  float64
	low    [2]float64
	sum    float64
	n      int // samples in the open frame
	seen   int // samples in all
	levels []uint8
}

func (e *envelope) setRate(rate int) {
	const cutoff = 800 // Hz
	e.rate, e.alpha = rate, 1-math.Exp(-2*math.Pi*cutoff/float64(rate))
}

// add takes one sample; full scale is 1.
func (e *envelope) add(sample float64) {
	e.low[0] += e.alpha * (sample - e.low[0])
	e.low[1] += e.alpha * (e.low[0] - e.low[1])
	e.sum += e.low[1] * e.low[1]
	e.n++
	e.seen++
	// Frames end at multiples of 20 ms at every rate.
	if e.seen*int(time.Second/frameLength)/e.rate > len(e.levels) {
		db := 10*math.Log10(e.sum/float64(e.n)+1e-12) + levelFloor
		e.levels = append(e.levels, uint8(max(0, math.Round(db))))
		e.sum, e.n = 0, 0
	}
}

// matcher finds the item that a session streams.
type matcher struct {
	items    []knownItem
	fallback *Script // for audio of no item
	heard    envelope
	half     int // pending low byte of a sample cut in two, or -1
	frames   int // compared so far
	far      []int
}

func (m *Manifest) matcher(fallback *Script) *matcher {
	if fallback == nil {
		fallback = new(Script)
	}
	return &matcher{items: m.items, fallback: fallback, half: -1, far: make([]int, len(m.items))}
}

// audio takes PCM, signed 16 bit little endian mono.
func (m *matcher) audio(pcm []byte, rate int) {
	if rate != m.heard.rate {
		m.heard = envelope{}
		m.heard.setRate(rate)
		m.frames, m.half = 0, -1
		clear(m.far)
	}
	for _, b := range pcm {
		if m.frames >= maxFrames {
			return
		}
		if m.half < 0 {
			m.half = int(b)
			continue
		}
		m.heard.add(float64(int16(uint16(m.half)|uint16(b)<<8)) / 32768)
		m.half = -1
		if len(m.heard.levels) > m.frames {
			m.compare(m.heard.levels[m.frames])
			m.frames++
		}
	}
}

// compare adds each item's distance at the current frame.
func (m *matcher) compare(level uint8) {
	for i, item := range m.items {
		var want uint8 // after an item there is silence
		if m.frames < len(item.levels) {
			want = item.levels[m.frames]
		}
		m.far[i] += max(int(level), int(want)) - min(int(level), int(want))
	}
}

// decide gives the script of the item, once it is sure or due.
func (m *matcher) decide(due bool) (*Script, bool) {
	best, second := -1, math.MaxInt
	for i, far := range m.far {
		switch {
		case best < 0:
			best = i
		case far < m.far[best]:
			best, second = i, m.far[best]
		default:
			second = min(second, far)
		}
	}
	due = due || m.frames >= maxFrames
	if best < 0 || m.frames == 0 {
		return m.fallback, due
	}
	mean := float64(m.far[best]) / float64(m.frames)
	if due {
		if mean <= looseFit {
			return m.items[best].script, true
		}
		return m.fallback, true
	}
	// A lone item has no rival; half a second of likeness must then do.
	sure := second-m.far[best] >= margin && (second < math.MaxInt || m.frames >= 25)
	return m.items[best].script, sure && mean <= fit
}
