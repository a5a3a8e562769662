package calibrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers/emulator"
	"sttbench/record"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// heard is a session of which each force was written from f0 to f0 + 20 µs and
// answered after delay, all since t0; 0 is no answer.
func heard(t0 int64, forces ...[2]time.Duration) *record.Session {
	s := &record.Session{
		Open:    record.Open{T0Mono: t0, Target: record.Target{Forced: true, EveryTurn: true, Deadline: deadline}},
		Connect: record.Connect{Stamps: "kernel"},
		Close:   record.Close{At: time.Hour, How: record.Settled},
	}
	for i, f := range forces {
		at, delay := f[0], f[1]
		s.Turns.List = append(s.Turns.List, record.Turn{Start: at - 50*ms, SE: at, EOS: at})
		s.Marks = append(s.Marks, record.Mark{Turn: i, Forced: true, F0: at, T0: at + 20*us})
		if delay > 0 {
			kernel := at + 20*us + delay
			s.Events = append(s.Events, record.Event{Kernel: &kernel, User: kernel + 100*us, Op: record.Text,
				Decoded: []record.Decoded{{Kind: record.Final, Mode: record.Append, Text: "left", Closes: true}}})
		}
	}
	return s
}

// told is the emulator's truth about a connection: forces received and answers
// sent.
func told(conn int, forces ...[2]int64) []emulator.Truth {
	var all []emulator.Truth
	for i, f := range forces {
		all = append(all,
			emulator.Truth{Conn: conn, Event: emulator.TruthReceive, Kind: emulator.TruthForce, Force: i + 1, At: f[0] + 500, Kernel: f[0]},
			emulator.Truth{Conn: conn, Event: emulator.TruthReceive, Kind: emulator.TruthAudio, At: f[0] + int64(20*ms), Kernel: f[0] + int64(20*ms)},
			emulator.Truth{Conn: conn, Event: emulator.TruthSend, Kind: emulator.TruthPartial, At: f[0] + 700})
		if f[1] > 0 {
			all = append(all, emulator.Truth{Conn: conn, Event: emulator.TruthSend, Kind: emulator.TruthFinal, Force: i + 1, At: f[1], Done: f[1] + 900})
		}
	}
	return all
}

func TestJoin(t *testing.T) {
	always := Span{0, 1 << 62}
	const t0 = 1_000_000_000
	at := func(d time.Duration) int64 { return t0 + int64(d) }
	late := heard(t0, [2]time.Duration{100 * ms, 60 * ms})
	late.Delays = []record.Delay{{Kind: record.DelayWrite, At: late.Marks[0].F0 - 41*ms, By: 41 * ms}}
	byUser := heard(t0, [2]time.Duration{100 * ms, 60 * ms})
	byUser.Events[0].Kernel, byUser.Connect.Stamps = nil, "user"

	// One force: written from 100 ms to 100.020, received at 100.015, answered at
	// 160.010, heard at 160.020 by the kernel's stamp.
	truth := told(1, [2]int64{at(100*ms + 15*us), at(160*ms + 10*us)})
	want := Answer{TTF: 60*ms - (60*ms - 5*us), Stamp: 10 * us}
	split := append(told(1, [2]int64{at(100*ms + 15*us), at(120 * ms)}),
		emulator.Truth{Conn: 1, Event: emulator.TruthSend, Kind: emulator.TruthFinal, Force: 1, At: at(160*ms + 10*us)})
	together := told(1, [2]int64{at(100*ms + 15*us), at(160*ms + 10*us)})
	together[1].Kernel = together[0].Kernel
	withoutKernel := told(1, [2]int64{at(100*ms + 15*us), at(160*ms + 10*us)})
	withoutKernel[0].Kernel, withoutKernel[0].At = 0, at(100*ms+15*us)

	// Five forces, 100 ms apart, and when the emulator received them: so much after
	// the write began, and then so much later.
	var five [][2]time.Duration
	for i := range 5 {
		five = append(five, [2]time.Duration{time.Duration(i+1) * 100 * ms, 60 * ms})
	}
	received := func(after time.Duration, late ...time.Duration) [][2]int64 {
		var all [][2]int64
		for i, f := range five {
			all = append(all, [2]int64{at(f[0] + after + late[i]), at(f[0] + after + 60*ms - 5*us)})
		}
		return all
	}
	tests := map[string]struct {
		sessions []*record.Session
		truth    []emulator.Truth
		span     Span
		want     Joined
	}{
		"nothing": {nil, nil, always, Joined{Kernel: true}},
		"one answer": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, truth, always,
			Joined{Answers: []Answer{want}, Kernel: true},
		},
		"the last part of an answer counts": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, split, always,
			Joined{Answers: []Answer{want}, Kernel: true},
		},
		"our stamps are user space's": {
			[]*record.Session{byUser}, truth, always,
			Joined{Answers: []Answer{{TTF: want.TTF + 100*us, Stamp: want.Stamp + 100*us}}},
		},
		"the emulator's stamps are user space's": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, withoutKernel, always,
			Joined{Answers: []Answer{want}},
		},
		"outside the span": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, truth, Span{at(101 * ms), at(time.Second)},
			Joined{Kernel: true},
		},
		"spoiled by ourselves": {
			[]*record.Session{late}, truth, always,
			Joined{ClientInvalid: 1, Kernel: true},
		},
		"we heard no answer": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 0})}, truth, always,
			Joined{Unmatched: 1, Kernel: true},
		},
		"the emulator sent no answer": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, told(1, [2]int64{at(100*ms + 15*us), 0}), always,
			Joined{Unmatched: 1, Kernel: true},
		},
		"read together with the next message": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, together, always,
			Joined{Uncertain: 1, Kernel: true},
		},
		"no connection": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})}, nil, always,
			Joined{Unmatched: 1, Kernel: true},
		},
		"a force that we know nothing of": {
			[]*record.Session{heard(t0, [2]time.Duration{100 * ms, 60 * ms})},
			told(1, [2]int64{at(100*ms + 15*us), at(160*ms + 10*us)}, [2]int64{at(200 * ms), at(260 * ms)}), always,
			Joined{Answers: []Answer{want}, Unmatched: 1, Kernel: true},
		},
		"a connection that we know nothing of": {
			nil, truth, always,
			Joined{Unmatched: 1, Kernel: true},
		},
		"two sessions for one connection": {
			[]*record.Session{heard(t0+int64(5*ms), [2]time.Duration{100 * ms, 60 * ms}), heard(t0, [2]time.Duration{100 * ms, 60 * ms})},
			truth, always,
			Joined{Answers: []Answer{want}, Unmatched: 1, Kernel: true},
		},
		// 30 µs apart, and numbered the other way round.
		"two neighbours": {
			[]*record.Session{
				heard(t0, [2]time.Duration{100 * ms, 60 * ms}),
				heard(t0+int64(30*us), [2]time.Duration{100 * ms, 70 * ms}),
			},
			append(told(1, [2]int64{at(100*ms + 45*us), at(170*ms + 40*us)}), told(2, [2]int64{at(100*ms + 15*us), at(160*ms + 10*us)})...),
			always,
			Joined{Answers: []Answer{want, want}, Kernel: true},
		},
		// The stamps of two forces are 20 ms late, those of the neighbour 30 µs.
		"a busy emulator": {
			[]*record.Session{heard(t0, five...), heard(t0+int64(30*us), five...)},
			slices.Concat(
				told(1, received(45*us, 0, 0, 0, 0, 0)...),
				told(2, received(15*us, 0, 20*ms, 0, 0, 20*ms)...)),
			always,
			Joined{Answers: []Answer{want, {want.TTF + 20*ms, want.Stamp}, want, want, {want.TTF + 20*ms, want.Stamp}, want, want, want, want, want}, Kernel: true},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Join(tt.sessions, tt.truth, tt.span)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadForces(t *testing.T) {
	const log = `{"at_ns":1,"conn":1,"event":"accept"}
{"at_ns":5,"kernel_ns":4,"conn":1,"event":"receive","kind":"force","force":1}
{"at_ns":6,"conn":2,"event":"receive","kind":"audio"}
{"at_ns":6,"conn":1,"event":"receive","kind":"audio"}
{"at_ns":6,"conn":1,"event":"receive","kind":"audio"}
{"at_ns":7,"conn":1,"event":"send","kind":"final","force":1}
`
	got, err := ReadForces(strings.NewReader(log))
	want := []emulator.Truth{
		{At: 5, Kernel: 4, Conn: 1, Event: emulator.TruthReceive, Kind: emulator.TruthForce, Force: 1},
		{At: 6, Conn: 1, Event: emulator.TruthReceive, Kind: emulator.TruthAudio},
		{At: 7, Conn: 1, Event: emulator.TruthSend, Kind: emulator.TruthFinal, Force: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	_, err = ReadForces(strings.NewReader(log + `{"at_ns":`))
	if err == nil || !strings.HasPrefix(err.Error(), "truth log, entry 7: ") {
		t.Errorf("a log that was cut off gives the error %v", err)
	}
}
