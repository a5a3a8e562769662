package vosk

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"sttbench/providers"
)

const name = "vosk"

// serverModel stands for the model that the server was started with, which the
// protocol has no way to name.
const serverModel = "server"

// Dialect is the protocol of vosk-server.
type Dialect struct{}

var _ providers.Dialect = Dialect{}

// Describe implements [providers.Dialect].
func (Dialect) Describe() providers.Description {
	return providers.Description{
		Name:      name,
		Title:     "Vosk server",
		Version:   "1",
		Transport: "websocket",
		Models: []providers.Model{
			{ID: serverModel, Note: "the model that the server was started with; any other name is a path on the server, which loads it"},
		},
		Languages: "that of the model; a language setting is not sent",
		Params: []providers.Param{
			{Name: "words", Values: "0 or 1", Default: "1", Note: "word times and confidences in finals"},
			{Name: "max_alternatives", Values: "whole number from 0", Note: "above 0, finals come without word confidences"},
			{Name: "phrase_list", Values: "phrases separated by commas", Note: "the recogniser hears nothing else; needs a model with a dynamic graph"},
			{Name: "model", Values: "path on the server", Note: "the server loads it for this connection; wins over the model's name"},
		},
		SampleRates:  []int{16000, 8000},
		Chunk:        providers.Chunk{Advice: 200 * time.Millisecond, Max: 30 * time.Second},
		CanForce:     true,
		ForceMessage: resetText,
		Continuous:   true,
		Prices: []providers.Price{
			{Model: serverModel, USD: 0, Unit: "minute", Note: "Apache-2.0, on hardware of your own; nothing is hosted", Date: "2026-02-22", Source: "github.com/alphacep/vosk-server"},
		},
		Sources: []providers.Source{
			{What: "messages, lockstep, reset and eof: vosk-server websocket/asr_server.py at c2e82f0", Confidence: "source"},
			{What: "shape of replies: vosk-api src/recognizer.cc and src/json.h at 9adbd76", Confidence: "source"},
			{What: "eof must be a text frame: github.com/alphacep/vosk-server/pull/97", Confidence: "report"},
			{What: "30 s per message: the WebSocket library's default limit of 1 MiB at 16 kHz", Confidence: "source"},
			{What: "200 ms per message: the vendor's own test clients", Confidence: "source"},
			{What: "trailing silence of natural endpointing: a property of the model", Confidence: "unsure"},
		},
	}
}

// Open implements [providers.Dialect].
func (d Dialect) Open(cfg providers.Config, _ *rand.Rand) (providers.Session, error) {
	if cfg.Endpoint == "" {
		return nil, configError("endpoint", "there is no vendor's own server, and none was given",
			"run `sttlocal --listen 127.0.0.1:2700` or a vosk-server, and give its ws:// address")
	}
	u, err := providers.ParseEndpoint(name, cfg.Endpoint, "")
	if err != nil {
		return nil, err
	}
	if rates := d.Describe().SampleRates; !slices.Contains(rates, cfg.SampleRate) {
		return nil, configError("sample rate", fmt.Sprintf("%d Hz is not one of %v", cfg.SampleRate, rates), "")
	}
	hello, err := hello(cfg)
	if err != nil {
		return nil, err
	}
	return newSession(u.String(), hello, cfg.Forced), nil
}

// settings is the body of the configuration message. A sample rate is always
// sent: the server's default is 8000 Hz, whatever its model was trained on.
type settings struct {
	SampleRate      int      `json:"sample_rate"`
	Words           int      `json:"words"`
	MaxAlternatives *int     `json:"max_alternatives,omitempty"`
	PhraseList      []string `json:"phrase_list,omitempty"`
	Model           string   `json:"model,omitempty"`
}

func hello(cfg providers.Config) ([]byte, error) {
	s := settings{SampleRate: cfg.SampleRate, Words: 1}
	if cfg.Model != serverModel {
		s.Model = cfg.Model
	}
	for _, param := range slices.Sorted(maps.Keys(cfg.Params)) {
		value := cfg.Params[param]
		switch param {
		case "words":
			on, err := strconv.ParseBool(value)
			if err != nil {
				return nil, configError("param words", fmt.Sprintf("%q is not 0 or 1", value), "")
			}
			s.Words = 0
			if on {
				s.Words = 1
			}
		case "max_alternatives":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return nil, configError("param max_alternatives", fmt.Sprintf("%q is not a whole number from 0", value), "")
			}
			s.MaxAlternatives = &n
		case "phrase_list":
			for phrase := range strings.SplitSeq(value, ",") {
				phrase = strings.TrimSpace(phrase)
				if phrase == "" {
					return nil, configError("param phrase_list", "a phrase is empty", "separate phrases by single commas")
				}
				s.PhraseList = append(s.PhraseList, phrase)
			}
		case "model":
			if value == "" {
				return nil, configError("param model", "is empty", "leave it out to keep the server's own model")
			}
			s.Model = value
		default:
			return nil, configError("param "+param, "is unknown", "known are words, max_alternatives, phrase_list and model")
		}
	}
	return json.Marshal(struct {
		Config settings `json:"config"`
	}{s})
}

func configError(field, problem, hint string) error {
	return &providers.ConfigError{Provider: name, Field: field, Problem: problem, Hint: hint}
}
