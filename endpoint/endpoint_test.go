package endpoint

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/record"
)

const ms = time.Millisecond

// script is a session by hand: one turn from 0.2 s to SE 1 s, EOS 1.256 s, whose
// end was marked at F0 = 1.260 s, T0 = 1.261 s, unless a case changes it.
func script(forced bool, events ...record.Event) *record.Session {
	return &record.Session{
		Open: record.Open{Target: record.Target{Forced: forced, Deadline: 10 * time.Second}},
		Turns: record.Turns{List: []record.Turn{
			{Start: 200 * ms, SE: 1000 * ms, EOS: 1256 * ms, SELow: 968 * ms, SEHigh: 1032 * ms},
		}},
		Sent:   record.Sent{Audio: 12 * time.Second},
		Marks:  []record.Mark{{Turn: 0, Forced: forced, F0: 1260 * ms, T0: 1261 * ms}},
		Events: events,
		Close:  record.Close{At: 12 * time.Second, How: record.Settled, Phase: record.PhaseStream},
	}
}

func ev(at time.Duration, ds ...record.Decoded) record.Event {
	return record.Event{User: at, Op: record.Text, Decoded: ds}
}

func partial(text string) record.Decoded {
	return record.Decoded{Kind: record.Partial, Mode: record.Replace, Join: record.JoinSpace, Text: text}
}

func final(text string) record.Decoded {
	return record.Decoded{Kind: record.Final, Mode: record.Append, Join: record.JoinSpace, Text: text}
}

func closing(d record.Decoded) record.Decoded { d.Closes = true; return d }
func keyed(d record.Decoded, key string) record.Decoded {
	d.Key = key
	return d
}
func upTo(d record.Decoded, end time.Duration) record.Decoded { d.AudioEnd = &end; return d }

func fail(s *record.Session, c record.Close) *record.Session { s.Close = c; return s }

// want is the part of an outcome that a case states; nil latencies must be nil.
type want struct {
	Class                      Class
	Ack                        Ack
	TTF, First, TTFP, AckMS    any
	Wait, FromSE, Censored     any
	FinalText, FirstT, Partial string
}

func summary(o Outcome) want {
	val := func(m *Millis) any {
		if m == nil {
			return nil
		}
		return float64(*m)
	}
	return want{o.Class, o.Ack, val(o.TTF), val(o.TTFFirst), val(o.TTFP), val(o.AckMS),
		val(o.Wait), val(o.TTFFromSE), val(o.CensoredAt), o.FinalText, o.FirstFinalText, o.PartialText}
}

func TestOutcomes(t *testing.T) {
	negative := record.Decoded{Kind: record.Ack, Closes: true, Negative: true, Cause: "commit_empty"}
	emptyAck := closing(final(""))
	cases := []struct {
		name string
		s    *record.Session
		want want
	}{
		{"ok, final is the closing event", script(true,
			ev(900*ms, partial("turn the")), ev(1411*ms, closing(final("turn the lights off")))),
			want{Class: OK, Ack: AckText, TTF: 150., First: 150., TTFP: 150., AckMS: 150., Wait: 150., FromSE: 411.,
				FinalText: "turn the lights off", FirstT: "turn the lights off", Partial: "turn the lights off"}},
		{"ok, answer split in two finals, a partial first", script(true,
			ev(1300*ms, partial("turn the")), ev(1361*ms, final("turn the")), ev(1461*ms, closing(final("lights off")))),
			want{Class: OK, Ack: AckText, TTF: 200., First: 100., TTFP: 39., AckMS: 200., Wait: 200., FromSE: 461.,
				FinalText: "turn the lights off", FirstT: "turn the", Partial: "turn the"}},
		{"ok, text first and an empty closing event after it", script(true,
			ev(1361*ms, final("turn it off")), ev(1400*ms, emptyAck)),
			want{Class: OK, Ack: AckText, TTF: 100., First: 100., TTFP: 100., AckMS: 139., Wait: 100., FromSE: 361.,
				FinalText: "turn it off", FirstT: "turn it off", Partial: "turn it off"}},
		{"ok without any closing event", script(true, ev(1361*ms, final("turn it off"))),
			want{Class: OK, Ack: AckNone, TTF: 100., First: 100., TTFP: 100., Wait: 100., FromSE: 361.,
				FinalText: "turn it off", FirstT: "turn it off", Partial: "turn it off"}},
		{"ok, an answer between F0 and T0 is faster than our own write", script(true,
			ev(1260500*time.Microsecond, closing(final("off")))),
			want{Class: OK, Ack: AckText, TTF: -.5, First: -.5, TTFP: -.5, AckMS: -.5, Wait: 0., FromSE: 260.5,
				FinalText: "off", FirstT: "off", Partial: "off"}},
		{"text after the closing event is late and stays out", script(true,
			ev(1361*ms, closing(final("turn it"))), ev(1500*ms, final("off"))),
			want{Class: OK, Ack: AckText, TTF: 100., First: 100., TTFP: 100., AckMS: 100., Wait: 100., FromSE: 361.,
				FinalText: "turn it", FirstT: "turn it", Partial: "turn it"}},
		{"early final, acknowledged empty", script(true,
			ev(1100*ms, upTo(final("turn it off"), 980*ms)), ev(1300*ms, emptyAck)),
			want{Class: EarlyFinal, Ack: AckEmpty, TTF: -161., AckMS: 39., Wait: 0., FromSE: 100., FinalText: "turn it off"}},
		{"early final, never acknowledged", script(true, ev(1100*ms, final("turn it off"))),
			want{Class: EarlyFinal, Ack: AckNone, TTF: -161., Wait: 0., FromSE: 100., FinalText: "turn it off"}},
		{"early final that does not reach the end is a lost tail", script(true,
			ev(800*ms, upTo(final("turn it"), 690*ms)), ev(1300*ms, emptyAck)),
			want{Class: TailLost, Ack: AckEmpty, TTF: 39., AckMS: 39., Wait: 39., FromSE: 300., FinalText: "turn it"}},
		{"tail lost: a partial outlives the acknowledgement", script(true,
			ev(1100*ms, partial("turn it off")), ev(1300*ms, record.Decoded{Kind: record.Ack, Closes: true})),
			want{Class: TailLost, Ack: AckEmpty, TTF: 39., AckMS: 39., Wait: 39., FromSE: 300., FinalText: "turn it off"}},
		{"tail lost by a negative answer", script(true,
			ev(1100*ms, partial("turn it off")), ev(1300*ms, negative)),
			want{Class: TailLost, Ack: AckNegative, TTF: 39., AckMS: 39., Wait: 39., FromSE: 300., FinalText: "turn it off"}},
		{"empty ack takes the partial back", script(true,
			ev(1100*ms, partial("turn it off")), ev(1300*ms, emptyAck)),
			want{Class: EmptyAck, Ack: AckEmpty, AckMS: 39.}},
		{"negative answer and no text", script(true, ev(1300*ms, negative)),
			want{Class: EmptyAck, Ack: AckNegative, AckMS: 39.}},
		{"blank text is no text", script(true, ev(1300*ms, closing(final(" \n")))),
			want{Class: EmptyAck, Ack: AckEmpty, AckMS: 39.}},
		{"no answer keeps the partial's text and is censored", script(true, ev(1100*ms, partial("turn it off"))),
			want{Class: NoAnswer, Ack: AckNone, Censored: 10000., FinalText: "turn it off"}},
		{"an answer after the deadline is none", script(true, ev(11500*ms, closing(final("off")))),
			want{Class: NoAnswer, Ack: AckNone, Censored: 10000.}},
		{"cancelled", fail(script(true, ev(900*ms, partial("turn"))), record.Close{At: 1400 * ms, How: record.Cancelled, Phase: record.PhaseStream}),
			want{Class: Cancelled, Ack: AckNone, FinalText: "turn"}},
		{"connect failed", fail(&record.Session{Turns: script(true).Turns}, record.Close{How: record.Failed, Phase: record.PhaseTCP, Detail: "refused"}),
			want{Class: ConnectFailed, Ack: AckNone}},
		{"the provider's own 503 is a failed connection", fail(&record.Session{Turns: script(true).Turns},
			record.Close{How: record.Failed, Phase: record.PhaseUpgrade, Reject: record.RejectServer, Status: 503}),
			want{Class: ConnectFailed, Ack: AckNone}},
		{"rejected key", fail(&record.Session{Turns: script(true).Turns},
			record.Close{How: record.Failed, Phase: record.PhaseUpgrade, Reject: record.RejectAuth, Status: 401}),
			want{Class: Rejected, Ack: AckNone}},
		{"disconnected before the answer", fail(script(true, ev(1300*ms, final("turn it"))),
			record.Close{At: 1350 * ms, How: record.Remote, Phase: record.PhaseStream}),
			want{Class: Disconnected, Ack: AckNone, FinalText: "turn it", FirstT: "turn it", Partial: "turn it"}},
		{"a connection lost after the answer changes nothing", fail(script(true, ev(1361*ms, closing(final("off")))),
			record.Close{At: 1400 * ms, How: record.Remote, Phase: record.PhaseStream}),
			want{Class: OK, Ack: AckText, TTF: 100., First: 100., TTFP: 100., AckMS: 100., Wait: 100., FromSE: 361.,
				FinalText: "off", FirstT: "off", Partial: "off"}},

		{"natural ok: first final in the window", script(false, ev(1100*ms, partial("turn it")), ev(1761*ms, final("turn it off"))),
			want{Class: OK, Ack: AckNone, TTF: 500., First: 500., TTFP: 500., Wait: 500., FromSE: 761.,
				FinalText: "turn it off", FirstT: "turn it off", Partial: "turn it off"}},
		{"natural ok: the final that reaches SE wins over the first", script(false,
			ev(1361*ms, upTo(final("turn"), 500*ms)), ev(1761*ms, upTo(final("it off"), 990*ms))),
			want{Class: OK, Ack: AckNone, TTF: 500., First: 500., TTFP: 100., Wait: 500., FromSE: 761.,
				FinalText: "turn it off", FirstT: "turn it off", Partial: "turn"}},
		{"natural ok: else the first final in the window", script(false, ev(1361*ms, upTo(final("turn"), 500*ms))),
			want{Class: OK, Ack: AckNone, TTF: 100., First: 100., TTFP: 100., Wait: 100., FromSE: 361.,
				FinalText: "turn", FirstT: "turn", Partial: "turn"}},
		{"natural early final", script(false, ev(1200*ms, upTo(final("turn it off"), 990*ms))),
			want{Class: EarlyFinal, Ack: AckNone, TTF: -61., Wait: 0., FromSE: 200., FinalText: "turn it off"}},
		{"natural late final", script(false, ev(4261*ms, final("turn it off"))),
			want{Class: LateFinal, Ack: AckNone, TTF: 3000., First: 3000., TTFP: 3000., Wait: 3000., FromSE: 3261.,
				FinalText: "turn it off", FirstT: "turn it off", Partial: "turn it off"}},
		{"natural late partial", script(false, ev(4261*ms, partial("turn it off"))),
			want{Class: LatePartial, Ack: AckNone, TTF: 3000., TTFP: 3000., Wait: 3000., FromSE: 3261.,
				FinalText: "turn it off", Partial: "turn it off"}},
		{"natural early partial", script(false, ev(1200*ms, partial("turn it off"))),
			want{Class: EarlyPartial, Ack: AckNone, Censored: 2000., FinalText: "turn it off"}},
		{"natural partial inside the window only", script(false, ev(1361*ms, partial("turn it off"))),
			want{Class: EarlyPartial, Ack: AckNone, TTFP: 100., Censored: 2000., FinalText: "turn it off", Partial: "turn it off"}},
		{"natural no answer", script(false), want{Class: NoAnswer, Ack: AckNone, Censored: 10000.}},
		{"natural: a key that was committed before the end still answers", script(false,
			ev(1200*ms, record.Decoded{Kind: record.Ack, Segment: "a", Key: "a"}),
			ev(1361*ms, keyed(closing(final("off")), "a"))),
			want{Class: OK, Ack: AckNone, TTF: 100., First: 100., TTFP: 100., Wait: 100., FromSE: 361.,
				FinalText: "off", FirstT: "off", Partial: "off"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := Outcomes(c.s, Rules{})
			if len(res.Turns) != 1 {
				t.Fatalf("got %d outcomes, want 1", len(res.Turns))
			}
			if d := cmp.Diff(c.want, summary(res.Turns[0])); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
		})
	}
}

func TestFixedLatencies(t *testing.T) {
	o := Outcomes(script(true, ev(500*ms, partial("turn")), ev(1411*ms, closing(final("off")))), Rules{}).Turns[0]
	got := []float64{float64(*o.Hangover), float64(*o.ForceDelay), float64(*o.FirstPartial), float64(*o.SpeechEnd), float64(*o.SpeechEndSpread)}
	if d := cmp.Diff([]float64{256, 5, 300, 1000, 64}, got); d != "" {
		t.Errorf("hangover, force delay, first partial, se, spread (-want +got):\n%s", d)
	}
}

func TestStalled(t *testing.T) {
	long := func() *record.Session {
		s := script(true, ev(500*ms, partial("so")), ev(15500*ms, closing(final("so it was"))))
		s.Open.Target.Continuous = true
		s.Turns.List[0].SE, s.Turns.List[0].EOS = 15*time.Second, 15256*ms
		s.Marks[0].F0, s.Marks[0].T0 = 15260*ms, 15261*ms
		s.Sent.Audio, s.Close.At = 16*time.Second, 16*time.Second
		return s
	}
	if got := Outcomes(long(), Rules{}).Turns[0].Class; got != Stalled {
		t.Errorf("14.5 s of speech without a message: class %s, want stalled", got)
	}
	s := long()
	s.Open.Target.Continuous = false
	if got := Outcomes(s, Rules{}).Turns[0].Class; got != OK {
		t.Errorf("same, provider not continuous: class %s, want ok", got)
	}
	s = long()
	s.Events = append([]record.Event{s.Events[0], ev(8*time.Second, partial(""))}, s.Events[1:]...)
	if got := Outcomes(s, Rules{}).Turns[0].Class; got != OK {
		t.Errorf("an empty partial half-way is a sign of life: class %s, want ok", got)
	}
}

func TestClientInvalid(t *testing.T) {
	cases := []struct {
		name   string
		delay  record.Delay
		stamps string
		want   Class
	}{
		{"late write before the end", record.Delay{Kind: record.DelayWrite, At: 500 * ms, By: 41 * ms}, "kernel", ClientInvalid},
		{"a little late", record.Delay{Kind: record.DelayWrite, At: 500 * ms, By: 40 * ms}, "kernel", OK},
		{"late write while waiting", record.Delay{Kind: record.DelayWrite, At: 1300 * ms, By: 50 * ms}, "kernel", ClientInvalid},
		{"late write after the answer", record.Delay{Kind: record.DelayWrite, At: 1400 * ms, By: 500 * ms}, "kernel", OK},
		{"starved reader, our stamps", record.Delay{Kind: record.DelayCanary, At: 1300 * ms, By: 60 * ms}, "user", ClientInvalid},
		{"starved reader, kernel's stamps", record.Delay{Kind: record.DelayCanary, At: 1300 * ms, By: 60 * ms}, "kernel", OK},
		{"a delay that reaches into the last second", record.Delay{Kind: record.DelayWrite, At: -900 * ms, By: 950 * ms}, "kernel", ClientInvalid},
		{"long before", record.Delay{Kind: record.DelayWrite, At: -900 * ms, By: 100 * ms}, "kernel", OK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := script(true, ev(1361*ms, closing(final("off"))))
			s.Connect.Stamps, s.Delays = c.stamps, []record.Delay{c.delay}
			o := Outcomes(s, Rules{}).Turns[0]
			if o.Class != c.want || (c.want == ClientInvalid) != (o.TTF == nil) {
				t.Errorf("class %s (%s) ttf %v, want %s", o.Class, o.Reason, o.TTF, c.want)
			}
		})
	}
}

func TestNoSpeech(t *testing.T) {
	s := script(true, ev(500*ms, final("thank you")))
	s.Turns.List, s.Marks = nil, nil
	res := Outcomes(s, Rules{})
	if len(res.Turns) != 1 || res.Turns[0].Class != NoSpeech || res.Turns[0].FinalText != "thank you" || res.Turns[0].Turn != -1 {
		t.Errorf("got %+v", res.Turns)
	}
	fail(s, record.Close{How: record.Failed, Phase: record.PhaseUpgrade, Reject: record.RejectQuota})
	if got := Outcomes(s, Rules{}).Turns[0].Class; got != Rejected {
		t.Errorf("refused session of a silent item: class %s, want rejected", got)
	}
}

// twoTurns has a second turn that is marked while the first is still open.
func twoTurns(events ...record.Event) *record.Session {
	s := script(true, events...)
	s.Open.Target.EveryTurn = true
	s.Turns.List = append(s.Turns.List, record.Turn{Start: 1400 * ms, SE: 1600 * ms, EOS: 1856 * ms})
	s.Marks = append(s.Marks, record.Mark{Turn: 1, Forced: true, F0: 1860 * ms, T0: 1861 * ms})
	return s
}

func TestAnswersBelongToTheirForce(t *testing.T) {
	ack := func(key string) record.Decoded {
		return record.Decoded{Kind: record.Ack, Key: key, Segment: key}
	}
	done := func(key, text string) record.Decoded {
		return record.Decoded{Kind: record.Final, Mode: record.Replace, Join: record.Verbatim,
			Text: text, Key: key, Segment: key, Closes: true}
	}
	cases := []struct {
		name       string
		s          *record.Session
		ttf        [2]float64
		text       [2]string
		finals     int
		acks       int
		wantClass1 Class
	}{
		{"by key, answered out of order", twoTurns(
			ev(1270*ms, ack("a")), ev(1870*ms, ack("b")),
			ev(1961*ms, done("b", "two")), ev(2061*ms, done("a", "one"))),
			[2]float64{800, 100}, [2]string{"one two", "two"}, 0, 0, OK},
		{"without keys, first in first out", twoTurns(
			ev(1961*ms, closing(final("one"))), ev(2061*ms, closing(final("two")))),
			[2]float64{700, 200}, [2]string{"one", "one two"}, 0, 0, OK},
		{"a commit of the vendor's own answers nobody", twoTurns(
			ev(1000*ms, ack("v")), ev(1270*ms, ack("a")), ev(1300*ms, done("v", "well")), ev(1361*ms, done("a", "one")),
			ev(1870*ms, ack("b")), ev(1961*ms, done("b", "two")), ev(2500*ms, closing(final("three")))),
			[2]float64{100, 100}, [2]string{"well one", "well one two"}, 2, 2, OK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := Outcomes(c.s, Rules{})
			for i, o := range res.Turns {
				if o.TTF == nil || float64(*o.TTF) != c.ttf[i] || o.FinalText != c.text[i] {
					t.Errorf("turn %d: ttf %v text %q class %s, want %v %q", i, o.TTF, o.FinalText, o.Class, c.ttf[i], c.text[i])
				}
			}
			if res.UnsolicitedFinals != c.finals || res.UnsolicitedAcks != c.acks {
				t.Errorf("unsolicited finals %d acks %d, want %d %d", res.UnsolicitedFinals, res.UnsolicitedAcks, c.finals, c.acks)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	s := script(true, ev(900*ms, partial("turn")), ev(1411*ms, closing(final("turn it off"))))
	for _, c := range []struct {
		now  time.Duration
		want bool
	}{{1400 * ms, false}, {1411 * ms, true}, {5 * time.Second, true}} {
		if got := Settled(s, Rules{}, c.now); got != c.want {
			t.Errorf("settled at %v: %v, want %v", c.now, got, c.want)
		}
	}
	silent := script(true)
	if Settled(silent, Rules{}, 11261*ms) || !Settled(silent, Rules{}, 11262*ms) {
		t.Error("an unanswered turn settles just after its deadline")
	}
	silent.Marks = nil
	if Settled(silent, Rules{}, time.Hour) {
		t.Error("a turn whose end was not reached is not settled")
	}
	early := script(false, ev(1200*ms, final("turn it off")))
	if Settled(early, Rules{}, 3261*ms) || !Settled(early, Rules{}, 3262*ms) {
		t.Error("a natural early final is known when the window is over")
	}
	none := script(true)
	none.Turns.List, none.Marks = nil, nil
	if !Settled(none, Rules{}, 0) {
		t.Error("an item without turns has nothing to wait for")
	}
}

// What has settled cannot change: judging the prefix gives the same outcome as
// judging the whole session.
func TestSettledOutcomesAreStable(t *testing.T) {
	all := twoTurns(
		ev(600*ms, partial("on")), ev(1361*ms, closing(final("one"))), ev(1700*ms, partial("tw")),
		ev(1961*ms, closing(final("two"))), ev(2300*ms, final("late")), ev(2400*ms, closing(final("later"))))
	for now := time.Duration(0); now < 4*time.Second; now += 7 * ms {
		if !Settled(all, Rules{}, now) {
			continue
		}
		prefix := *all
		prefix.Events = nil
		for _, e := range all.Events {
			if e.At() <= now {
				prefix.Events = append(prefix.Events, e)
			}
		}
		prefix.Close.At = now
		if d := cmp.Diff(Outcomes(all, Rules{}).Turns, Outcomes(&prefix, Rules{}).Turns); d != "" {
			t.Fatalf("settled at %v, but the rest changed it (-all +prefix):\n%s", now, d)
		}
	}
}

func TestTranscript(t *testing.T) {
	seg := func(d record.Decoded, s string, m record.Mode, j record.Join) record.Decoded {
		d.Segment, d.Mode, d.Join = s, m, j
		return d
	}
	var tr Transcript
	steps := []struct {
		d           record.Decoded
		fixed, text string
	}{
		{partial("turn the"), "", "turn the"},
		{partial("turn the lie"), "", "turn the lie"},
		{final("turn the lights"), "turn the lights", "turn the lights"},
		{partial("off"), "turn the lights", "turn the lights off"},
		{final(""), "turn the lights", "turn the lights"},
		{record.Decoded{Kind: record.Ack, Segment: "b"}, "turn the lights", "turn the lights"},
		{seg(partial("later"), "c", record.Append, record.Verbatim), "turn the lights", "turn the lights later"},
		{seg(partial("ple"), "b", record.Append, record.Verbatim), "turn the lights", "turn the lights ple later"},
		{seg(partial("ase"), "b", record.Append, record.Verbatim), "turn the lights", "turn the lights please later"},
		{seg(final("Please."), "b", record.Replace, record.Verbatim), "turn the lights Please.", "turn the lights Please. later"},
		{seg(final("Please!?"), "b", record.Replace, record.Verbatim), "turn the lights Please!?", "turn the lights Please!? later"},
	}
	for i, s := range steps {
		tr.Add(s.d)
		if tr.Fixed() != s.fixed || tr.Text() != s.text {
			t.Errorf("step %d: fixed %q text %q, want %q %q", i, tr.Fixed(), tr.Text(), s.fixed, s.text)
		}
	}
	if tr.Revised != 1 {
		t.Errorf("revised finals: %d, want 1", tr.Revised)
	}
	// "lie" became "lights", "off" was taken back; growing and punctuation do not count.
	if tr.Rewritten != 2 {
		t.Errorf("rewritten words: %d, want 2", tr.Rewritten)
	}
}

func TestClassesAreListedOnce(t *testing.T) {
	seen := map[Class]bool{}
	for _, c := range Classes() {
		if seen[c] {
			t.Errorf("%s is listed twice", c)
		}
		seen[c] = true
	}
	if len(seen) != 15 {
		t.Errorf("%d classes, want 15", len(seen))
	}
}

// A flood of finals is judged in time that grows with its length, not with the
// square of it.
func TestFloodIsJudgedQuickly(t *testing.T) {
	s := script(true)
	const n = 100_000
	for i := range n {
		d := final("word")
		if i%2 == 0 {
			d = record.Decoded{Kind: record.Partial, Mode: record.Append, Join: record.Verbatim, Segment: "b", Text: "word "}
		}
		s.Events = append(s.Events, ev(1300*ms+time.Duration(i), d))
	}
	start := time.Now()
	o := Outcomes(s, Rules{}).Turns[0]
	Settled(s, Rules{}, 5*time.Second)
	// Quadratic work would take minutes; this takes some 50 ms.
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("judging %d events took %v", n, took)
	}
	if o.Class != OK || len(o.FinalText) != n/2*5-1 {
		t.Errorf("class %s, %d bytes of text", o.Class, len(o.FinalText))
	}
}

// from tells how far back an event's audio reaches.
func from(d record.Decoded, start time.Duration) record.Decoded { d.AudioStart = &start; return d }

func TestNextTurnDoesNotSpoilThisOne(t *testing.T) {
	t.Run("natural: the next turn's partials are no late answer", func(t *testing.T) {
		s := twoTurns(ev(1100*ms, upTo(final("first turn"), 1000*ms)),
			ev(1800*ms, from(partial("second"), 1400*ms)), ev(3300*ms, from(partial("second turn"), 1400*ms)),
			ev(3400*ms, from(upTo(final("second turn"), 1600*ms), 1400*ms)))
		s.Open.Target.Forced = false
		s.Marks[0].Forced, s.Marks[1].Forced = false, false
		o := Outcomes(s, Rules{}).Turns
		if o[0].Class != EarlyFinal || *o[0].TTF != -161 || o[0].FinalText != "first turn" {
			t.Errorf("first turn: %s, ttf %v, %q", o[0].Class, o[0].TTF, o[0].FinalText)
		}
		if o[1].Class != OK || *o[1].TTF != 1539 {
			t.Errorf("second turn: %s, ttf %v", o[1].Class, o[1].TTF)
		}
	})
	t.Run("forced: a missing acknowledgement does not shift the answers", func(t *testing.T) {
		s := twoTurns(ev(1100*ms, upTo(final("first turn"), 1000*ms)),
			ev(2000*ms, closing(from(upTo(final("second turn"), 1600*ms), 1400*ms))))
		o := Outcomes(s, Rules{}).Turns
		if o[0].Class != EarlyFinal || o[0].Ack != AckNone {
			t.Errorf("first turn: %s, ack %s, ttf %v", o[0].Class, o[0].Ack, o[0].TTF)
		}
		if o[1].Class != OK || *o[1].TTF != 139 {
			t.Errorf("second turn: %s, ttf %v", o[1].Class, o[1].TTF)
		}
	})
	t.Run("keyed: text before its acknowledgement is the unbound turn's", func(t *testing.T) {
		delta := record.Decoded{Kind: record.Partial, Mode: record.Append, Join: record.Verbatim, Segment: "b", Key: "b", Text: "sec"}
		s := twoTurns(ev(1270*ms, record.Decoded{Kind: record.Ack, Key: "a", Segment: "a"}),
			ev(1870*ms, delta), ev(1880*ms, record.Decoded{Kind: record.Ack, Key: "b", Segment: "b"}),
			ev(2000*ms, record.Decoded{Kind: record.Final, Mode: record.Replace, Segment: "b", Key: "b", Text: "second", Closes: true}))
		o := Outcomes(s, Rules{}).Turns
		if o[1].TTFP == nil || *o[1].TTFP != 9 || o[0].TTFP != nil {
			t.Errorf("ttfp %v and %v, want none and 9", o[0].TTFP, o[1].TTFP)
		}
	})
}

func TestCensoringEndsWithTheSession(t *testing.T) {
	s := script(true)
	s.Close.At = 3961 * ms
	if o := Outcomes(s, Rules{}).Turns[0]; o.CensoredAt == nil || *o.CensoredAt != 2700 {
		t.Errorf("censored at %v, want 2700: nothing is known beyond the session's end", o.CensoredAt)
	}
}
