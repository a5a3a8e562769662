package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

const testKey = "test-key"

// open opens a session with what a test does not care about filled in.
func open(t testing.TB, cfg providers.Config) providers.Session {
	t.Helper()
	if cfg.SampleRate == 0 {
		cfg.SampleRate = 24000
	}
	if cfg.Key.Empty() {
		cfg.Key = providers.NewSecret(testKey)
	}
	s, err := Dialect{}.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestURL(t *testing.T) {
	tests := []struct{ name, endpoint, want string }{
		{"vendor", "", "wss://api.openai.com/v1/realtime?intent=transcription"},
		{"host", "ws://127.0.0.1:9000", "ws://127.0.0.1:9000/v1/realtime?intent=transcription"},
		{"slash", "ws://127.0.0.1:9000/", "ws://127.0.0.1:9000/v1/realtime?intent=transcription"},
		{"region", "wss://eu.api.openai.com/v1", "wss://eu.api.openai.com/v1/realtime?intent=transcription"},
		{"prefix", "wss://gateway.example/openai", "wss://gateway.example/openai/v1/realtime?intent=transcription"},
		{"whole", "wss://api.openai.com/v1/realtime?intent=transcription", "wss://api.openai.com/v1/realtime?intent=transcription"},
		{"gateway's model", "wss://gateway.example/v1/realtime?model=m", "wss://gateway.example/v1/realtime?model=m"},
		{"gateway's version", "wss://gateway.example/?v=1", "wss://gateway.example/v1/realtime?intent=transcription&v=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			step, err := open(t, providers.Config{Endpoint: tt.endpoint, Forced: true}).Next(time.Time{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := providers.Step{Dial: &providers.Dial{
				URL: tt.want, Header: http.Header{"Authorization": {"Bearer " + testKey}}, AwaitReady: true,
			}}
			if diff := cmp.Diff(want, step); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionUpdate(t *testing.T) {
	const head = `{"type":"session.update","event_id":"config","session":{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":`
	tests := []struct {
		name string
		cfg  providers.Config
		want string
	}{
		{"forced", providers.Config{Forced: true},
			head + `{"model":"gpt-live-transcribe"},"turn_detection":null}}}}`},
		{"language list", providers.Config{Forced: true, Language: "en-US"},
			head + `{"model":"gpt-live-transcribe","languages":["en"]},"turn_detection":null}}}}`},
		{"one language", providers.Config{Forced: true, Language: "pt_BR", Model: "whisper-1"},
			head + `{"model":"whisper-1","language":"pt"},"turn_detection":null}}}}`},
		{"languages win", providers.Config{Forced: true, Language: "en", Params: map[string]string{"languages": "de, fr-CH"}},
			head + `{"model":"gpt-live-transcribe","languages":["de","fr"]},"turn_detection":null}}}}`},
		{"natural", providers.Config{Model: "gpt-4o-mini-transcribe"},
			head + `{"model":"gpt-4o-mini-transcribe"},"turn_detection":{"type":"server_vad"}}}}}`},
		{"natural, tuned", providers.Config{Model: "whisper-1", Params: map[string]string{"threshold": "0.4", "prefix_padding_ms": "0", "silence_duration_ms": "250"}},
			head + `{"model":"whisper-1"},"turn_detection":{"type":"server_vad","threshold":0.4,"prefix_padding_ms":0,"silence_duration_ms":250}}}}}`},
		{"semantic", providers.Config{Model: "gpt-4o-transcribe", Params: map[string]string{"turn_detection": "semantic_vad", "eagerness": "high"}},
			head + `{"model":"gpt-4o-transcribe"},"turn_detection":{"type":"semantic_vad","eagerness":"high"}}}}}`},
		{"forced besides turn detection", providers.Config{Forced: true, Model: "whisper-1", Params: map[string]string{"turn_detection": "server_vad"}},
			head + `{"model":"whisper-1"},"turn_detection":{"type":"server_vad"}}}}}`},
		{"hints", providers.Config{Forced: true, Params: map[string]string{
			"prompt": "boats", "keywords": "Kessler,Quillon", "delay": "low", "noise_reduction": "near_field", "include": "logprobs"}},
			head + `{"model":"gpt-live-transcribe","prompt":"boats","keywords":["Kessler","Quillon"],"delay":"low"},"turn_detection":null,"noise_reduction":{"type":"near_field"}}},"include":["item.input_audio_transcription.logprobs"]}}`},
		{"no noise reduction", providers.Config{Forced: true, Params: map[string]string{"noise_reduction": "none"}},
			head + `{"model":"gpt-live-transcribe"},"turn_detection":null,"noise_reduction":null}}}}`},
		{"unknown model", providers.Config{Language: "en", Model: "next", Params: map[string]string{"delay": "low", "keywords": "x"}},
			head + `{"model":"next","language":"en","keywords":["x"],"delay":"low"},"turn_detection":{"type":"server_vad"}}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, replies, err := open(t, tt.cfg).Decode(time.Time{}, providers.TextFrame(`{"type":"session.created"}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]providers.Frame{providers.TextFrame(tt.want)}, replies); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	type cfg = providers.Config
	params := func(model string, forced bool, kv ...string) cfg {
		c := cfg{Model: model, Forced: forced, Params: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			c.Params[kv[i]] = kv[i+1]
		}
		return c
	}
	tests := []struct {
		name      string
		cfg       cfg
		wantField string
	}{
		{"rate", cfg{SampleRate: 16000, Forced: true}, "sample rate"},
		{"ftp endpoint", cfg{Endpoint: "ftp://api.openai.com", Forced: true}, "endpoint"},
		{"model in the vendor's URL", cfg{Endpoint: "wss://api.openai.com/v1/realtime?model=whisper-1", Forced: true}, "endpoint"},
		{"model in a region's URL", cfg{Endpoint: "wss://eu.api.openai.com?model=whisper-1", Forced: true}, "endpoint"},
		{"language", cfg{Language: "multi", Forced: true}, "language"},
		{"language with digits", cfg{Language: "e1", Forced: true}, "language"},
		{"default model, natural", cfg{}, "model"},
		{"whisper live, natural", cfg{Model: "gpt-realtime-whisper"}, "model"},
		{"live with turn detection", params("", true, "turn_detection", "server_vad"), "model"},
		{"natural without turn detection", params("whisper-1", false, "turn_detection", "none"), "param turn_detection"},
		{"turn detection", params("whisper-1", false, "turn_detection", "vad"), "param turn_detection"},
		{"tuning nothing", params("", true, "threshold", "0.5"), "param turn_detection"},
		{"tuning semantic", params("whisper-1", false, "turn_detection", "semantic_vad", "silence_duration_ms", "200"), "param turn_detection"},
		{"eager server_vad", params("whisper-1", false, "eagerness", "low"), "param turn_detection"},
		{"eagerness", params("whisper-1", false, "eagerness", "very"), "param eagerness"},
		{"threshold", params("whisper-1", false, "threshold", "NaN"), "param threshold"},
		{"padding", params("whisper-1", false, "prefix_padding_ms", "-1"), "param prefix_padding_ms"},
		{"silence", params("whisper-1", false, "silence_duration_ms", "200ms"), "param silence_duration_ms"},
		{"delay", params("", true, "delay", "none"), "param delay"},
		{"delay, model", params("whisper-1", true, "delay", "low"), "param delay"},
		{"prompt, model", params("gpt-realtime-whisper", true, "prompt", "x"), "param prompt"},
		{"prompt, diarize", params("gpt-4o-transcribe-diarize", true, "prompt", "x"), "param prompt"},
		{"keywords, model", params("gpt-realtime-whisper", true, "keywords", "x"), "param keywords"},
		{"keywords", params("", true, "keywords", ""), "param keywords"},
		{"languages, model", params("whisper-1", true, "languages", "en"), "param languages"},
		{"languages", params("", true, "languages", "english"), "param languages"},
		{"noise", params("", true, "noise_reduction", "on"), "param noise_reduction"},
		{"include", params("", true, "include", "words"), "param include"},
		{"unknown", params("", true, "temperature", "0"), "param temperature"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.SampleRate == 0 {
				tt.cfg.SampleRate = 24000
			}
			tt.cfg.Key = providers.NewSecret(testKey)
			_, err := Dialect{}.Open(tt.cfg, nil)
			var ce *providers.ConfigError
			if !errors.As(err, &ce) || ce.Field != tt.wantField {
				t.Fatalf("got %v, want a ConfigError on %q", err, tt.wantField)
			}
		})
	}
}

func TestKey(t *testing.T) {
	_, err := Dialect{}.Open(providers.Config{SampleRate: 24000, Forced: true}, nil)
	var ce *providers.ConfigError
	if !errors.As(err, &ce) || ce.Field != "key" || !strings.Contains(ce.Hint, "OPENAI_API_KEY") {
		t.Errorf("vendor without key: got %v, want a ConfigError that names the variable", err)
	}
	s, err := Dialect{}.Open(providers.Config{SampleRate: 24000, Forced: true, Endpoint: "ws://127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	step, err := s.Next(time.Time{}, nil)
	if err != nil || len(step.Dial.Header) != 0 {
		t.Errorf("own server without key: got %v, %v; want no header", step.Dial.Header, err)
	}
}

func TestFrames(t *testing.T) {
	s := open(t, providers.Config{Forced: true})
	for _, pcm := range [][]byte{{1, 2, 3, 4, 5, 6}, {255, 255}, make([]byte, 960)} {
		end := time.Duration(len(pcm)) * time.Millisecond
		frames, err := s.Audio(time.Time{}, pcm, end)
		if err != nil || len(frames) != 1 || frames[0].Op != record.Text || frames[0].AudioEnd != end {
			t.Fatalf("got %v, %v; want one text frame that ends at %s", frames, err, end)
		}
		var got map[string]string
		if err := json.Unmarshal(frames[0].Data, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"type": "input_audio_buffer.append", "audio": base64.StdEncoding.EncodeToString(pcm)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if frames, err := s.Audio(time.Time{}, nil, 0); frames != nil || err != nil {
		t.Errorf("no audio: got %v, %v; want nothing", frames, err)
	}
	for _, want := range []string{"commit_1", "commit_2"} {
		frames, err := s.Turn(time.Time{}, providers.End, providers.Span{})
		if err != nil {
			t.Fatal(err)
		}
		want := []providers.Frame{providers.TextFrame(`{"type":"input_audio_buffer.commit","event_id":"` + want + `"}`)}
		if diff := cmp.Diff(want, frames); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if start, err := s.Turn(time.Time{}, providers.Start, providers.Span{}); start != nil || err != nil {
		t.Errorf("start of a turn: %v, %v; want nothing", start, err)
	}
	if diff := cmp.Diff([]providers.Frame{{Op: record.CloseOp, Code: 1000}}, s.Finish(time.Time{})); diff != "" {
		t.Errorf("finish (-want +got):\n%s", diff)
	}
	natural := open(t, providers.Config{Model: "whisper-1"})
	if _, err := natural.Turn(time.Time{}, providers.End, providers.Span{}); !errors.Is(err, providers.ErrUnsupported) {
		t.Errorf("natural turn: got %v, want ErrUnsupported", err)
	}
}

func TestAudioDoesNotAllocate(t *testing.T) {
	s := open(t, providers.Config{Forced: true})
	pcm := make([]byte, 960)
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Audio(time.Time{}, pcm, 0) }); n != 0 {
		t.Errorf("%v allocations per block of audio, want 0", n)
	}
}

func TestRefusedHandshake(t *testing.T) {
	tests := []struct {
		name       string
		status     int
		body       string
		want       record.Reject
		wantDetail string
	}{
		{"key", 401, `{"error":{"message":"Incorrect API key provided: sk-ab**yz.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, record.RejectAuth, "the API key was not accepted"},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, record.RejectQuota, "You exceeded your current quota."},
		{"rate", 429, `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, record.RejectRate, "Rate limit reached."},
		{"query", 400, `no JSON`, record.RejectBadRequest, "no JSON"},
		{"path", 403, ``, record.RejectAuth, "Forbidden"},
		{"HTTP/2", 405, ``, record.RejectBadRequest, "Method Not Allowed"},
		{"server", 500, `[]`, record.RejectServer, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(t, providers.Config{Forced: true}).Next(time.Time{}, &providers.Response{Status: tt.status, Body: []byte(tt.body)})
			var r *providers.Rejection
			if !errors.As(err, &r) {
				t.Fatalf("got %v, want a Rejection", err)
			}
			if diff := cmp.Diff(&providers.Rejection{Reason: tt.want, Status: tt.status, Detail: tt.wantDetail}, r); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	d := Dialect{}.Describe()
	if d.Models[0].ID != "gpt-live-transcribe" {
		t.Errorf("default model %s", d.Models[0].ID)
	}
	// Open knows exactly the parameters that are described.
	for _, p := range d.Params {
		_, err := Dialect{}.Open(providers.Config{
			SampleRate: 24000, Forced: true, Key: providers.NewSecret(testKey), Params: map[string]string{p.Name: "\x00"},
		}, nil)
		if err != nil && strings.Contains(err.Error(), "is unknown") && p.Name != "include" {
			t.Errorf("param %s is described but %v", p.Name, err)
		}
	}
}

func BenchmarkAudio(b *testing.B) {
	s := open(b, providers.Config{Forced: true})
	pcm := make([]byte, 960)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Audio(time.Time{}, pcm, 0)
	}
}
