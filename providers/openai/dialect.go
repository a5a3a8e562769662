package openai

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sttbench/providers"
)

const (
	name       = "openai"
	keyVar     = "OPENAI_API_KEY"
	vendorHost = "api.openai.com"
	sampleRate = 24000
)

// Dialect is the protocol of OpenAI's Realtime transcription.
type Dialect struct{}

var _ providers.Dialect = Dialect{}

// Describe implements [providers.Dialect].
func (Dialect) Describe() providers.Description {
	d := providers.Description{
		Name:         name,
		Title:        "OpenAI Realtime transcription",
		Version:      "1",
		Transport:    "websocket",
		Endpoint:     "wss://" + vendorHost + "/v1/realtime?intent=transcription",
		KeyVar:       keyVar,
		Languages:    "ISO 639-1; of a BCP 47 tag the language is sent; none sent means detection",
		Params:       describeParams(),
		SampleRates:  []int{sampleRate},
		Chunk:        providers.Chunk{Max: 4 * time.Minute},
		CanForce:     true,
		ForceMessage: "input_audio_buffer.commit",
		// A shorter commit is answered by input_audio_buffer_commit_empty.
		ForceNeedsAudio: 100 * time.Millisecond,
		MaxStream:       60 * time.Minute,
		Sources: []providers.Source{
			{What: "wire shapes: openai-python src/openai/types/realtime at e43b4224", Confidence: "source"},
			{What: "forced preset (turn_detection null, commit at speech end): pipecat and livekit-plugins-openai", Confidence: "source"},
			{What: "intent in the URL and no model; wait for session.updated: several clients", Confidence: "report"},
			{What: "which models stream, and that they complete only what was committed: coval benchmark, 2026-06, and vendor docs", Confidence: "report"},
			{What: "commit of less than 100 ms: github.com/openai/openai-agents-js/issues/748", Confidence: "report"},
			{What: "gpt-transcribe with server_vad never completes: github.com/JINGBANZ/jarvis/issues/132", Confidence: "report"},
			{What: "4 min per append: the documented 15 MiB of base64", Confidence: "docs"},
			{What: "60 min per session: current docs; expiry after 15 min was reported", Confidence: "unsure"},
			{What: "close codes in the 3000 range with the error code as reason", Confidence: "unsure"},
		},
	}
	for _, m := range models {
		d.Models = append(d.Models, providers.Model{ID: m.id, Note: m.note})
		if m.usdPerMinute > 0 {
			d.Prices = append(d.Prices, providers.Price{
				Model: m.id, USD: m.usdPerMinute, Unit: "minute", Note: m.priceNote,
				Date: "2026-11-01", Source: "developers.openai.com, model pages",
			})
		}
	}
	return d
}

// Open implements [providers.Dialect].
func (Dialect) Open(cfg providers.Config, _ *rand.Rand) (providers.Session, error) {
	target, err := realtimeURL(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	// Servers that only speak the protocol may need no key; the vendor does.
	if cfg.Key.Empty() && cfg.Endpoint == "" {
		return nil, configError("key", "is missing", "set "+keyVar)
	}
	if cfg.SampleRate != sampleRate {
		return nil, configError("sample rate", fmt.Sprintf("%d Hz would be heard at the wrong speed: the API takes %d Hz only", cfg.SampleRate, sampleRate), "resample the audio")
	}
	update, err := sessionUpdate(cfg)
	if err != nil {
		return nil, err
	}
	return newSession(target, cfg.Key, update, cfg.Forced), nil
}

// realtimeURL completes an endpoint (scheme, host, path prefix) to the address
// that opens a transcription session. A query is kept: servers other than the
// vendor's often want the model there.
func realtimeURL(endpoint string) (string, error) {
	u, err := providers.ParseEndpoint(name, endpoint, "wss://"+vendorHost)
	if err != nil {
		return "", err
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case strings.HasSuffix(path, "/realtime"):
		u.Path = path
	case strings.HasSuffix(path, "/v1"):
		u.Path = path + "/realtime"
	default:
		u.Path = path + "/v1/realtime"
	}
	u.RawPath = ""
	query := u.Query()
	if query.Has("model") && (u.Hostname() == vendorHost || strings.HasSuffix(u.Hostname(), "."+vendorHost)) {
		return "", configError("endpoint", "names a model in its query, which makes a conversation session of it", "leave the query out; the model is sent in session.update")
	}
	if !query.Has("intent") && !query.Has("model") {
		query.Set("intent", "transcription")
		u.RawQuery = query.Encode()
	}
	return u.String(), nil
}

func configError(field, problem, hint string) error {
	return &providers.ConfigError{Provider: name, Field: field, Problem: problem, Hint: hint}
}

// model holds what the API is known to accept with a model.
type model struct {
	id, note     string
	usdPerMinute float64
	priceNote    string
	noVAD        bool // refuses turn detection
	delay        bool // takes transcription.delay
	hints        bool // takes transcription.languages and keywords
	noPrompt     bool // refuses transcription.prompt
	unknown      bool // to us: nothing is refused
}

// models, the default first.
var models = [...]model{
	{id: "gpt-live-transcribe", note: "streams; forced endpointing only", usdPerMinute: 0.017, noVAD: true, delay: true, hints: true},
	{id: "gpt-realtime-whisper", note: "streams; forced endpointing only", usdPerMinute: 0.017, noVAD: true, delay: true, noPrompt: true},
	{id: "gpt-transcribe", note: "answers after the commit; reported never to complete with server_vad", usdPerMinute: 0.0045, hints: true},
	{id: "gpt-4o-transcribe", note: "answers after the commit; deprecated, to be removed on 2027-02-26", usdPerMinute: 0.006, priceNote: "about"},
	{id: "gpt-4o-mini-transcribe", note: "answers after the commit; deprecated, to be removed on 2027-02-26", usdPerMinute: 0.003, priceNote: "about"},
	{id: "gpt-4o-mini-transcribe-2025-12-15", note: "answers after the commit; deprecated, to be removed on 2027-02-26", usdPerMinute: 0.003, priceNote: "about"},
	{id: "gpt-4o-transcribe-diarize", note: "answers after the commit", noPrompt: true},
	{id: "whisper-1", note: "answers after the commit, in one piece", usdPerMinute: 0.006},
}

func findModel(id string) model {
	if id == "" {
		return models[0]
	}
	if i := slices.IndexFunc(models[:], func(m model) bool { return m.id == id }); i >= 0 {
		return models[i]
	}
	return model{id: id, unknown: true}
}
