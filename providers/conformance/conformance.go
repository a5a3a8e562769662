// Package conformance is the suite that every vendor passes: its dialect against
// its own emulator, over a real socket, through the real streamer, judged by the
// real endpoint rules. A vendor's test calls [Run] with what its protocol cannot
// do; everything else is the same for all.
//
// Audio flows in real time here, so the cases run in parallel, and latencies are
// only compared with wide margins: precision has its own command, calibrate.
package conformance

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/providers/emulator"
	"sttbench/record"
	"sttbench/streamer"
)

// Vendor is what is tested, and how it differs from the common case.
type Vendor struct {
	Dialect  providers.Dialect
	Emulator emulator.Vendor
	// Model used for forced endpoints, and NaturalModel where it differs.
	Model, NaturalModel string
	// Want replaces the class of single cases, by their name.
	Want map[string]endpoint.Class
	// OneFinal tells that a forced endpoint is always answered by a single final.
	OneFinal bool
	// Params are set in every case.
	Params map[string]string
}

const (
	said       = "turn the lights off"
	finalDelay = 60 * time.Millisecond
	deadline   = 1500 * time.Millisecond
)

// item is one turn of 1.2 s: a tone while words are said, silence after it.
var item = struct {
	length time.Duration
	turns  []record.Turn
}{2 * time.Second, []record.Turn{{SE: 1200 * time.Millisecond, EOS: 1456 * time.Millisecond}}}

// pair is the same twice, with a pause of 800 ms between.
var pair = []record.Turn{item.turns[0],
	{Start: 2000 * time.Millisecond, SE: 3200 * time.Millisecond, EOS: 3456 * time.Millisecond}}

// outcome is what a case looks at.
type outcome struct {
	rec  *record.Session
	res  endpoint.Result
	last endpoint.Outcome
}

// kase is one session and what must come of it.
type kase struct {
	name   string
	faults string // blank separated
	tls    bool
	turns  []record.Turn // nil: those of item
	// natural leaves the turn's end to the provider; key replaces the good one.
	natural bool
	key     string
	class   endpoint.Class
	ack     endpoint.Ack
	check   func(t *testing.T, o outcome)
}

func (c kase) speech() []record.Turn {
	if c.turns == nil {
		return item.turns
	}
	return c.turns
}

// Run runs the suite.
func Run(t *testing.T, v Vendor) {
	t.Run("description", func(t *testing.T) { description(t, v) })
	for _, c := range cases(v) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := c.class
			if w, ok := v.Want[c.name]; ok {
				want = w
			}
			o := stream(t, v, c)
			if o.last.Class != want || (c.ack != "" && o.last.Ack != c.ack) {
				t.Errorf("class %s ack %s (%s), want %s %s; close %+v; text %q",
					o.last.Class, o.last.Ack, o.last.Reason, want, c.ack, o.rec.Close, o.last.FinalText)
			}
			if c.check != nil && want == c.class && !t.Failed() {
				c.check(t, o)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) { t.Parallel(); cancelled(t, v) })
	t.Run("foreign frames", func(t *testing.T) { foreign(t, v) })
}

func cases(v Vendor) []kase {
	all := []kase{
		{name: "forced", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) {
			text(t, o, said)
			ttf := float64(*o.last.TTF)
			if ttf < 55 || ttf > 600 {
				t.Errorf("ttf %.1f ms, the emulator waits 60 ms", ttf)
			}
			if o.rec.Close.Phase != record.PhaseFinish || strings.Contains(o.rec.Close.Detail, "no end") {
				t.Errorf("the stream did not end gracefully: %+v", o.rec.Close)
			}
			if o.res.DecodeErrors != 0 || o.res.UnsolicitedAcks != 0 {
				t.Errorf("decode errors %d, unsolicited acks %d", o.res.DecodeErrors, o.res.UnsolicitedAcks)
			}
		}},
		{name: "every turn", turns: pair, class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) {
			text(t, o, said+" "+said)
			if first := o.res.Turns[0]; len(o.res.Turns) != 2 || first.Class != endpoint.OK || !same(first.FinalText, said) {
				t.Errorf("first turn: %s %q", first.Class, first.FinalText)
			}
		}},
		{name: "no partials", faults: "no-partials", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) { text(t, o, said) }},
		{name: "empty ack", faults: "empty-ack", class: endpoint.EmptyAck, ack: endpoint.AckEmpty},
		{name: "no ack", faults: "no-ack", class: endpoint.OK, ack: endpoint.AckNone},
		{name: "split final", faults: "split-final=80ms", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) {
			text(t, o, said)
			if !v.OneFinal && *o.last.TTFFirst >= *o.last.TTF {
				t.Errorf("ttf_first %v is not before ttf %v", *o.last.TTFFirst, *o.last.TTF)
			}
		}},
		{name: "final before force", faults: "final-before-force", class: endpoint.EarlyFinal, check: func(t *testing.T, o outcome) {
			text(t, o, said)
			if *o.last.TTF >= 0 || *o.last.Wait != 0 {
				t.Errorf("ttf %v wait %v, want a negative ttf and no wait", *o.last.TTF, *o.last.Wait)
			}
		}},
		{name: "duplicate final", faults: "duplicate-final", class: endpoint.OK},
		{name: "garbage", faults: "garbage", class: endpoint.OK, check: func(t *testing.T, o outcome) {
			if o.res.DecodeErrors == 0 {
				t.Error("malformed messages were not counted")
			}
		}},
		{name: "unknown type", faults: "unknown-type", class: endpoint.OK, check: func(t *testing.T, o outcome) { text(t, o, said) }},
		{name: "binary garbage", faults: "binary-garbage", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) {
			text(t, o, said)
			if o.res.DecodeErrors == 0 {
				t.Error("binary messages were not counted")
			}
		}},
		{name: "out of order partials", faults: "out-of-order-partials", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) { text(t, o, said) }},
		{name: "unsolicited finals", faults: "unsolicited-final=both", class: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, o outcome) {
			text(t, o, said)
			if o.res.UnsolicitedFinals < 1 || o.res.UnsolicitedFinals > 2 {
				t.Errorf("%d unsolicited finals, want the one before the force and, if the session lasted, the one behind its answer", o.res.UnsolicitedFinals)
			}
		}},
		{name: "silent", faults: "silent", class: endpoint.NoAnswer, ack: endpoint.AckNone},
		{name: "abrupt close", faults: "abrupt-close", class: endpoint.Disconnected},
		{name: "close frame", faults: "close=1011", class: endpoint.Disconnected, check: func(t *testing.T, o outcome) {
			if o.rec.Close.Code != 1011 {
				t.Errorf("close code %d, want 1011", o.rec.Close.Code)
			}
		}},
		{name: "too many requests", faults: "refuse=429", class: endpoint.Rejected, check: reject(record.RejectRate, 429)},
		{name: "payment required", faults: "refuse=402", class: endpoint.Rejected, check: reject(record.RejectQuota, 402)},
		{name: "server error", faults: "refuse=503", class: endpoint.ConnectFailed, check: reject(record.RejectServer, 503)},
		{name: "natural", natural: true, class: endpoint.OK, ack: endpoint.AckNone, check: func(t *testing.T, o outcome) { text(t, o, said) }},
	}
	if v.Dialect.Describe().KeyVar != "" {
		all = append(all, kase{name: "bad key", class: endpoint.Rejected, check: reject(record.RejectAuth, 401), key: "bad-key-5a17"})
	}
	return all
}

// text compares without case and punctuation, which vendors add.
func text(t *testing.T, o outcome, want string) {
	t.Helper()
	if !same(o.last.FinalText, want) {
		t.Errorf("final text %q, want %q", o.last.FinalText, want)
	}
}

func same(got, want string) bool {
	plain := func(s string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz", r) }), " ")
	}
	return plain(got) == plain(want)
}

func reject(reason record.Reject, status int) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		c := o.rec.Close
		if c.Reject != reason || c.Status != status || c.Phase != record.PhaseUpgrade {
			t.Errorf("close %+v, want reason %s with HTTP %d at the upgrade", c, reason, status)
		}
		if strings.Contains(c.Detail, "5a17") {
			t.Errorf("the key is in the error: %s", c.Detail)
		}
	}
}

// serve starts the emulator of a case.
func serve(t *testing.T, v Vendor, c kase) *emulator.Server {
	t.Helper()
	settings := emulator.Settings{Script: script(c.speech()), FinalDelay: emulator.Delay{Base: finalDelay}, TLS: c.tls}
	for _, name := range strings.Fields(c.faults) {
		f, err := emulator.ParseFault(name)
		if err != nil {
			t.Fatal(err)
		}
		settings.Faults = append(settings.Faults, f)
	}
	srv, err := emulator.Start(t.Context(), v.Emulator, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

// prepare makes the session of a case with a server at url.
func prepare(v Vendor, c kase, url string) streamer.Job {
	turns := c.speech()
	d := v.Dialect.Describe()
	cfg := providers.Config{Endpoint: url, Model: v.Model, SampleRate: d.SampleRates[0], Params: v.Params,
		Forced: d.CanForce && !c.natural, Key: providers.NewSecret("good-key-5a17")}
	if c.natural && v.NaturalModel != "" {
		cfg.Model = v.NaturalModel
	}
	if c.key != "" {
		cfg.Key = providers.NewSecret(c.key)
	}
	return streamer.Job{
		Open: record.Open{Item: record.Item{ID: "item"}, Target: record.Target{Forced: cfg.Forced, EveryTurn: len(turns) > 1, Deadline: deadline}},
		PCM:  tone(turns, cfg.SampleRate), Turns: record.Turns{List: turns}, Dialect: v.Dialect, Config: cfg,
		Rand: rand.New(rand.NewPCG(1, 2)), FinishTimeout: time.Second, ConnectTimeout: 3 * time.Second,
	}
}

func stream(t *testing.T, v Vendor, c kase) outcome {
	t.Helper()
	rec, err := streamer.New().Stream(t.Context(), prepare(v, c, serve(t, v, c).URL()))
	if err != nil {
		t.Fatal(err)
	}
	// Tests run on busy machines: our own lateness is not what is tested here.
	res := endpoint.Outcomes(rec, endpoint.Rules{MaxLateness: time.Minute})
	return outcome{rec: rec, res: res, last: res.Turns[len(res.Turns)-1]}
}

// script says the sentence once in each turn, evenly.
func script(turns []record.Turn) *emulator.Script {
	s := &emulator.Script{}
	words := strings.Fields(said)
	for _, t := range turns {
		pace := (t.SE - t.Start) / time.Duration(len(words))
		for i, w := range words {
			s.Words = append(s.Words, emulator.Word{Text: w,
				Start: t.Start + time.Duration(i)*pace, End: t.Start + time.Duration(i+1)*pace})
		}
	}
	return s
}

// tone is a 220 Hz tone from each turn's start to its SE, else silence.
func tone(turns []record.Turn, rate int) []byte {
	last := turns[len(turns)-1]
	length := last.EOS + item.length - item.turns[0].EOS
	pcm := make([]byte, 2*int(length.Seconds()*float64(rate)))
	for _, t := range turns {
		for i := int(t.Start.Seconds() * float64(rate)); i < int(t.SE.Seconds()*float64(rate)); i++ {
			s := int16(8000 * math.Sin(2*math.Pi*220*float64(i)/float64(rate)))
			pcm[2*i], pcm[2*i+1] = byte(s), byte(s>>8)
		}
	}
	return pcm
}

// cancelled stops a session in the middle of its audio.
func cancelled(t *testing.T, v Vendor) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errors.New("interrupted"))
	defer cancel()
	rec, err := streamer.New().Stream(ctx, prepare(v, kase{}, serve(t, v, kase{}).URL()))
	if err != nil {
		t.Fatal(err)
	}
	if got := endpoint.Outcomes(rec, endpoint.Rules{}).Turns[0].Class; got != endpoint.Cancelled || rec.Sent.Chunks == 0 {
		t.Errorf("class %s after %d chunks, want cancelled after some", got, rec.Sent.Chunks)
	}
}

// description checks what the streamer and the catalogue rely on.
func description(t *testing.T, v Vendor) {
	d := v.Dialect.Describe()
	if d.Name == "" || d.Title == "" || d.Version == "" || d.Transport == "" || len(d.SampleRates) == 0 || len(d.Sources) == 0 {
		t.Errorf("name, title, version, transport, sample rates and sources are needed: %+v", d)
	}
	if d.CanForce && d.ForceMessage == "" {
		t.Error("can force, but does not say by which message")
	}
	if d.Chunk.Max > 0 && d.Chunk.Max < d.Chunk.Min {
		t.Errorf("chunk %+v", d.Chunk)
	}
	for _, p := range d.Prices {
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil || p.Source == "" || p.USD < 0 {
			t.Errorf("price without date or source: %+v", p)
		}
	}
	for _, s := range d.Sources {
		switch s.Confidence {
		case "source", "docs", "report", "unsure":
		default:
			t.Errorf("source %q has confidence %q", s.What, s.Confidence)
		}
	}
	if _, err := v.Dialect.Open(providers.Config{Endpoint: "ws://127.0.0.1:1", SampleRate: d.SampleRates[0], Model: v.Model,
		Params: map[string]string{"no-such-parameter": "1"}, Forced: d.CanForce, Key: providers.NewSecret("k")}, rand.New(rand.NewPCG(1, 2))); err == nil {
		t.Error("an unknown parameter is accepted")
	} else if c := (*providers.ConfigError)(nil); !errors.As(err, &c) || c.Provider != d.Name {
		t.Errorf("an unknown parameter gives %v, want a ConfigError", err)
	}
}

// foreign feeds frames that no vendor sends; none may panic or end the session.
func foreign(t *testing.T, v Vendor) {
	d := v.Dialect.Describe()
	s, err := v.Dialect.Open(providers.Config{Endpoint: "ws://127.0.0.1:1", SampleRate: d.SampleRates[0], Model: v.Model,
		Params: v.Params, Forced: d.CanForce, Key: providers.NewSecret("k")}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"", "{", "null", "[]", "[[[[", `"text"`, "12", `{"type":"invented","x":{"y":[1]}}`,
		`{"type":null}`, `{"text":{}}`, "\xff\xfe", strings.Repeat("[", 100_000), `{"type":"` + strings.Repeat("x", 1<<20) + `"}`} {
		for _, op := range []record.Op{record.Text, record.Binary} {
			events, _, _ := s.Decode(time.Unix(0, 0), providers.Frame{Op: op, Data: []byte(in)})
			for _, e := range events {
				if e.Kind == record.Error || e.Kind == record.Done || e.TextBearing() || e.Closes {
					t.Errorf("%s frame %.40q became %+v", op, in, e)
				}
			}
		}
	}
	for _, code := range []int{0, 1000, 1008, 1011, 4999} {
		if _, _, err := s.Decode(time.Unix(0, 0), providers.Frame{Op: record.CloseOp, Code: code, Data: []byte("reason")}); err != nil {
			t.Errorf("close code %d: %v", code, err)
		}
	}
}
