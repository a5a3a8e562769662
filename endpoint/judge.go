package endpoint

import (
	"time"

	"sttbench/record"
)

// judge walks through a record in the order of its stamps and keeps, for each
// scheduled turn, what of it has been answered.
type judge struct {
	rules             Rules
	forcedSession     bool
	turns             []*turnState
	text              Transcript
	keys              map[string]*turnState // vendor key → turn; nil: not ours
	seq               int                   // decoded events so far
	unsolicitedFinals int
	unsolicitedAcks   int
	decodeErrors      int
}

// turnState is what is known of one scheduled turn.
type turnState struct {
	index int
	turn  record.Turn
	mark  *record.Mark // nil while the turn's end has not been reached
	keyed bool         // a vendor key is bound to it

	closed   bool
	closedAt time.Duration // C: closing event, or the instant that decided it
	acked    bool
	negative bool
	cause    string // provider's label of the closing event
	late     Class  // natural: late_final or late_partial once seen

	first, last hit // text-bearing finals in the window
	any         hit // first text-bearing event at or after F0
	shortFinal  hit // natural: first final in the window that does not reach SE

	spoken       hit  // first text-bearing event after the turn's start
	early        hit  // last text-bearing final between the turn's start and F0
	earlyReach   bool // it reached SE, or did not say how far it reaches
	earlyPartial bool // a text-bearing partial between the turn's start and F0
	tailAtEnd    bool // text that was not final when the turn's end was marked

	// The transcript when the turn was decided.
	end  hit
	tail bool
}

// hit is an event of interest. Its texts, the transcript right after it, are filled
// in by read, once all hits are known: most are overtaken by a later one, and
// putting a transcript together for each would cost the square of its length.
type hit struct {
	set         bool
	at          time.Duration
	seq         int // decoded events up to and with this one
	fixed, text string
}

// replay runs the record up to stamp now.
func replay(s *record.Session, r Rules, now time.Duration) *judge {
	j := &judge{rules: r, forcedSession: s.Open.Target.Forced, keys: make(map[string]*turnState)}
	for _, i := range Scheduled(s) {
		t := &turnState{index: i, turn: s.Turns.List[i]}
		for k := range s.Marks {
			if s.Marks[k].Turn == i {
				t.mark = &s.Marks[k]
			}
		}
		j.turns = append(j.turns, t)
	}
	for i := range s.Events {
		e := &s.Events[i]
		at := e.At()
		if at > now {
			break
		}
		j.expire(at)
		if e.Error != "" {
			j.decodeErrors++
		}
		for _, d := range e.Decoded {
			j.seq++
			j.text.Add(d)
			j.judge(at, d)
		}
	}
	j.expire(now)
	return j
}

// expire decides the turns whose time is over before stamp at.
func (j *judge) expire(at time.Duration) {
	for _, t := range j.turns {
		if t.mark == nil || t.closed {
			continue
		}
		if !t.mark.Forced {
			window := t.mark.T0 + j.rules.NaturalWindow
			if at > window && (t.shortFinal.set || t.everythingFinal(t.tailAtEnd)) {
				j.decide(t, window)
				continue
			}
		}
		if deadline := t.mark.T0 + j.rules.Deadline; at > deadline {
			j.decide(t, deadline)
		}
	}
}

func (j *judge) decide(t *turnState, at time.Duration) {
	t.closed, t.closedAt = true, at
	t.end, t.tail = j.hit(at), j.text.HasTail()
}

// judge gives one event to the turns it concerns.
func (j *judge) judge(at time.Duration, d record.Decoded) {
	owner := j.ownerOf(at, d)
	text := d.TextBearing()
	for _, t := range j.turns {
		if t.mark == nil || at < t.mark.F0 {
			t.tailAtEnd = j.text.HasTail()
		}
		if text && at >= t.turn.Start && !t.spoken.set {
			t.spoken = j.hit(at)
		}
		if owner == nil && (t.mark == nil || at < t.mark.F0) {
			t.noteEarly(j, at, d)
		}
	}
	switch {
	case owner == nil:
		j.unowned(d)
	case owner.mark.Forced:
		j.forced(owner, at, d)
	}
	for _, t := range j.turns {
		if t.open(at) && !t.mark.Forced && (d.AudioEnd != nil || t == owner) {
			j.natural(t, at, d)
		}
	}
}

// noteEarly keeps what came between a turn's start and its end.
func (t *turnState) noteEarly(j *judge, at time.Duration, d record.Decoded) {
	if !d.TextBearing() || at < t.turn.Start {
		return
	}
	if d.AudioEnd != nil && *d.AudioEnd <= t.turn.Start {
		return // of an earlier turn
	}
	if d.Kind == record.Partial {
		t.earlyPartial = true
		return
	}
	t.early = j.hit(at)
	t.earlyReach = d.AudioEnd == nil || *d.AudioEnd >= t.turn.SE-j.rules.Reach
}

// everythingFinal tells whether the whole turn was final before its end.
func (t *turnState) everythingFinal(tail bool) bool {
	return t.early.set && t.earlyReach && !tail
}

// unfinished tells whether text of this turn stayed that is not final: a tail at the
// end that was there when the turn was marked or came in its window. Without that it
// belongs to a turn that began meanwhile.
func (t *turnState) unfinished() bool { return t.tail && (t.tailAtEnd || t.any.set) }

// later tells whether an event is about audio from after the turn: it cannot be
// its answer, whenever it comes.
func (t *turnState) later(d record.Decoded) bool {
	return d.AudioStart != nil && *d.AudioStart >= t.turn.EOS
}

func (t *turnState) open(at time.Duration) bool {
	return t.mark != nil && !t.closed && at >= t.mark.F0
}

// ownerOf finds the turn whose mark an event answers: by vendor key where there
// is one, else first in, first out. It is nil for events before every mark or
// after every answer, and for keys that the vendor made by itself.
func (j *judge) ownerOf(at time.Duration, d record.Decoded) *turnState {
	oldest := func(free bool) *turnState {
		for _, t := range j.turns {
			if t.open(at) && !t.later(d) && !(free && t.keyed) {
				return t
			}
		}
		return nil
	}
	first := oldest(false)
	if d.Key == "" || (first != nil && !first.mark.Forced) {
		return first
	}
	t, known := j.keys[d.Key]
	if !known {
		if d.Kind != record.Ack && !d.Closes {
			return oldest(true)
		}
		if t = oldest(true); t != nil {
			t.keyed = true
		}
		j.keys[d.Key] = t
	}
	if t == nil || !t.open(at) {
		return nil
	}
	return t
}

// unowned counts what a session with forced endpoints did not ask for.
func (j *judge) unowned(d record.Decoded) {
	if !j.forcedSession {
		return
	}
	if d.Kind == record.Final && d.TextBearing() {
		j.unsolicitedFinals++
	}
	if d.Closes {
		j.unsolicitedAcks++
	}
}

func (j *judge) forced(t *turnState, at time.Duration, d record.Decoded) {
	j.noteAnswer(t, at, d)
	if d.Closes {
		t.acked, t.negative, t.cause = true, d.Negative, d.Cause
		j.decide(t, at)
	}
}

// noteAnswer keeps the text-bearing events of a turn's window.
func (j *judge) noteAnswer(t *turnState, at time.Duration, d record.Decoded) {
	if !d.TextBearing() {
		return
	}
	h := j.hit(at)
	if !t.any.set {
		t.any = h
	}
	if d.Kind == record.Final {
		if !t.first.set {
			t.first = h
		}
		t.last = h
	}
}

// natural applies the rule for endpoints that the provider finds by itself: the
// first final inside the window that reaches SE answers the turn at once; after
// the window whatever comes first does.
func (j *judge) natural(t *turnState, at time.Duration, d record.Decoded) {
	if !d.TextBearing() || t.later(d) || (d.AudioEnd != nil && *d.AudioEnd <= t.turn.Start) {
		return
	}
	late := at > t.mark.T0+j.rules.NaturalWindow
	reaches := d.AudioEnd == nil || *d.AudioEnd >= t.turn.SE-j.rules.Reach
	if d.Kind == record.Final && !late && !reaches {
		if !t.shortFinal.set {
			t.shortFinal = j.hit(at)
		}
		if !t.any.set {
			t.any = t.shortFinal
		}
		return
	}
	j.noteAnswer(t, at, d)
	switch {
	case late && d.Kind == record.Final:
		t.late = LateFinal
	case late:
		t.late = LatePartial
	case d.Kind == record.Partial:
		return
	}
	t.cause = d.Cause
	j.decide(t, at)
}

func (j *judge) hit(at time.Duration) hit { return hit{set: true, at: at, seq: j.seq} }

// read fills in the texts of all hits.
func (j *judge) read(s *record.Session) {
	at := map[int][]*hit{}
	for _, t := range j.turns {
		for _, h := range []*hit{&t.first, &t.last, &t.any, &t.shortFinal, &t.end} {
			if h.set {
				at[h.seq] = append(at[h.seq], h)
			}
		}
	}
	var text Transcript
	fill := func(seq int) {
		hits := at[seq]
		if len(hits) == 0 {
			return
		}
		fixed, all := text.Fixed(), text.Text()
		for _, h := range hits {
			h.fixed, h.text = fixed, all
		}
	}
	seq := 0
	fill(seq)
	for i := range s.Events {
		for _, d := range s.Events[i].Decoded {
			seq++
			text.Add(d)
			fill(seq)
		}
	}
}
