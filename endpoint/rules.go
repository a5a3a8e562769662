package endpoint

import (
	"time"

	"sttbench/record"
)

// Rules are the settings of the endpoint rules. The zero value of a field stands
// for its default.
type Rules struct {
	// Deadline is how long an answer is waited for after T0; the default is what
	// the record was made with.
	Deadline time.Duration
	// NaturalWindow is how long a provider with natural endpointing may take
	// before its answer counts as late; 2 s, as Artificial Analysis has it.
	NaturalWindow time.Duration
	// Reach is how far before SE a final may end and still hold the whole turn;
	// 300 ms, because word ends and VAD ends differ by that much.
	Reach time.Duration
	// MaxLateness is how late this machine may be from SE − 1 s to the answer before
	// the turn says nothing about the provider; 40 ms, two chunks.
	MaxLateness time.Duration
	// Stall is the amount of speech during which a continuous provider must say
	// something; 10 s.
	Stall time.Duration
}

// The defaults of Rules.
const (
	DefaultDeadline      = 10 * time.Second
	DefaultNaturalWindow = 2 * time.Second
	DefaultReach         = 300 * time.Millisecond
	DefaultMaxLateness   = 40 * time.Millisecond
	DefaultStall         = 10 * time.Second
)

func (r Rules) withDefaults(s *record.Session) Rules {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&r.Deadline, s.Open.Target.Deadline)
	set(&r.Deadline, DefaultDeadline)
	set(&r.NaturalWindow, DefaultNaturalWindow)
	r.NaturalWindow = min(r.NaturalWindow, r.Deadline)
	set(&r.Reach, DefaultReach)
	set(&r.MaxLateness, DefaultMaxLateness)
	set(&r.Stall, DefaultStall)
	return r
}

// Outcomes judges a session.
func Outcomes(s *record.Session, r Rules) Result {
	r = r.withDefaults(s)
	end := s.Close.At
	j := replay(s, r, end)
	j.read(s)
	res := Result{
		SettledText:       j.text.Text(),
		Rewritten:         j.text.Rewritten,
		Revised:           j.text.Revised,
		UnsolicitedFinals: j.unsolicitedFinals,
		UnsolicitedAcks:   j.unsolicitedAcks,
		DecodeErrors:      j.decodeErrors,
	}
	fail := failureOf(s)
	stallAt, stalled := stall(s, r)
	if len(j.turns) == 0 {
		o := Outcome{Turn: -1, Class: NoSpeech, Ack: AckNone, FinalText: res.SettledText}
		if fail.class != "" {
			o.Class, o.Reason = fail.class, fail.reason
		}
		res.Turns = []Outcome{o}
		return res
	}
	for _, t := range j.turns {
		o := t.outcome(r, &j.text)
		if o.CensoredAt != nil && t.mark != nil {
			// Nothing is known of what came after the session's end.
			*o.CensoredAt = min(*o.CensoredAt, ToMillis(s.Close.At-t.mark.T0))
		}
		switch {
		case fail.class != "" && !t.closed:
			o.spoil(fail.class, fail.reason)
		case stalled && t.turn.Start < stallAt && (!t.closed || t.closedAt > stallAt):
			o.spoil(Stalled, "no message during "+r.Stall.String()+" of speech")
		default:
			if why := spoiled(s, r, t); why != "" {
				o.spoil(ClientInvalid, why)
			}
		}
		res.Turns = append(res.Turns, o)
	}
	return res
}

// Settled tells whether every scheduled turn of an unfinished session is decided
// at stamp now, so that nothing that may still come can change its outcome.
// s.Events and s.Marks hold what has happened so far; s.Close is not read.
func Settled(s *record.Session, r Rules, now time.Duration) bool {
	for _, t := range replay(s, r.withDefaults(s), now).turns {
		if !t.closed {
			return false
		}
	}
	return true
}

// Scheduled lists the indexes of the turns at which the session marks an
// endpoint.
func Scheduled(s *record.Session) []int {
	n := len(s.Turns.List)
	if n == 0 {
		return nil
	}
	if !s.Open.Target.EveryTurn {
		return []int{n - 1}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// spoiled says how this machine was too late during a turn's last second or while
// its answer was awaited; "" when it was not. Late writes always count. A late
// canary counts where receive stamps were taken by the process that was not run;
// the kernel's are right all the same.
func spoiled(s *record.Session, r Rules, t *turnState) string {
	if t.mark == nil {
		return ""
	}
	from, to := t.turn.SE-time.Second, s.Close.At
	if t.closed {
		to = t.closedAt
	}
	worst := map[record.DelayKind]time.Duration{}
	for _, d := range s.Delays {
		if d.At+d.By >= from && d.At <= to {
			worst[d.Kind] = max(worst[d.Kind], d.By)
		}
	}
	if by := worst[record.DelayWrite]; by > r.MaxLateness {
		return "audio was sent up to " + by.Round(time.Millisecond).String() + " late"
	}
	if by := worst[record.DelayCanary]; by > r.MaxLateness && s.Connect.Stamps != "kernel" {
		return "this process was not run for up to " + by.Round(time.Millisecond).String()
	}
	return ""
}

type failure struct {
	class  Class
	reason string
}

// failureOf gives the class that a broken session hands to its undecided turns.
func failureOf(s *record.Session) failure {
	c := s.Close
	reason := c.Detail
	switch {
	case c.How == record.Settled:
		return failure{}
	case c.How == record.Cancelled:
		return failure{Cancelled, reason}
	case c.Reject == record.RejectServer:
		return failure{ConnectFailed, reason}
	case c.Reject != "":
		return failure{Rejected, string(c.Reject) + ": " + reason}
	case c.Phase != record.PhaseStream && c.Phase != record.PhaseFinish:
		return failure{ConnectFailed, string(c.Phase) + ": " + reason}
	}
	return failure{Disconnected, reason}
}

// stall finds the first instant at which a continuous provider had said nothing
// during r.Stall of speech. Speech position and stamp are the same number.
func stall(s *record.Session, r Rules) (time.Duration, bool) {
	if !s.Open.Target.Continuous {
		return 0, false
	}
	last := time.Duration(0)
	for i := 0; i <= len(s.Events); i++ {
		until := s.Close.At
		if i < len(s.Events) {
			until = s.Events[i].At()
		}
		silent := time.Duration(0)
		for _, t := range s.Turns.List {
			from, to := max(t.Start, last), min(t.SE, s.Sent.Audio, until)
			if to <= from {
				continue
			}
			if silent+to-from >= r.Stall {
				return from + r.Stall - silent, true
			}
			silent += to - from
		}
		last = max(last, until)
	}
	return 0, false
}
