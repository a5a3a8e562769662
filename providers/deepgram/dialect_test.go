package deepgram

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

// open opens a stream at 16 kHz with a key, for tests that do not care.
func open(t testing.TB, cfg providers.Config) providers.Session {
	t.Helper()
	if cfg.SampleRate == 0 {
		cfg.SampleRate = 16000
	}
	if cfg.Key.Empty() && cfg.Endpoint == "" {
		cfg.Key = providers.NewSecret("k1")
	}
	s, err := Dialect{}.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dialOf(t testing.TB, s providers.Session) *providers.Dial {
	t.Helper()
	step, err := s.Next(time.Time{}, nil)
	if err != nil || step.Dial == nil || step.Request != nil {
		t.Fatalf("first step %+v, error %v: want a dial", step, err)
	}
	return step.Dial
}

func TestURL(t *testing.T) {
	const audio = "channels=1&encoding=linear16"
	for _, test := range []struct {
		name string
		cfg  providers.Config
		want string
	}{
		{"forced preset", providers.Config{Forced: true},
			"wss://api.deepgram.com/v1/listen?" + audio + "&endpointing=false&interim_results=true&model=nova-3&sample_rate=16000"},
		{"natural preset", providers.Config{Language: "en-GB", SampleRate: 8000, Model: "nova-2-phonecall"},
			"wss://api.deepgram.com/v1/listen?" + audio + "&interim_results=true&language=en-GB&model=nova-2-phonecall&sample_rate=8000"},
		{"params win over presets", providers.Config{Forced: true, Params: map[string]string{"endpointing": "300", "interim_results": "false"}},
			"wss://api.deepgram.com/v1/listen?" + audio + "&endpointing=300&interim_results=false&model=nova-3&sample_rate=16000"},
		{"lists repeat the key", providers.Config{Params: map[string]string{"keyterm": "Ng, blue box"}},
			"wss://api.deepgram.com/v1/listen?" + audio + "&interim_results=true&keyterm=Ng&keyterm=blue+box&model=nova-3&sample_rate=16000"},
		{"host alone", providers.Config{Endpoint: "http://127.0.0.1:9000"},
			"ws://127.0.0.1:9000/v1/listen?" + audio + "&interim_results=true&model=nova-3&sample_rate=16000"},
		{"prefix", providers.Config{Endpoint: "https://proxy.example/dg/"},
			"wss://proxy.example/dg/v1/listen?" + audio + "&interim_results=true&model=nova-3&sample_rate=16000"},
		{"whole path", providers.Config{Endpoint: "wss://api.eu.deepgram.com/v1/listen"},
			"wss://api.eu.deepgram.com/v1/listen?" + audio + "&interim_results=true&model=nova-3&sample_rate=16000"},
	} {
		if got := dialOf(t, open(t, test.cfg)).URL; got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestKey(t *testing.T) {
	d := dialOf(t, open(t, providers.Config{Key: providers.NewSecret("k1")}))
	if got := d.Header.Get("Authorization"); got != "Token k1" {
		t.Errorf("authorization %q", got)
	}
	if u, _ := url.Parse(d.URL); strings.Contains(u.String(), "k1") {
		t.Error("the key is in the URL")
	}
	d = dialOf(t, open(t, providers.Config{Endpoint: "ws://127.0.0.1:1"}))
	if _, there := d.Header["Authorization"]; there {
		t.Error("a header is sent without a key")
	}
}

func TestConfigErrors(t *testing.T) {
	key := providers.NewSecret("k1")
	param := func(name, value string) providers.Config {
		return providers.Config{Key: key, Params: map[string]string{name: value}}
	}
	with := func(model string, params ...string) providers.Config {
		cfg := providers.Config{Key: key, Model: model, Params: map[string]string{}}
		for i := 0; i < len(params); i += 2 {
			cfg.Params[params[i]] = params[i+1]
		}
		return cfg
	}
	for _, test := range []struct {
		name  string
		cfg   providers.Config
		field string
		want  string // in problem or hint
	}{
		{"no key", providers.Config{}, "key", "DEEPGRAM_API_KEY"},
		{"key with a line break", providers.Config{Key: providers.NewSecret("k1\n")}, "key", "DEEPGRAM_API_KEY"},
		{"sample rate", providers.Config{Key: key, SampleRate: 11025}, "sample rate", "16000"},
		{"flux", with("flux-general-en"), "model", "nova"},
		{"scheme", providers.Config{Endpoint: "ftp://x"}, "endpoint", "ws://"},
		{"no host", providers.Config{Endpoint: "ws://"}, "endpoint", "no host"},
		{"no scheme", providers.Config{Endpoint: "localhost:9000"}, "endpoint", "scheme"},
		{"not a URL", providers.Config{Endpoint: "ws://[::1"}, "endpoint", "not a URL"},
		{"password", providers.Config{Endpoint: "ws://u:secret@x"}, "endpoint", "password"},
		{"query", providers.Config{Endpoint: "ws://x?model=y"}, "endpoint", "params"},
		{"unknown, near", param("endpoint", "10"), "param endpoint", "endpointing"},
		{"unknown, misspelt", param("smart_fromat", "true"), "param smart_fromat", "smart_format"},
		{"unknown, far", param("xyzzy", "1"), "param xyzzy", "known are interim_results"},
		{"of Flux", param("eot_threshold", "0.7"), "param eot_threshold", "Flux"},
		{"ours", param("sample_rate", "8000"), "param sample_rate", "sttbench"},
		{"the target's", param("model", "nova-2"), "param model", "model"},
		{"callback", param("callback", "http://x"), "param callback", "elsewhere"},
		{"not a switch", param("punctuate", "yes"), "param punctuate", "true or false"},
		{"not a number", param("endpointing", "-1"), "param endpointing", "or false"},
		{"signed number", param("endpointing", "+1"), "param endpointing", "or false"},
		{"no off", param("utterance_end_ms", "false"), "param utterance_end_ms", "whole number"},
		{"empty text", param("version", ""), "param version", "a value"},
		{"empty in list", param("keyterm", "a,,b"), "param keyterm", "commas"},
		{"utterance end too short", param("utterance_end_ms", "999"), "param utterance_end_ms", "1000"},
		{"utterance end without interims", with("", "utterance_end_ms", "1000", "interim_results", "false"), "param utterance_end_ms", "interim_results"},
		{"keyterm", with("nova-2", "keyterm", "x"), "param keyterm", "keywords"},
		{"keywords", with("nova-3-medical", "keywords", "x:2"), "param keywords", "keyterm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.cfg.SampleRate == 0 {
				test.cfg.SampleRate = 16000
			}
			_, err := Dialect{}.Open(test.cfg, nil)
			var ce *providers.ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("error %v, want a ConfigError", err)
			}
			if ce.Provider != "deepgram" || ce.Field != test.field || !strings.Contains(ce.Problem+" "+ce.Hint, test.want) {
				t.Errorf("%+v, want field %s and %q", ce, test.field, test.want)
			}
			if strings.Contains(fmt.Sprint(err, ce.Hint), "secret@") {
				t.Error("the error tells the password")
			}
		})
	}
}

func TestFrames(t *testing.T) {
	s := open(t, providers.Config{})
	now := time.Time{}
	audio, err := s.Audio(now, []byte{1, 2}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]providers.Frame{{Op: record.Binary, Data: []byte{1, 2}, AudioEnd: time.Second}}, audio); diff != "" {
		t.Error(diff)
	}
	if empty, err := s.Audio(now, nil, time.Second); len(empty) != 0 || err != nil {
		t.Errorf("empty audio gives %v, %v: an empty message would end the stream", empty, err)
	}
	if start, err := s.Turn(now, providers.Start, providers.Span{}); start != nil || err != nil {
		t.Errorf("start of a turn gives %v, %v", start, err)
	}
	end, err := s.Turn(now, providers.End, providers.Span{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		got  []providers.Frame
		want string
	}{
		"force":     {end, `{"type":"Finalize"}`},
		"keepalive": {s.KeepAlive(now), `{"type":"KeepAlive"}`},
		"finish":    {s.Finish(now), `{"type":"CloseStream"}`},
	} {
		if diff := cmp.Diff([]providers.Frame{{Op: record.Text, Data: []byte(test.want)}}, test.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAudioAllocatesNothing(t *testing.T) {
	s := open(t, providers.Config{})
	pcm := make([]byte, 640)
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Audio(time.Time{}, pcm, 0) }); n > 0 {
		t.Errorf("%v allocations on the pacing path", n)
	}
}

func TestDescription(t *testing.T) {
	d := Dialect{}.Describe()
	if d.KeyVar != "DEEPGRAM_API_KEY" || !d.CanForce || !d.Continuous || d.Models[0].ID != "nova-3" {
		t.Errorf("description %+v", d)
	}
	for _, p := range d.Params {
		if _, clash := refused()[p.Name]; clash {
			t.Errorf("parameter %s is offered and refused", p.Name)
		}
	}
	for _, p := range d.Prices {
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil || p.Source == "" || p.USD <= 0 {
			t.Errorf("price without date or source: %+v", p)
		}
	}
}
