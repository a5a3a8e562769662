package emulator

import (
	"math/rand/v2"
	"time"
)

// maxUnsaid bounds the words that wait for a final: about 100 minutes of speech.
const maxUnsaid = 20000

// hearing is the recogniser of one connection: a pure function of the script,
// the seed and the audio received. It reads no clock.
type hearing struct {
	script *Script  // nil while match looks for it
	match  *matcher // nil where the script is known
	cfg    Hearing
	lag    time.Duration // partial lag
	errs   *misheard
	level  level

	unsaid  []Word // heard, not yet final
	next    int    // script word to hear next
	spoken  int    // script word that the natural position has not passed yet
	start   time.Duration
	shown   int           // words in the last partial
	partial time.Duration // position at which the next partial is due
}

func newHearing(script *Script, lag time.Duration, errorRate float64, rnd *rand.Rand) *hearing {
	h := &hearing{script: script, lag: lag, errs: &misheard{rate: errorRate, rnd: rnd}}
	h.configure(Hearing{})
	return h
}

func (h *hearing) configure(cfg Hearing) {
	if cfg.SampleRate <= 0 {
		cfg.SampleRate = 16000
	}
	h.cfg = cfg
	h.level.setRate(cfg.SampleRate)
	if every := cfg.PartialEvery; every > 0 {
		at := h.natural()
		h.partial = at - at%every + every
	}
}

// received is the audio position so far.
func (h *hearing) received() time.Duration { return h.level.position() }

// natural is the position that the lagging recogniser has reached.
func (h *hearing) natural() time.Duration { return max(0, h.received()-h.lag) }

// audio takes PCM and hears the words whose ends it reaches.
func (h *hearing) audio(pcm []byte) {
	h.level.add(pcm)
	if h.match != nil {
		h.match.audio(pcm, h.cfg.SampleRate)
		h.identify(false)
	}
	h.listen()
}

// identify takes the matcher's decision over, if there is one.
func (h *hearing) identify(due bool) {
	if h.match == nil {
		return
	}
	if script, ok := h.match.decide(due); ok {
		h.script, h.match = script, nil
		h.listen()
	}
}

func (h *hearing) listen() {
	if h.script == nil {
		return
	}
	for len(h.unsaid) < maxUnsaid {
		w, ok := h.script.word(h.next)
		if !ok || w.End > h.received() {
			return
		}
		h.next++
		h.unsaid = h.errs.hear(h.unsaid, w)
	}
}

// overflowed tells that words are left unheard because nothing ever was final.
func (h *hearing) overflowed() bool { return len(h.unsaid) >= maxUnsaid }

// hypothesis is what a partial may show now.
func (h *hearing) hypothesis() Hypothesis {
	at := max(h.natural(), h.start)
	return Hypothesis{Words: h.unsaid[:h.count(at)], Start: h.start, End: at}
}

// count is the number of unsaid words that end by the given position.
func (h *hearing) count(by time.Duration) int {
	n := len(h.unsaid)
	for n > 0 && h.unsaid[n-1].End > by {
		n--
	}
	return n
}

// partialDue tells, once, that a partial is due.
func (h *hearing) partialDue() bool {
	at := h.natural()
	switch every := h.cfg.PartialEvery; {
	case every < 0:
		return false
	case every == 0:
		n := h.count(at)
		due := n > h.shown
		h.shown = n
		return due
	default:
		if at < h.partial {
			return false
		}
		h.partial = at - at%every + every
		return true
	}
}

// naturalFinal is the final that is due by itself, if any. With eager, all that
// was heard is final at once.
func (h *hearing) naturalFinal(eager bool) (Final, bool) {
	if h.script == nil {
		return Final{}, false
	}
	if n := h.count(h.received()); eager && n > 0 {
		return h.take(CauseWindow, h.received()), true
	}
	at := h.natural()
	quiet, speaking := h.quietSince(at)
	if h.cfg.Endpointing > 0 && h.count(at) > 0 && at-quiet >= h.cfg.Endpointing {
		return h.take(CauseEndpoint, at), true
	}
	if h.cfg.Window > 0 && at-h.start >= h.cfg.Window {
		// A word that is being spoken belongs to the next window.
		if speaking > h.start {
			at = min(at, speaking)
		}
		return h.take(CauseWindow, at), true
	}
	return Final{}, false
}

// quietSince is the end of the last sound before at: at itself while there is
// sound. speaking is the start of the script word that at lies in, else at.
func (h *hearing) quietSince(at time.Duration) (quiet, speaking time.Duration) {
	speaking = at
	for {
		w, ok := h.script.word(h.spoken)
		if !ok || w.End > at {
			if ok && w.Start < at {
				speaking = w.Start
			}
			break
		}
		h.spoken++
	}
	var last time.Duration
	if h.spoken > 0 {
		w, _ := h.script.word(h.spoken - 1)
		last = w.End
	}
	if loud, ever := h.level.loudBefore(at); ever {
		return loud, speaking
	}
	if speaking < at {
		return at, speaking
	}
	return last, speaking
}

// force makes all that was heard final: the parts of the answer, the last of
// which closes it.
func (h *hearing) force(cause Cause, id string) []Final {
	h.identify(true)
	var parts []Final
	// A window limit that the lag has held back comes first, as at real servers.
	for h.cfg.Window > 0 && h.received()-h.start > h.cfg.Window {
		parts = append(parts, h.take(CauseWindow, h.start+h.cfg.Window))
	}
	last := h.take(cause, h.received())
	last.ID, last.Ack = id, true
	return append(parts, last)
}

// take ends the open window at the given position.
func (h *hearing) take(cause Cause, at time.Duration) Final {
	at = max(at, h.start)
	n := h.count(at)
	f := Final{Cause: cause, Words: h.unsaid[:n:n], Start: h.start, End: at}
	h.unsaid = append([]Word(nil), h.unsaid[n:]...)
	h.start, h.shown = at, 0
	return f
}

// misheard makes recognition errors.
type misheard struct {
	rate float64
	rnd  *rand.Rand
}

// wrongWords are what is heard in place of, or besides, the right ones.
var wrongWords = [...]string{"banana", "velvet", "orchard", "tuesday", "pepper", "gravel", "lantern", "mustard"}

// hear appends what is heard for w. With probability rate it is wrong: a
// substitution, a deletion or an insertion before it, equally likely.
func (m *misheard) hear(to []Word, w Word) []Word {
	if m.rate <= 0 || m.rnd.Float64() >= m.rate {
		return append(to, w)
	}
	wrong := wrongWords[m.rnd.IntN(len(wrongWords))]
	if wrong == w.Text {
		wrong = "not" + wrong
	}
	switch m.rnd.IntN(3) {
	case 0:
		w.Text = wrong
		return append(to, w)
	case 1:
		return to
	}
	middle := w.Start + (w.End-w.Start)/2
	return append(to, Word{wrong, w.Start, middle}, Word{w.Text, middle, w.End})
}
