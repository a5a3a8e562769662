package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/endpoint"
	"sttbench/providers/catalogue"
	"sttbench/providers/emulator"
	"sttbench/record"
)

// secret is the API key of all tests; nothing printed or kept may hold it.
const secret = "sk-5ecret-key-of-the-tests"

// speech is a recording of "ten of clubs" with one turn that ends after 1 s.
var speech = filepath.Join(speechDir, "001.wav")

// ten is a script that fits it.
const ten = `{"words": [{"w": "ten", "start_s": 0.1, "end_s": 0.4}, {"w": "of", "end_s": 0.55}, {"w": "clubs", "end_s": 0.95}]}`

// probed is what a probe said and did.
type probed struct {
	code           int
	stdout, stderr string
	result         probeResult
	record         *record.Session // nil where none was kept
}

// probe runs the command with --json and --record. Tests run on busy machines, so
// that no lateness spoils a turn. It fails the test if the key shows up anywhere.
func probe(t *testing.T, key string, args ...string) probed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	args = append([]string{"probe", "--json", "--record", file, "--trace", "--max-lateness", "1m", "--audio", speech}, args...)
	var stdout, stderr bytes.Buffer
	a := newApp(nil, &stdout, &stderr)
	a.env = func(string) string { return key }
	p := probed{code: a.run(t.Context(), args), stdout: stdout.String(), stderr: stderr.String()}
	kept, err := os.ReadFile(file)
	if err == nil {
		if p.record, err = record.Read(bytes.NewReader(kept)); err != nil {
			t.Error(err)
		}
	}
	for name, text := range map[string]string{"stdout": p.stdout, "stderr": p.stderr, "record": string(kept)} {
		if strings.Contains(text, key[len(key)-6:]) { // the end has no characters that are escaped
			t.Errorf("%s holds the key: %s", name, text)
		}
	}
	if p.stdout != "" {
		dec := json.NewDecoder(strings.NewReader(p.stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p.result); err != nil {
			t.Errorf("%v in %s", err, p.stdout)
		}
	}
	return p
}

// play starts an emulator and returns its URL.
func play(t *testing.T, provider string, s emulator.Settings) string {
	t.Helper()
	entry, err := catalogue.Lookup(provider)
	if err != nil {
		t.Fatal(err)
	}
	if s.Script == nil {
		if s.Script, err = emulator.ReadScript(strings.NewReader(ten)); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := emulator.Start(context.Background(), entry.Emulator, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL()
}

func TestProbeOutcomes(t *testing.T) {
	needSpeech(t)
	const delay = 100 * time.Millisecond
	for _, tt := range []struct {
		name      string
		providers string // blank-separated
		faults    string // blank-separated
		flags     string
		want      endpoint.Class
		ack       endpoint.Ack
		code      int
		wer       float64 // -1: null
		check     func(t *testing.T, p probed)
	}{
		{name: "ok", providers: "deepgram openai vosk", want: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, p probed) {
			if ttf := *p.result.TTF; ttf < 10 || ttf > 1000 {
				t.Errorf("ttf %v ms, want about 100", ttf)
			}
			if sum := *p.result.Hangover + *p.result.ForceDelay + *p.result.TTF; !near(sum, *p.result.TTFFromSE) {
				t.Errorf("hangover + force delay + ttf = %v, want ttf_from_se %v", sum, *p.result.TTFFromSE)
			}
			if *p.result.Final != "ten of clubs" || *p.result.PartialWER != 0 || *p.result.TailWER != 0 {
				t.Errorf("final %q, partial wer %v, tail wer %v", *p.result.Final, *p.result.PartialWER, *p.result.TailWER)
			}
		}},
		{name: "no partials", providers: "deepgram vosk", faults: "no-partials", want: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, p probed) {
			if *p.result.TTFP != *p.result.TTFFirst {
				t.Errorf("first text after %v ms, want that of the first final, %v ms", *p.result.TTFP, *p.result.TTFFirst)
			}
		}},
		{name: "split finals", providers: "deepgram", faults: "split-final=200ms", want: endpoint.OK, ack: endpoint.AckText, check: func(t *testing.T, p probed) {
			if gap := *p.result.TTF - *p.result.TTFFirst; gap < 20 {
				t.Errorf("finals %v ms apart, want 200", gap)
			}
			if first := p.result.Turns[0].FirstFinalText; first != "ten" {
				t.Errorf("first final %q, want ten", first)
			}
		}},
		{name: "split finals", providers: "openai vosk", faults: "split-final=200ms", want: endpoint.OK, ack: endpoint.AckText},
		{name: "early final", providers: "deepgram openai vosk", faults: "final-before-force", want: endpoint.EarlyFinal, ack: endpoint.AckEmpty, check: func(t *testing.T, p probed) {
			if *p.result.TTF >= 0 {
				t.Errorf("ttf %v ms, want a negative one", *p.result.TTF)
			}
		}},
		{name: "empty ack", providers: "deepgram openai", faults: "empty-ack no-partials", want: endpoint.EmptyAck, ack: endpoint.AckEmpty, code: exitFailed, wer: 1},
		{name: "tail lost", providers: "vosk", faults: "empty-ack", want: endpoint.TailLost, ack: endpoint.AckEmpty, code: exitFailed},
		{name: "no ack", providers: "deepgram", faults: "no-ack", flags: "--deadline 600ms", want: endpoint.OK, ack: endpoint.AckNone},
		{name: "no ack", providers: "openai", faults: "no-ack no-partials", flags: "--deadline 600ms", want: endpoint.NoAnswer, ack: endpoint.AckNone, code: exitFailed, wer: 0},
		{name: "silent", providers: "deepgram vosk", faults: "silent", flags: "--deadline 600ms", want: endpoint.NoAnswer, ack: endpoint.AckNone, code: exitFailed, wer: 1},
		{name: "abrupt close", providers: "deepgram openai vosk", faults: "abrupt-close", want: endpoint.Disconnected, ack: endpoint.AckNone, code: exitFailed},
		{name: "refused key", providers: "deepgram openai vosk", faults: "refuse=401", want: endpoint.Rejected, ack: endpoint.AckNone, code: exitFailed, wer: -1, check: func(t *testing.T, p probed) {
			if p.result.Lateness != nil || p.result.Final != nil || p.result.TTF != nil {
				t.Errorf("lateness, text or ttf of a session that never was: %s", p.stdout)
			}
			if !strings.HasPrefix(p.stderr, "sttbench: "+p.result.Provider+": rejected: auth: ") {
				t.Errorf("stderr %q", p.stderr)
			}
		}},
		{name: "server error", providers: "deepgram openai vosk", faults: "refuse=503", want: endpoint.ConnectFailed, ack: endpoint.AckNone, code: exitFailed, wer: -1},
		{name: "natural", providers: "deepgram", flags: "--force off --param endpointing=600", want: endpoint.OK, ack: endpoint.AckNone},
		{name: "natural", providers: "vosk", flags: "--force off", want: endpoint.OK, ack: endpoint.AckNone},
	} {
		for name := range strings.FieldsSeq(tt.providers) {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				url := play(t, name, emulator.Settings{FinalDelay: emulator.Delay{Base: delay}, Faults: faults(t, tt.faults)})
				args := append([]string{name, "--endpoint", url, "--reference", "Ten of clubs."}, strings.Fields(tt.flags)...)
				p := probe(t, secret, args...)
				if p.code != tt.code || p.result.Outcome != tt.want || p.result.Ack != tt.ack {
					t.Fatalf("exit code %d, outcome %s, ack %s, want %d, %s, %s\n%s%s", p.code, p.result.Outcome, p.result.Ack,
						tt.code, tt.want, tt.ack, p.stdout, p.stderr)
				}
				got := -1.0
				if p.result.WER != nil {
					got = *p.result.WER
				}
				if got != tt.wer {
					t.Errorf("wer %v, want %v\n%s", got, tt.wer, p.stdout)
				}
				if (p.code == exitOK) != (p.stderr == "") {
					t.Errorf("exit code %d, but stderr %q", p.code, p.stderr)
				}
				if p.record == nil {
					t.Fatal("no record")
				}
				again := endpoint.Outcomes(p.record, endpoint.Rules{MaxLateness: time.Minute})
				if diff := cmp.Diff(again.Turns, p.result.Turns); diff != "" {
					t.Errorf("the record gives other outcomes (-record +printed):\n%s", diff)
				}
				if tt.check != nil {
					tt.check(t, p)
				}
			})
		}
	}
}

func near(a, b endpoint.Millis) bool { return a-b < 0.01 && b-a < 0.01 }

func faults(t *testing.T, list string) []emulator.Fault {
	t.Helper()
	var all []emulator.Fault
	for text := range strings.FieldsSeq(list) {
		f, err := emulator.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// TestProbeEchoedKey checks that a server which repeats the key, as proxies do
// in their error pages, does not get it printed or kept.
func TestProbeEchoedKey(t *testing.T) {
	needSpeech(t)
	for _, key := range []string{secret, `quo"ted\key<&>-long`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}))
		defer srv.Close()
		for _, provider := range []string{"deepgram", "openai"} {
			p := probe(t, key, provider, "--endpoint", strings.Replace(srv.URL, "http", "ws", 1))
			if p.result.Outcome != endpoint.Rejected {
				t.Errorf("%s: outcome %s, want rejected", provider, p.result.Outcome)
			}
			// The dialect of the other one does not pass such texts on.
			if provider == "deepgram" && (!strings.Contains(p.stderr, "[secret]") || !strings.Contains(p.stdout, "[secret]")) {
				t.Errorf("stderr %q, stdout %q, want the key's place in both", p.stderr, p.stdout)
			}
		}
	}
}

// TestProbeInterrupted stops a session while audio flows.
func TestProbeInterrupted(t *testing.T) {
	needSpeech(t)
	file := filepath.Join(t.TempDir(), "record.jsonl")
	ctx, cancel := context.WithCancelCause(t.Context())
	var stdout bytes.Buffer
	var stderr strings.Builder
	a := newApp(nil, &stdout, writerFunc(func(p []byte) {
		stderr.Write(p)
		if strings.Contains(string(p), "audio flows") {
			cancel(errInterrupted)
		}
	}))
	a.env = func(string) string { return secret }
	a.screen = new(screen)
	url := play(t, "deepgram", emulator.Settings{})
	code := a.run(ctx, []string{"probe", "deepgram", "--endpoint", url, "--audio", speech, "--json", "--record", file})
	var got probeResult
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %q, stderr %q", err, &stdout, &stderr)
	}
	if code != exitFailed || got.Outcome != endpoint.Cancelled {
		t.Errorf("exit code %d, outcome %s, want %d, cancelled", code, got.Outcome, exitFailed)
	}
	if !strings.HasSuffix(stderr.String(), "sttbench: deepgram: cancelled: interrupted\n") {
		t.Errorf("stderr %q", &stderr)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Close.How != record.Cancelled || rec.Close.Detail != "interrupted" {
		t.Errorf("record closes with %+v", rec.Close)
	}
}

// TestProbeUnreachable checks the outcome when nobody listens.
func TestProbeUnreachable(t *testing.T) {
	needSpeech(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	p := probe(t, secret, "vosk", "--endpoint", strings.Replace(srv.URL, "http", "ws", 1))
	if p.code != exitFailed || p.result.Outcome != endpoint.ConnectFailed || !strings.Contains(p.stderr, "connection refused") {
		t.Errorf("exit code %d, outcome %s, stderr %q", p.code, p.result.Outcome, p.stderr)
	}
}

func TestVerdict(t *testing.T) {
	for _, class := range endpoint.Classes() {
		want := exitFailed
		switch class {
		case endpoint.OK, endpoint.EarlyFinal, endpoint.LateFinal, endpoint.LatePartial, endpoint.EarlyPartial:
			want = exitOK
		case endpoint.ClientInvalid:
			want = exitClientInvalid
		}
		a := newApp(nil, io.Discard, io.Discard)
		if got := a.report(t.Context(), verdict("vosk", endpoint.Outcome{Class: class})); got != want {
			t.Errorf("%s: exit code %d, want %d", class, got, want)
		}
	}
}
