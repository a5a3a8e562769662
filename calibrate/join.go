package calibrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"sttbench/endpoint"
	"sttbench/providers/emulator"
	"sttbench/record"
)

// Answer is an answer to a forced endpoint of which both sides have told.
type Answer struct {
	// TTF is the time to final of our report less the true one: answer sent − force
	// received, by the emulator's stamps.
	TTF time.Duration
	// Stamp is our receive stamp of the answer less the emulator's stamp before it
	// was written.
	Stamp time.Duration
}

// Joined is what became of the forced endpoints of a span of time.
type Joined struct {
	Answers []Answer
	// ClientInvalid counts the turns that our own lateness spoiled.
	ClientInvalid int
	// Uncertain counts the forces that a busy emulator read together with what came
	// after: the kernel stamps a read with its last segment, so that the truth about
	// them is not known.
	Uncertain int
	// Unmatched counts all others: without a valid answer on our side, or without
	// a counterpart on the other.
	Unmatched int
	// Kernel tells whether all stamps of reception, on both sides, are the kernel's.
	Kernel bool
}

// Span is a stretch of the machine's monotonic clock in nanoseconds, [From, To).
type Span struct{ From, To int64 }

func (s Span) holds(at int64) bool { return s.From <= at && at < s.To }

// Join lays the records of sessions beside the emulator's truth about the forces
// and answers in the span. Of a session the n-th mark belongs to the n-th force of
// its connection; which connection is its own is found by the stamps.
func Join(sessions []*record.Session, truth []emulator.Truth, span Span) Joined {
	conns := connections(truth)
	owner := pair(sessions, conns)
	j := Joined{Kernel: true}
	claimed := make(map[int]int) // connection → forces that have a mark
	for i, s := range sessions {
		var forces []force
		if c := owner[i]; c >= 0 {
			forces = conns[c]
			claimed[c] = len(s.Marks)
		}
		j.session(s, forces, span)
	}
	for c, forces := range conns {
		for _, f := range forces[min(claimed[c], len(forces)):] {
			if span.holds(f.received) {
				j.Unmatched++
			}
		}
	}
	return j
}

// session takes in the marks of one session.
func (j *Joined) session(s *record.Session, forces []force, span Span) {
	outcomes := make(map[int]endpoint.Outcome)
	for _, o := range endpoint.Outcomes(s, endpoint.Rules{}).Turns {
		outcomes[o.Turn] = o
	}
	for k, m := range s.Marks {
		forced := s.Open.T0Mono + int64(m.T0)
		if !span.holds(forced) {
			continue
		}
		o := outcomes[m.Turn]
		switch {
		case o.Class == endpoint.ClientInvalid:
			j.ClientInvalid++
		case o.Class != endpoint.OK || o.TTF == nil || k >= len(forces) || forces[k].sent == 0:
			j.Unmatched++
		case forces[k].shared:
			j.Uncertain++
		default:
			f := forces[k]
			ttf := int64(math.Round(float64(*o.TTF) * 1e6))
			j.Answers = append(j.Answers, Answer{
				TTF:   time.Duration(ttf - (f.sent - f.received)),
				Stamp: time.Duration(forced + ttf - f.sent),
			})
			j.Kernel = j.Kernel && f.kernel && s.Connect.Stamps == "kernel"
		}
	}
}

// force is the emulator's truth about one forced endpoint.
type force struct {
	received int64
	kernel   bool  // received is the kernel's stamp
	shared   bool  // with a message that came after
	sent     int64 // of the last part of the answer, before it was written; 0: none
}

// connections lists the forces of each connection that has any, in order.
func connections(truth []emulator.Truth) [][]force {
	byNumber := make(map[int][]force)
	for _, t := range truth {
		forces := byNumber[t.Conn]
		if n := len(forces); n > 0 && t.Event == emulator.TruthReceive && t.Kernel != 0 && t.Kernel == forces[n-1].received {
			forces[n-1].shared = true
		}
		switch {
		case t.Event == emulator.TruthReceive && t.Kind == emulator.TruthForce && t.Force == len(forces)+1:
			byNumber[t.Conn] = append(forces, force{received: cmp.Or(t.Kernel, t.At), kernel: t.Kernel != 0})
		case t.Event == emulator.TruthSend && t.Kind == emulator.TruthFinal && 1 <= t.Force && t.Force <= len(forces):
			forces[t.Force-1].sent = t.At
		}
	}
	var all [][]force
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		all = append(all, byNumber[n])
	}
	return all
}

// pair finds the connection of each session, -1 where there is none: the one whose
// forces were received while the session wrote its own. Writes of two sessions
// never overlap for long, so only one connection can fit them all. Where two
// sessions fit one connection best, the better has it.
func pair(sessions []*record.Session, conns [][]force) []int {
	owner := make([]int, len(sessions))
	taker := make(map[int]int) // connection → session
	miss := make([]time.Duration, len(sessions))
	for i, s := range sessions {
		owner[i] = -1
		if len(s.Marks) == 0 {
			continue
		}
		for c, forces := range conns {
			if m := misfit(s, forces); owner[i] < 0 || m < miss[i] {
				owner[i], miss[i] = c, m
			}
		}
		if owner[i] < 0 {
			continue
		}
		rival, taken := taker[owner[i]]
		switch {
		case !taken:
			taker[owner[i]] = i
		case miss[i] < miss[rival]:
			taker[owner[i]], owner[rival] = i, -1
		default:
			owner[i] = -1
		}
	}
	return owner
}

// misfit is how far the forces of a connection were received outside the session's
// writes of them: the median, because a busy machine spoils single stamps.
func misfit(s *record.Session, forces []force) time.Duration {
	misses := make([]time.Duration, 0, len(forces))
	for i, f := range forces[:min(len(s.Marks), len(forces))] {
		at := time.Duration(f.received - s.Open.T0Mono)
		misses = append(misses, max(s.Marks[i].F0-at, at-s.Marks[i].T0, 0))
	}
	slices.Sort(misses)
	return misses[len(misses)/2]
}

// ReadForces reads what a truth log tells of forces and their answers, and of the
// message after each force. The rest, a line for each chunk of audio, would fill
// the memory.
func ReadForces(r io.Reader) ([]emulator.Truth, error) {
	var kept []emulator.Truth
	forced := make(map[int]bool) // connections whose last message was a force
	dec := json.NewDecoder(r)
	for n := 1; ; n++ {
		var t emulator.Truth
		err := dec.Decode(&t)
		switch {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil:
			return nil, fmt.Errorf("truth log, entry %d: %w", n, err)
		}
		received := t.Event == emulator.TruthReceive
		if t.Force > 0 || received && forced[t.Conn] {
			kept = append(kept, t)
		}
		if received {
			forced[t.Conn] = t.Kind == emulator.TruthForce
		}
	}
}
