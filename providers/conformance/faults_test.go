package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sttbench/endpoint"
	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
	"sttbench/providers/openai"
	"sttbench/record"
	"sttbench/streamer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brief is a turn of 0.6 s, so that many sessions fit into a test.
var brief = []record.Turn{{SE: 600 * time.Millisecond, EOS: 856 * time.Millisecond}}

const (
	// Of the sessions below. A fault that hangs one of them beyond all its own
	// deadlines is found by the last: the session is then cancelled.
	briefConnect  = 700 * time.Millisecond
	briefDeadline = time.Second
	briefFinish   = 300 * time.Millisecond
	briefGuard    = 18 * time.Second
)

// faulty is a session against a server with faults, or with none to be found at
// all, and what must be in its record.
type faulty struct {
	name   string // the faults where empty
	faults string
	tls    bool
	vendor *Vendor // nil: deepgramBrief
	client func(*client)
	want   verdict
	check  func(*testing.T, outcome)
}

// client is our side of a session, for the faults that lie there.
type client struct {
	streamer *streamer.Streamer
	job      *streamer.Job
	rules    *endpoint.Rules
}

// verdict is how a turn and its session ended.
type verdict struct {
	class  endpoint.Class
	ack    endpoint.Ack
	how    record.How
	phase  record.Phase
	reject record.Reject
	status int
	code   int
}

// deepgramBrief has a partial in the middle of brief, and finals that may come in
// several parts: no dialect has more to lose by a fault.
// It does not close by itself while it hears nothing.
var deepgramBrief = Vendor{Dialect: deepgram.Dialect{}, Emulator: deepgram.Emulator{Interim: 100 * time.Millisecond, Idle: time.Minute}}

var openaiBrief = Vendor{Dialect: openai.Dialect{}, Emulator: openai.Emulator{}}

// The usual verdicts.
var (
	answered = verdict{class: endpoint.OK, ack: endpoint.AckText, how: record.Settled, phase: record.PhaseFinish}
	// The peer is there no more: neither answer nor end.
	unanswered = verdict{class: endpoint.NoAnswer, ack: endpoint.AckNone, how: record.Settled, phase: record.PhaseFinish}
	broken     = verdict{class: endpoint.Disconnected, ack: endpoint.AckNone, how: record.Remote, phase: record.PhaseStream}
)

func but(v verdict, change func(*verdict)) verdict { change(&v); return v }

func closedWith(code int) verdict {
	return but(broken, func(v *verdict) { v.code = code })
}

func refused(status int, class endpoint.Class, reason record.Reject) verdict {
	return verdict{class: class, ack: endpoint.AckNone, how: record.Failed, phase: record.PhaseUpgrade, reject: reason, status: status}
}

func unreached(phase record.Phase) verdict {
	return verdict{class: endpoint.ConnectFailed, ack: endpoint.AckNone, how: record.Failed, phase: phase}
}

// everyFault says what each fault comes to.
var everyFault = []faulty{
	// The force waits behind audio that nobody reads: the deadline passes all the same.
	{name: "never-read and a force that cannot leave", faults: "never-read", client: tightSocket,
		want: unanswered},

	{name: "none", want: answered, check: saysAll},

	// Text.
	{faults: "no-partials", want: answered, check: saysAll},
	{faults: "out-of-order-partials", want: answered, check: func(t *testing.T, o outcome) {
		saysAll(t, o)
		if o.res.Rewritten == 0 {
			t.Error("no flicker was counted")
		}
	}},
	{faults: "no-ack", want: but(answered, func(v *verdict) { v.ack = endpoint.AckNone }), check: saysAll},
	{faults: "empty-ack", want: but(answered, func(v *verdict) { v.class, v.ack = endpoint.EmptyAck, endpoint.AckEmpty })},
	{faults: "split-final=50ms", want: answered, check: saysAll},
	{faults: "final-before-force", want: but(answered, func(v *verdict) { v.class, v.ack = endpoint.EarlyFinal, endpoint.AckEmpty }), check: saysAll},
	{faults: "unsolicited-final=before", want: answered, check: unsolicited(1, said)},
	{faults: "unsolicited-final", want: answered, check: unsolicited(1, said+" thank you")},
	{faults: "unsolicited-final=both", want: answered, check: unsolicited(2, said+" thank you")},
	{faults: "duplicate-final", want: answered, check: func(t *testing.T, o outcome) {
		saysAll(t, o)
		if o.res.UnsolicitedAcks != 1 {
			t.Errorf("%d unsolicited acknowledgements", o.res.UnsolicitedAcks)
		}
	}},
	{faults: "revised-final", vendor: &openaiBrief, want: but(answered, func(v *verdict) { v.code = 1000 }), check: func(t *testing.T, o outcome) {
		if o.res.Revised != 1 || !same(o.last.FinalText, "turn the lights banana") || !same(o.res.SettledText, said) {
			t.Errorf("revised %d, final text %q, settled %q", o.res.Revised, o.last.FinalText, o.res.SettledText)
		}
	}},

	// Messages that mean nothing.
	{faults: "garbage=1", want: answered, check: undecodable},
	{faults: "binary-garbage=1", want: answered, check: undecodable},
	{faults: "unknown-type=1", want: answered, check: func(t *testing.T, o outcome) {
		saysAll(t, o)
		if o.res.DecodeErrors != 0 {
			t.Errorf("%d decode errors: an unknown type is none", o.res.DecodeErrors)
		}
	}},
	{faults: "huge-message=4", want: answered, check: func(t *testing.T, o outcome) {
		saysAll(t, o)
		for _, e := range o.rec.Events {
			if len(e.Raw) > 64<<10 {
				t.Errorf("%d bytes of a message are in the record", len(e.Raw))
			}
		}
	}},
	{faults: "garbage=2 binary-garbage=3 unknown-type=2 out-of-order-partials unsolicited-final=both duplicate-final",
		want: answered, check: saysAll},

	// Silence.
	{faults: "silent", want: but(unanswered, func(v *verdict) { v.code = 1000 })},
	{name: "silent before ready", faults: "silent", vendor: &openaiBrief, want: unreached(record.PhaseReady)},
	{faults: "half-open", want: unanswered},
	{faults: "half-open=200ms", want: unanswered},
	{name: "half-open=100ms while a stall is 300ms", faults: "half-open=100ms",
		client: func(c *client) { c.rules.Stall = 300 * time.Millisecond }, want: but(unanswered, func(v *verdict) { v.class = endpoint.Stalled })},

	// Reading.
	{faults: "slow-read=1000000", want: answered, check: saysAll},
	{faults: "slow-read=8000", want: unanswered},
	{faults: "never-read", want: unanswered},

	// Ends.
	{faults: "close=1000", want: closedWith(1000)},
	{faults: "close=1008", want: closedWith(1008)},
	{faults: "close=1011", want: closedWith(1011)},
	{faults: "close=4008", want: closedWith(4008)},
	{faults: "close=1011:200ms", want: closedWith(1011)},
	{faults: "abrupt-close", want: broken},
	{faults: "abrupt-close=200ms", want: broken},
	{faults: "reset", want: broken},
	{faults: "reset=200ms", want: broken},
	{name: "reset over TLS", faults: "reset", tls: true, client: trusting, want: broken},
	{faults: "huge-message", client: patient, want: but(broken, func(v *verdict) { v.how = record.Failed }), check: detail("limit")},

	// Handshakes.
	{faults: "refuse=400", want: refused(400, endpoint.Rejected, record.RejectBadRequest)},
	{faults: "refuse=401", want: refused(401, endpoint.Rejected, record.RejectAuth)},
	{faults: "refuse=402", want: refused(402, endpoint.Rejected, record.RejectQuota)},
	{faults: "refuse=403", want: refused(403, endpoint.Rejected, record.RejectAuth)},
	{faults: "refuse=429", want: refused(429, endpoint.Rejected, record.RejectRate), check: retry(0)},
	{faults: "refuse=429:7s", want: refused(429, endpoint.Rejected, record.RejectRate), check: retry(7 * time.Second)},
	{faults: "refuse=500", want: refused(500, endpoint.ConnectFailed, record.RejectServer)},
	{faults: "refuse=503:2s", want: refused(503, endpoint.ConnectFailed, record.RejectServer), check: retry(2 * time.Second)},
	{faults: "hang-handshake", want: unreached(record.PhaseUpgrade)},
	{name: "TLS", tls: true, client: trusting, want: answered, check: func(t *testing.T, o outcome) {
		saysAll(t, o)
		if o.rec.Connect.TLS <= 0 {
			t.Error("the TLS handshake took no time")
		}
	}},
	{name: "TLS that we do not trust", tls: true, want: unreached(record.PhaseTLS), check: detail("certificate")},
	{faults: "plain-tls", tls: true, client: trusting, want: unreached(record.PhaseTLS), check: detail("TLS")},
	{name: "nobody listens", client: func(c *client) { c.job.Config.Endpoint = "ws://127.0.0.1:1" }, want: unreached(record.PhaseTCP)},
	{name: "no such host", client: noDNS, want: unreached(record.PhaseDNS), check: detail("no-such-host.invalid")},
	{name: "a resolver that hangs", client: slowDNS, want: unreached(record.PhaseDNS)},
}

// Each fault comes to exactly one class, in time, and leaves nothing behind.
func TestEveryFault(t *testing.T) {
	tested := make(map[string]bool)
	for _, f := range everyFault {
		for _, name := range strings.Fields(f.faults) {
			name, _, _ = strings.Cut(name, "=")
			tested[name] = true
		}
		name := f.name
		if name == "" {
			name = f.faults
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := f.session(t)
			got := verdict{class: o.last.Class, ack: o.last.Ack, how: o.rec.Close.How, phase: o.rec.Close.Phase,
				reject: o.rec.Close.Reject, status: o.rec.Close.Status, code: o.rec.Close.Code}
			if diff := cmp.Diff(f.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("(-want +got)\n%s%s: %s", diff, o.rec.Close.Detail, o.last.Reason)
			}
			if got.class != endpoint.OK && got.class != endpoint.EarlyFinal && got.class != endpoint.EmptyAck && o.rec.Close.Detail == "" &&
				got.code == 0 {
				t.Error("the record does not say why")
			}
			if f.check != nil {
				f.check(t, o)
			}
		})
	}
	for _, d := range emulator.FaultDocs() {
		if !tested[d.Name] {
			t.Errorf("fault %s has no row", d.Name)
		}
	}
}

// session runs one row; a session or server that does not end fails the test.
func (f *faulty) session(t *testing.T) outcome {
	t.Helper()
	v := &deepgramBrief
	if f.vendor != nil {
		v = f.vendor
	}
	c := kase{faults: f.faults, tls: f.tls, turns: brief}
	srv := serve(t, *v, c)
	job := prepare(*v, c, srv.URL())
	job.PCM = job.PCM[:len(job.PCM)*2/3] // to soon after EOS
	job.Open.Target.Deadline, job.ConnectTimeout, job.FinishTimeout = briefDeadline, briefConnect, briefFinish
	rules := endpoint.Rules{MaxLateness: time.Minute} // tests run on busy machines
	s := streamer.New()
	if f.client != nil {
		f.client(&client{s, &job, &rules})
	}
	if s.TLS != nil {
		s.TLS.RootCAs.AppendCertsFromPEM(srv.CertPEM())
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), briefGuard, errors.New("the session hangs"))
	defer cancel()
	rec, err := s.Stream(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- srv.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(briefGuard):
		t.Fatal("the server hangs")
	}
	res := endpoint.Outcomes(rec, rules)
	if len(res.Turns) != 1 {
		t.Fatalf("%d outcomes of one turn", len(res.Turns))
	}
	return outcome{rec: rec, res: res, last: res.Turns[0]}
}

// trusting makes the client trust the server's certificate.
func trusting(c *client) { c.streamer.TLS = &tls.Config{RootCAs: x509.NewCertPool()} }

// patient has time to receive 8 MiB on a busy machine.
func patient(c *client) { c.job.Open.Target.Deadline = briefGuard / 2 }

// tightSocket leaves the kernel little room for what the peer does not read, and
// sends more of it: the forced endpoint does not leave this process.
func tightSocket(c *client) {
	const rate = 48000
	c.job.Config.SampleRate, c.job.PCM = rate, tone(brief, rate)
	dial := c.streamer.DialContext
	c.streamer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetWriteBuffer(4 << 10)
		}
		return conn, err
	}
}

// noDNS asks for a name that cannot exist. The resolver is told so without a
// question leaving the machine.
func noDNS(c *client) {
	resolve(c, func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no name server") })
}

// slowDNS is a name server that never answers.
func slowDNS(c *client) {
	resolve(c, func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

func resolve(c *client, dial func(context.Context, string, string) (net.Conn, error)) {
	c.job.Config.Endpoint = "ws://no-such-host.invalid"
	c.streamer.DialContext = (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: dial}}).DialContext
}

func saysAll(t *testing.T, o outcome) { t.Helper(); text(t, o, said) }

func undecodable(t *testing.T, o outcome) {
	t.Helper()
	saysAll(t, o)
	if o.res.DecodeErrors == 0 {
		t.Error("no decode error was counted")
	}
}

func unsolicited(finals int, settled string) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		saysAll(t, o)
		if o.res.UnsolicitedFinals != finals || !same(o.res.SettledText, settled) {
			t.Errorf("%d unsolicited finals, settled %q; want %d, %q", o.res.UnsolicitedFinals, o.res.SettledText, finals, settled)
		}
	}
}

func retry(after time.Duration) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		if got := o.rec.Close.RetryAfter; got != after {
			t.Errorf("retry after %v, want %v", got, after)
		}
	}
}

func detail(part string) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		if !strings.Contains(o.rec.Close.Detail, part) {
			t.Errorf("detail %q does not tell of %q", o.rec.Close.Detail, part)
		}
	}
}

// What a message of 1 GiB costs is bounded by the streamer's limit of 8 MiB a
// message, not by its size.
func TestHugeMessageIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := faulty{faults: "huge-message=1024", client: patient}
	o := f.session(t)
	runtime.ReadMemStats(&after)
	if o.last.Class != endpoint.Disconnected {
		t.Errorf("class %s", o.last.Class)
	}
	// The message's buffer grows by steps up to 8 MiB; all steps together count.
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d MiB were allocated", got>>20)
	} else {
		t.Logf("%.1f MiB were allocated", float64(got)/(1<<20))
	}
}
