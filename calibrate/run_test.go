//go:build linux

package calibrate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench starts an emulator and an echo, and returns how to stop the emulator and
// get its truth.
func bench(t *testing.T, p Plan, set emulator.Settings) (Bench, func() []emulator.Truth) {
	t.Helper()
	var truth bytes.Buffer
	var err error
	if set.Script, err = emulator.ReadScript(bytes.NewReader(p.Script())); err != nil {
		t.Fatal(err)
	}
	if set.FinalDelay, err = emulator.ParseDelay(FinalDelay); err != nil {
		t.Fatal(err)
	}
	set.Truth = &truth
	srv, err := emulator.Start(context.Background(), deepgram.Emulator{}, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	b := Bench{Emulator: srv.URL(), Echo: startEcho(t)}
	if set.TLS {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(srv.CertPEM())
		b.TLS = &tls.Config{RootCAs: pool}
	}
	return b, func() []emulator.Truth {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		forces, err := ReadForces(&truth)
		if err != nil {
			t.Error(err)
		}
		return forces
	}
}

func startEcho(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Echo(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// Everything in one process and perhaps on a busy machine: that all is joined is
// what counts.
func TestRun(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			p := Plan{Streams: 2, Duration: 2 * time.Second}
			b, truth := bench(t, p, emulator.Settings{TLS: secure})
			run, err := b.Run(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			r := Evaluate(run, truth())
			if r.Unmatched > 0 || r.Answers+r.ClientInvalid < 60 || r.Sessions != 2 || r.TLS != secure || r.Stamps != "kernel" {
				t.Errorf("unmatched %d, answers %d, client_invalid %d, sessions %d, tls %v, stamps %s",
					r.Unmatched, r.Answers, r.ClientInvalid, r.Sessions, r.TLS, r.Stamps)
			}
			if r.Answers > 0 && r.TTFError.P50 > 10_000 {
				t.Errorf("ttf error p50 %v µs: answers of other forces were compared", r.TTFError.P50)
			}
			if len(run.Floor) < 10 || r.Floor.P50 <= 0 || r.Floor.P50 > 50_000 || r.CPUPercentPerStream <= 0 {
				t.Errorf("%d bare exchanges of %v, cpu %v", len(run.Floor), r.Floor, r.CPUPercentPerStream)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	p := Plan{Streams: 3, Duration: time.Second}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx   context.Context
		plan  Plan
		fault emulator.Fault
		want  string
	}{
		"bad plan":    {t.Context(), Plan{}, emulator.Fault{}, "0 streams: want 1 to 1000"},
		"no stream":   {t.Context(), p, emulator.Fault{Name: "refuse", Arg: "503"}, " of 3: failed in phase upgrade: "},
		"stream lost": {t.Context(), p, emulator.Fault{Name: "abrupt-close", Arg: "200ms"}, " of 3: remote in phase stream: "},
		"interrupted": {cancelled, p, emulator.Fault{}, context.Canceled.Error()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set := emulator.Settings{}
			if tt.fault.Name != "" {
				set.Faults = []emulator.Fault{tt.fault}
			}
			b, _ := bench(t, p, set)
			if _, err := b.Run(tt.ctx, tt.plan); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestEchoGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
		}
		l.Close()
	}()
	bare, err := dialBare(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer bare.close()
	if _, _, err := bare.exchange(t.Context(), time.Minute); err == nil {
		t.Error("no error from an echo that is gone")
	}
}
