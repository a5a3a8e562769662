package vosk

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

// open opens a session with what a test does not care about filled in.
func open(t testing.TB, cfg providers.Config) providers.Session {
	t.Helper()
	if cfg.Endpoint == "" {
		cfg.Endpoint = "ws://127.0.0.1:2700"
	}
	if cfg.SampleRate == 0 {
		cfg.SampleRate = 16000
	}
	s, err := Dialect{}.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHello(t *testing.T) {
	tests := []struct {
		name string
		cfg  providers.Config
		want string
	}{
		{"defaults", providers.Config{}, `{"config":{"sample_rate":16000,"words":1}}`},
		{"telephone", providers.Config{SampleRate: 8000}, `{"config":{"sample_rate":8000,"words":1}}`},
		{"server's model", providers.Config{Model: "server"}, `{"config":{"sample_rate":16000,"words":1}}`},
		{"model as path", providers.Config{Model: "/m/en"}, `{"config":{"sample_rate":16000,"words":1,"model":"/m/en"}}`},
		{"parameters", providers.Config{Model: "small-en", Params: map[string]string{
			"words": "0", "max_alternatives": "0", "phrase_list": "turn on, turn off,[unk]", "model": "/m/en",
		}}, `{"config":{"sample_rate":16000,"words":0,"max_alternatives":0,"phrase_list":["turn on","turn off","[unk]"],"model":"/m/en"}}`},
		{"words by name", providers.Config{Params: map[string]string{"words": "true"}}, `{"config":{"sample_rate":16000,"words":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			step, err := open(t, tt.cfg).Next(time.Time{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := providers.Step{Dial: &providers.Dial{
				URL:   "ws://127.0.0.1:2700",
				Hello: []providers.Frame{providers.TextFrame(tt.want)},
			}}
			if diff := cmp.Diff(want, step); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	const here = "ws://127.0.0.1:2700"
	params := func(k, v string) providers.Config {
		return providers.Config{Endpoint: here, SampleRate: 16000, Params: map[string]string{k: v}}
	}
	tests := []struct {
		name      string
		cfg       providers.Config
		wantField string
		wantHint  bool
	}{
		{"no endpoint", providers.Config{SampleRate: 16000}, "endpoint", true},
		{"ftp endpoint", providers.Config{Endpoint: "ftp://127.0.0.1", SampleRate: 16000}, "endpoint", true},
		{"no host", providers.Config{Endpoint: "ws://", SampleRate: 16000}, "endpoint", true},
		{"bad escape", providers.Config{Endpoint: "ws://h/%zz", SampleRate: 16000}, "endpoint", true},
		{"no rate", providers.Config{Endpoint: here}, "sample rate", false},
		{"odd rate", providers.Config{Endpoint: here, SampleRate: 11025}, "sample rate", false},
		{"words", params("words", "maybe"), "param words", false},
		{"alternatives", params("max_alternatives", "-1"), "param max_alternatives", false},
		{"phrases", params("phrase_list", "a,,b"), "param phrase_list", true},
		{"empty model", params("model", ""), "param model", true},
		{"unknown", params("beam", "10"), "param beam", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dialect{}.Open(tt.cfg, nil)
			var ce *providers.ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("got %v, want a ConfigError", err)
			}
			if ce.Field != tt.wantField || (ce.Hint != "") != tt.wantHint {
				t.Errorf("field %q, hint %q; want field %q, hint %v", ce.Field, ce.Hint, tt.wantField, tt.wantHint)
			}
		})
	}
}

func TestFrames(t *testing.T) {
	s := open(t, providers.Config{Forced: true})
	pcm := []byte{1, 2, 3, 4}
	audio, err := s.Audio(time.Time{}, pcm, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	force, err := s.Turn(time.Time{}, providers.End, providers.Span{})
	if err != nil {
		t.Fatal(err)
	}
	got := append(append(append([]providers.Frame{}, audio...), force...), s.Finish(time.Time{})...)
	want := []providers.Frame{
		{Op: record.Binary, Data: pcm, AudioEnd: 20 * time.Millisecond},
		providers.TextFrame(`{"reset" : 1}`),
		providers.TextFrame(`{"eof" : 1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if start, err := s.Turn(time.Time{}, providers.Start, providers.Span{}); start != nil || err != nil {
		t.Errorf("start of a turn: %v, %v; want nothing", start, err)
	}
	if idle := s.KeepAlive(time.Time{}); idle != nil {
		t.Errorf("keep-alive: %v, want nothing", idle)
	}
}

// An empty block must not be sent: the server would answer it, and the pacer
// does not wait for that reply.
func TestEmptyAudio(t *testing.T) {
	s := open(t, providers.Config{Forced: true})
	if frames, err := s.Audio(time.Time{}, nil, 0); frames != nil || err != nil {
		t.Fatalf("got %v, %v", frames, err)
	}
	if err := send(s, "reset"); err != nil {
		t.Fatal(err)
	}
	events, _, err := s.Decode(time.Time{}, providers.TextFrame(`{"text": ""}`))
	if err != nil || len(events) != 1 || !events[0].Closes {
		t.Errorf("first reply: %+v, %v; want the reset's", events, err)
	}
}

func TestNaturalTurn(t *testing.T) {
	s := open(t, providers.Config{})
	if _, err := s.Turn(time.Time{}, providers.End, providers.Span{}); !errors.Is(err, providers.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

func TestRefusedHandshake(t *testing.T) {
	_, err := open(t, providers.Config{}).Next(time.Time{}, &providers.Response{Status: http.StatusServiceUnavailable})
	var r *providers.Rejection
	if !errors.As(err, &r) || r.Reason != record.RejectServer {
		t.Errorf("got %v, want a rejection by the server", err)
	}
}

func BenchmarkAudio(b *testing.B) {
	s := open(b, providers.Config{Forced: true})
	pcm := make([]byte, 640)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Audio(time.Time{}, pcm, 0)
	}
}
