package streamer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is the smallest protocol that can be spoken: binary audio, "force" and
// "finish" as text, and JSON events in the record's own words.
type plain struct {
	ready bool
	steps []providers.Step
	about providers.Description
}

func (p plain) Describe() providers.Description {
	d := p.about
	d.Name, d.CanForce = "plain", true
	return d
}

func (p plain) Open(cfg providers.Config, _ *rand.Rand) (providers.Session, error) {
	return &plainSession{plain: p, url: cfg.Endpoint}, nil
}

type plainSession struct {
	plain
	url string
	at  int
}

func (s *plainSession) Next(now time.Time, resp *providers.Response) (providers.Step, error) {
	if resp != nil && resp.Status >= 300 {
		return providers.Step{}, providers.Reject(resp, "", now)
	}
	if s.at < len(s.steps) {
		s.at++
		return s.steps[s.at-1], nil
	}
	d := &providers.Dial{URL: s.url, AwaitReady: s.ready}
	if s.ready { // a pipe has no buffer: only servers that read get a greeting
		d.Hello = []providers.Frame{providers.TextFrame("hello")}
	}
	return providers.Step{Dial: d}, nil
}

func (s *plainSession) Audio(_ time.Time, pcm []byte, end time.Duration) ([]providers.Frame, error) {
	return []providers.Frame{{Op: record.Binary, Data: pcm, AudioEnd: end}}, nil
}

func (s *plainSession) Turn(_ time.Time, e providers.Edge, _ providers.Span) ([]providers.Frame, error) {
	if e == providers.Start {
		return nil, nil
	}
	return []providers.Frame{providers.TextFrame("force")}, nil
}

func (s *plainSession) KeepAlive(time.Time) []providers.Frame { return nil }

func (s *plainSession) Finish(time.Time) []providers.Frame {
	return []providers.Frame{providers.TextFrame("finish")}
}

func (s *plainSession) Decode(_ time.Time, f providers.Frame) ([]record.Decoded, []providers.Frame, error) {
	if f.Op == record.CloseOp {
		return nil, nil, nil
	}
	var d record.Decoded
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return nil, nil, err
	}
	if d.Cause == "echo" {
		return nil, []providers.Frame{providers.TextFrame("echoed")}, nil
	}
	return []record.Decoded{d}, nil, nil
}

// serve runs a WebSocket server over in-memory pipes, so that it lives inside a
// synctest bubble, and returns a Streamer whose connections lead to it.
func serve(t *testing.T, talk func(*websocket.Conn)) (*Streamer, func()) {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	var wg sync.WaitGroup
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		up := websocket.Upgrader{}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		defer c.Close()
		talk(c)
	})}
	wg.Go(func() { _ = srv.Serve(l) })
	s := New()
	s.DialContext = func(context.Context, string, string) (net.Conn, error) { return l.dial() }
	return s, func() { srv.Close(); wg.Wait() }
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }
func (l *pipeListener) dial() (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.done:
		return nil, errors.New("server is gone")
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func send(c *websocket.Conn, d record.Decoded) { _ = c.WriteJSON(d) }

// answering acknowledges each force with text and closes after finish.
func answering(delay time.Duration) func(*websocket.Conn) {
	return func(c *websocket.Conn) {
		for {
			op, data, err := c.ReadMessage()
			if err != nil {
				return
			}
			switch {
			case op == websocket.TextMessage && string(data) == "force":
				time.Sleep(delay)
				send(c, record.Decoded{Kind: record.Final, Mode: record.Append, Text: "hello", Closes: true})
			case op == websocket.TextMessage && string(data) == "finish":
				_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
				return
			}
		}
	}
}

// job is an item of the given length with one turn that ends 500 ms before it.
func job(length time.Duration) Job {
	turn := record.Turn{Start: 100 * time.Millisecond, SE: length - 500*time.Millisecond, EOS: length - 244*time.Millisecond}
	return Job{
		Open: record.Open{Item: record.Item{ID: "item"}, Target: record.Target{Forced: true, Deadline: 2 * time.Second}},
		PCM:  make([]byte, bytesAt(length, 16000)), Dialect: plain{},
		Config: providers.Config{Endpoint: "ws://pipe/", SampleRate: 16000},
		Turns:  record.Turns{List: []record.Turn{turn}}, Trace: true,
	}
}

func TestAnHourDoesNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received int
		s, stop := serve(t, func(c *websocket.Conn) {
			for {
				op, data, err := c.ReadMessage()
				if err != nil {
					return
				}
				if op == websocket.BinaryMessage {
					received += len(data)
				}
				if string(data) == "force" {
					send(c, record.Decoded{Kind: record.Final, Mode: record.Append, Text: "hello", Closes: true})
				}
				if string(data) == "finish" {
					return
				}
			}
		})
		rec, err := s.Stream(t.Context(), job(time.Hour))
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if rec.Close.How != record.Settled || len(rec.Chunks) < 179_980 {
			t.Fatalf("close %+v after %d chunks", rec.Close, len(rec.Chunks))
		}
		for i, c := range rec.Chunks {
			if want := time.Duration(i+1) * 20 * time.Millisecond; c.Due != want || c.Start != want {
				t.Fatalf("chunk %d due %v started %v, want both %v", i, c.Due, c.Start, want)
			}
		}
		if int64(received) != rec.Sent.Bytes {
			t.Errorf("server got %d bytes, record says %d", received, rec.Sent.Bytes)
		}
	})
}

func TestAnswerIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := serve(t, answering(150*time.Millisecond))
		j := job(3 * time.Second)
		var marks, events int
		j.Observe = func(o Observation) {
			if o.Mark != nil {
				marks++
			}
			if o.Event != nil {
				events++
			}
		}
		rec, err := s.Stream(t.Context(), j)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		o := endpoint.Outcomes(rec, endpoint.Rules{}).Turns[0]
		if o.Class != endpoint.OK || *o.TTF != 150 || *o.ForceDelay != 4 {
			t.Errorf("outcome %s ttf %v force delay %v, want ok, 150 ms, 4 ms", o.Class, *o.TTF, *o.ForceDelay)
		}
		if rec.Close.Phase != record.PhaseFinish || rec.Close.Code != 1000 {
			t.Errorf("close %+v, want a graceful finish with code 1000", rec.Close)
		}
		if marks != 1 || events != 2 {
			t.Errorf("observed %d marks and %d events, want 1 and 2 (final, close frame)", marks, events)
		}
	})
}

// While the server does not read, nothing else of the session may hang: the
// write times out and the record says whose fault it was.
func TestServerThatStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, stop := serve(t, func(c *websocket.Conn) { <-release })
		rec, err := s.Stream(t.Context(), job(3*time.Second))
		close(release)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if rec.Close.How != record.Failed || !strings.Contains(rec.Close.Detail, "did not read") {
			t.Errorf("close %+v", rec.Close)
		}
	})
}

func TestSessionEnds(t *testing.T) {
	type ending struct {
		how    record.How
		phase  record.Phase
		class  endpoint.Class
		detail string
	}
	flood := func(c *websocket.Conn) {
		for c.WriteMessage(websocket.TextMessage, []byte(`{"kind":"partial"}`)) == nil {
		}
	}
	cases := []struct {
		name string
		talk func(*websocket.Conn)
		edit func(*Job)
		want ending
	}{
		{"server closes with a code", func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "NET-0001"))
		}, nil, ending{record.Remote, record.PhaseStream, endpoint.Disconnected, "NET-0001"}},
		{"server vanishes", func(c *websocket.Conn) {}, nil,
			ending{record.Remote, record.PhaseStream, endpoint.Disconnected, "without a close frame"}},
		{"server says done too early", func(c *websocket.Conn) {
			send(c, record.Decoded{Kind: record.Done})
			_, _, _ = c.ReadMessage()
		}, nil, ending{record.Remote, record.PhaseStream, endpoint.Disconnected, "provider ended the stream"}},
		{"provider reports an error", func(c *websocket.Conn) {
			send(c, record.Decoded{Kind: record.Error, Cause: "model_down", Text: "try later"})
			_, _, _ = c.ReadMessage()
		}, nil, ending{record.Failed, record.PhaseStream, endpoint.Disconnected, "model_down: try later"}},
		{"provider rejects in band", func(c *websocket.Conn) {
			send(c, record.Decoded{Kind: record.Error, Cause: "insufficient_quota", Reject: record.RejectQuota})
			_, _, _ = c.ReadMessage()
		}, nil, ending{record.Failed, record.PhaseStream, endpoint.Rejected, "insufficient_quota"}},
		{"provider is never ready", func(c *websocket.Conn) {
			for {
				if _, _, err := c.ReadMessage(); err != nil {
					return
				}
			}
		}, func(j *Job) { j.Dialect = plain{ready: true} },
			ending{record.Failed, record.PhaseReady, endpoint.ConnectFailed, "no ready event within 10s"}},
		{"no answer", func(c *websocket.Conn) {
			for {
				if _, data, err := c.ReadMessage(); err != nil || string(data) == "finish" {
					return
				}
			}
		}, nil, ending{record.Settled, record.PhaseFinish, endpoint.NoAnswer, ""}},
		{"no end after finish", func(c *websocket.Conn) {
			for {
				if _, _, err := c.ReadMessage(); err != nil {
					return
				}
			}
		}, nil, ending{record.Settled, record.PhaseFinish, endpoint.NoAnswer, "no end from the provider within 3s"}},
		{"message beyond the limit", func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.TextMessage, make([]byte, maxMessage+1))
			_, _, _ = c.ReadMessage()
		}, nil, ending{record.Failed, record.PhaseStream, endpoint.Disconnected, "read limit exceeded"}},
		{"flood", flood, nil, ending{record.Failed, record.PhaseStream, endpoint.Disconnected, "more than 200000 messages"}},
		{"malformed messages change nothing", func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.TextMessage, []byte("{"))
			answering(0)(c)
		}, nil, ending{record.Settled, record.PhaseFinish, endpoint.OK, ""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, stop := serve(t, c.talk)
				j := job(3 * time.Second)
				if c.edit != nil {
					c.edit(&j)
				}
				rec, err := s.Stream(t.Context(), j)
				stop()
				if err != nil {
					t.Fatal(err)
				}
				got := endpoint.Outcomes(rec, endpoint.Rules{}).Turns[0].Class
				if rec.Close.How != c.want.how || rec.Close.Phase != c.want.phase || got != c.want.class || !strings.Contains(rec.Close.Detail, c.want.detail) {
					t.Errorf("close %+v class %s, want %+v", rec.Close, got, c.want)
				}
			})
		})
	}
}

func TestCancelKeepsWhatWasMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := serve(t, answering(0))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("interrupted"))
		defer cancel()
		rec, err := s.Stream(ctx, job(3*time.Second))
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if rec.Close.How != record.Cancelled || rec.Close.Detail != "interrupted" || rec.Sent.Chunks < 48 {
			t.Errorf("close %+v after %d chunks", rec.Close, rec.Sent.Chunks)
		}
	})
}

func TestKeyIsTakenOutOfWhatProvidersSay(t *testing.T) {
	const key = "sk-0123456789abcdef"
	synctest.Test(t, func(t *testing.T) {
		s, stop := serve(t, func(c *websocket.Conn) {
			send(c, record.Decoded{Kind: record.Warning, Text: "your key " + key + " is old"})
			_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1008, "bad key "+key))
		})
		j := job(time.Second)
		j.Config.Key = providers.NewSecret(key)
		rec, err := s.Stream(t.Context(), j)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := record.Write(&b, rec); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), key) || strings.Count(b.String(), redacted) < 3 {
			t.Errorf("want the key replaced in raw frame, event and close:\n%s", b.String())
		}
	})
}

func TestRepliesAreSentInTheWritersOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var texts []string
		s, stop := serve(t, func(c *websocket.Conn) {
			for {
				op, data, err := c.ReadMessage()
				if err != nil {
					return
				}
				if op != websocket.TextMessage {
					continue
				}
				texts = append(texts, string(data))
				switch string(data) {
				case "hello":
					send(c, record.Decoded{Cause: "echo"})
				case "echoed":
					send(c, record.Decoded{Kind: record.Ready})
				case "force":
					send(c, record.Decoded{Kind: record.Final, Mode: record.Append, Text: "x", Closes: true})
				case "finish":
					return
				}
			}
		})
		j := job(time.Second)
		j.Dialect = plain{ready: true}
		rec, err := s.Stream(t.Context(), j)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(texts, " "); got != "hello echoed force finish" {
			t.Errorf("server got %q", got)
		}
		if first := rec.Events[0].User; first > 0 {
			t.Errorf("what came before t0 has stamp %v, want at most 0", first)
		}
	})
}

func TestConnectingSteps(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "t0ken") })
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, `{"err_msg":"slow down"}`, http.StatusTooManyRequests)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			defer c.Close()
			answering(0)(c)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: mux}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	host := l.Addr().String()
	post := providers.Step{Request: &providers.Request{Method: "POST", URL: "http://" + host + "/token"}}

	s := New()
	j := job(700 * time.Millisecond)
	j.Dialect, j.Config.Endpoint = plain{steps: []providers.Step{post}}, "ws://"+host+"/"
	rec, err := s.Stream(t.Context(), j)
	if err != nil || rec.Close.How != record.Settled {
		t.Fatalf("close %+v, err %v", rec.Close, err)
	}
	c := rec.Connect
	if c.Prepare <= 0 || c.TCP <= 0 || c.Upgrade <= 0 || c.TLS != 0 || c.Start >= 0 || c.Address != host || c.Warm {
		t.Errorf("phases %+v", c)
	}
	if rec.Open.T0Mono == 0 || rec.Open.T0Wall.IsZero() {
		t.Errorf("t0 is not recorded: %+v", rec.Open)
	}
	if rec, _ = s.Stream(t.Context(), j); !rec.Connect.Warm {
		t.Error("the second connection to an address is warm")
	}

	j.Config.Endpoint = "ws://" + host + "/refuse"
	rec, err = s.Stream(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Close{At: rec.Close.At, How: record.Failed, Phase: record.PhaseUpgrade, Reject: record.RejectRate,
		Status: 429, Detail: "slow down", RetryAfter: 7 * time.Second}
	if rec.Close != want {
		t.Errorf("close %+v, want %+v", rec.Close, want)
	}

	srv.Close()
	j.Dialect = plain{}
	rec, err = s.Stream(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Close.Phase != record.PhaseTCP || rec.Close.How != record.Failed {
		t.Errorf("nobody listens: close %+v, want a failure in phase tcp", rec.Close)
	}
}

func TestJobsThatCannotBeMeasured(t *testing.T) {
	cases := []struct {
		name string
		edit func(*Job)
		want string
	}{
		{"no audio", func(j *Job) { j.PCM = nil }, "plain: item item: 0 bytes are no 16 bit audio"},
		{"odd bytes", func(j *Job) { j.PCM = j.PCM[:3] }, "plain: item item: 3 bytes are no 16 bit audio"},
		{"no rate", func(j *Job) { j.Config.SampleRate = 0 }, "plain: sample rate 0 Hz"},
		{"chunk too long", func(j *Job) { j.Open.Target.Chunk = time.Minute }, "plain: chunk of 1m0s: want 1 ms to 10 s"},
		{"too long for one stream", func(j *Job) { j.Dialect = plain{about: providers.Description{MaxStream: time.Second}} },
			"plain: item item lasts longer than the 1s that one stream may take; split it"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := job(time.Second)
			c.edit(&j)
			if _, err := New().Stream(t.Context(), j); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestRawIsCutAtARune(t *testing.T) {
	var e record.Event
	e.Op = record.Text
	setRaw(&e, []byte(strings.Repeat("é", maxRaw)))
	if len(e.Raw) == 0 || len(e.Raw) > maxRaw || strings.ContainsRune(e.Raw, '\uFFFD') || e.RawBase64 != nil {
		t.Errorf("raw of %d bytes, base64 of %d", len(e.Raw), len(e.RawBase64))
	}
}

// rawServer answers each TCP connection by hand.
func rawServer(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); answer(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "ws://" + l.Addr().String() + "/"
}

func TestEndlessHandshake(t *testing.T) {
	j := job(time.Second)
	j.Config.Endpoint = rawServer(t, func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n"))
		line := []byte("X-Filler: " + strings.Repeat("x", 4000) + "\r\n")
		for {
			if _, err := c.Write(line); err != nil {
				return
			}
		}
	})
	rec, err := New().Stream(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Close.Phase != record.PhaseUpgrade || !strings.Contains(rec.Close.Detail, "larger than 1 MiB") {
		t.Errorf("close %+v", rec.Close)
	}
}

func TestCancelDuringHandshake(t *testing.T) {
	asked := make(chan struct{})
	j := job(time.Second)
	j.Config.Endpoint = rawServer(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		close(asked)
		_, _ = c.Read(make([]byte, 1)) // until the client leaves
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(errors.New("interrupted")) }()
	start := time.Now()
	rec, err := New().Stream(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Close.How != record.Cancelled || time.Since(start) > 5*time.Second {
		t.Errorf("close %+v after %v; the connect timeout is 10 s", rec.Close, time.Since(start))
	}
}

func TestRecordsStayReadable(t *testing.T) {
	words := make([]record.Word, 100_000)
	got := capped([]record.Decoded{{Kind: record.Final, Text: strings.Repeat("é", maxText), Words: words}})
	if len(got[0].Words) != maxWords || len(got[0].Text) > maxText || len(got[0].Text) < maxText-4 {
		t.Errorf("%d words, %d bytes of text", len(got[0].Words), len(got[0].Text))
	}
}
